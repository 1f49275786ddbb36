"""Residual connections and where their normalisation stands.

Post-norm is the published Transformer; pre-norm trains deeper stacks without warm-up.
"""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

Sublayer = Callable[[Float[Tensor, "B T D"]], Float[Tensor, "B T D"]]


class TokenBatchNorm(nn.Module):
    """BatchNorm over the features of all positions of a batch: the contrast to LayerNorm.

    Padding and batch mates enter the statistics, which is why Transformers do not use it.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x.flatten(0, 1)).view_as(x)


NormKind = Literal["layer", "batch"]
NORMS: dict[NormKind, Callable[[int], nn.Module]] = {"layer": nn.LayerNorm, "batch": TokenBatchNorm}


class PostNorm(nn.Module):
    """Add, then normalise, as published.

    y = norm(x + dropout(f(x)))
    """

    def __init__(self, width: int, *, dropout: float, norm: NormKind = "layer") -> None:
        super().__init__()
        self.norm = NORMS[norm](width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Sublayer) -> Float[Tensor, "B T D"]:
        return self.norm(x + self.dropout(sublayer(x)))


class PreNorm(nn.Module):
    """Normalise, then add: the sum itself is never normalised, so gradients pass straight down.

    y = x + dropout(f(norm(x)))
    """

    def __init__(self, width: int, *, dropout: float, norm: NormKind = "layer") -> None:
        super().__init__()
        self.norm = NORMS[norm](width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Sublayer) -> Float[Tensor, "B T D"]:
        return x + self.dropout(sublayer(self.norm(x)))


ResidualKind = Literal["post", "pre"]
RESIDUALS: dict[ResidualKind, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
