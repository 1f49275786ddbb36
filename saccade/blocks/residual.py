"""Residual connections and where their normalisation stands.

Post-norm is the published Transformer; pre-norm trains deeper stacks without warm-up.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from saccade.blocks.dropout import Dropout
from saccade.blocks.kernels import runs_kernels

EPSILON = 1e-5  # keeps what does not vary from being divided by zero
Sublayer = Callable[[Float[Tensor, "B T D"]], Float[Tensor, "B T D"]]


class TokenBatchNorm(nn.Module):
    """BatchNorm over the features of all positions of a batch: the contrast to LayerNorm.

    Padding and batch mates enter the statistics, which is why Transformers do not use it.
    """

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, epsilon)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        return self.norm(x.flatten(0, 1)).view_as(x)


NormKind = Literal["layer", "batch"]
NORMS: dict[NormKind, Callable[..., nn.Module]] = {"layer": nn.LayerNorm, "batch": TokenBatchNorm}


class PostNorm(nn.Module):
    """Add, then normalise, as published.

    y = norm(x + dropout(f(x)))
    """

    def __init__(
        self, width: int, *, dropout: float, norm: NormKind = "layer", epsilon: float = EPSILON
    ) -> None:
        super().__init__()
        self.norm = NORMS[norm](width, epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Sublayer) -> Float[Tensor, "B T D"]:
        change = sublayer(x)
        if runs_kernels(x) and isinstance(self.norm, nn.LayerNorm):
            from saccade.blocks.kernels.residual import add_norm

            return add_norm(x, change, *_of(self.norm), rate=self.dropout.now)
        return self.norm(x + self.dropout(change))


class Change(NamedTuple):
    """What a sublayer would have added, which waits for the next norm: one pass does both.

    `owed` is the bias within it that has yet to get its gradient, `rate` what is dropped of it.
    """

    value: Float[Tensor, "B T D"]
    owed: Float[Tensor, " D"] | None
    rate: float


class PreNorm(nn.Module):
    """Normalise, then add: the sum itself is never normalised, so gradients pass straight down.

    y = x + dropout(f(norm(x)))
    """

    def __init__(
        self, width: int, *, dropout: float, norm: NormKind = "layer", epsilon: float = EPSILON
    ) -> None:
        super().__init__()
        self.norm = NORMS[norm](width, epsilon)
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B T D"], sublayer: Sublayer) -> Float[Tensor, "B T D"]:
        if runs_kernels(x) and isinstance(self.norm, nn.LayerNorm):
            from saccade.blocks.kernels.residual import add_dropped, norm_beside

            normed, x = norm_beside(x, *_of(self.norm))
            return add_dropped(x, sublayer(normed), rate=self.dropout.now)
        return x + self.dropout(sublayer(self.norm(x)))

    def carry(
        self,
        x: Float[Tensor, "B T D"],
        change: Change | None,
        sublayer: Sublayer,
        owed: Float[Tensor, " D"] | None,
    ) -> tuple[Float[Tensor, "B T D"], Change]:
        """The same, but the sum before is made here, and the sum after is left to the next."""
        assert isinstance(self.norm, nn.LayerNorm)
        normed, x = added_norm(x, change, self.norm)
        return x, Change(sublayer(normed), owed, self.dropout.now)


def added_norm(
    x: Float[Tensor, "B T D"], change: Change | None, norm: nn.LayerNorm
) -> tuple[Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
    """norm(s), and s = x + dropout(change) itself; by kernels, so only where these run."""
    from saccade.blocks.kernels.residual import add_norm_beside, norm_beside

    if change is None:
        return norm_beside(x, *_of(norm))
    return add_norm_beside(x, change.value, change.owed, *_of(norm), rate=change.rate)


def _of(norm: nn.LayerNorm) -> tuple[Tensor, Tensor, float]:
    return norm.weight, norm.bias, norm.eps


ResidualKind = Literal["post", "pre"]
RESIDUALS: dict[ResidualKind, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
