"""Residual connections and where their normalisation stands.

Post-norm is the published Transformer; pre-norm trains deeper stacks without warm-up.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.parameters import FREE, Role
from saccade.blocks.dropout import Dropout, DropPath
from saccade.blocks.kernels import runs_kernels

EPSILON = 1e-5  # keeps what does not vary from being divided by zero
Sums = tuple[Float[Tensor, "*batch D"], Float[Tensor, "*batch D"]]


class TokenBatchNorm(nn.Module):
    """BatchNorm over the features of all positions of a batch: the contrast to LayerNorm.

    Padding and batch mates enter the statistics, which is why Transformers do not use it.
    """

    def __init__(self, width: int, epsilon: float = EPSILON) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, epsilon)

    def forward(self, x: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        return self.norm(x.flatten(0, -2)).view_as(x)


NormKind = Literal["layer", "batch"]
NORMS: dict[NormKind, Callable[..., nn.Module]] = {"layer": nn.LayerNorm, "batch": TokenBatchNorm}


class Residual(nn.Module, ABC):
    """What goes around a sublayer f. Two go from one to the next: the sum, and what f takes.

    `before` is for the first of a stack; `after` adds what f gave and makes ready for the next.
    With a `layer_scale` f is multiplied by a learnt number for each channel, which starts there
    (Touvron et al. 2021, arXiv:2103.17239); `drop_path` is the rate at which f is left out.
    """

    pre: ClassVar[bool]  # whether the norm stands before f

    def __init__(
        self,
        width: int,
        *,
        dropout: float,
        norm: NormKind = "layer",
        epsilon: float = EPSILON,
        layer_scale: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm = NORMS[norm](width, epsilon)
        self.dropout = Dropout(dropout)
        scale = nn.Parameter(torch.full((width,), layer_scale)) if layer_scale else None
        self.register_parameter("scale", scale)
        self.scale: nn.Parameter | None
        self.drop_path = DropPath(drop_path)

    def roles(self) -> dict[str, Role]:
        return {} if self.scale is None else {"scale": FREE}

    @property
    def bare(self) -> bool:
        """Whether what f gives is added as it is, but for dropout."""
        return self.scale is None and not self.drop_path.now

    def branch(self, change: Float[Tensor, "*batch D"]) -> Float[Tensor, "*batch D"]:
        """What is added of what f gave, but for dropout: m · γ · f / (1 − r)."""
        return self.drop_path(change if self.scale is None else self.scale * change)

    @abstractmethod
    def before(self, x: Float[Tensor, "*batch D"]) -> Sums: ...

    @abstractmethod
    def after(
        self, x: Tensor, change: Tensor, following: nn.Module, bias: Tensor | None = None
    ) -> Sums:
        """`following` is the norm of what comes next. `bias` is in the change already and, where
        it is given, has yet to get its gradient.
        """


class PostNorm(Residual):
    """Add, then normalise, as published.

    y = norm(x + dropout(f(x)))
    """

    pre = False

    def before(self, x: Float[Tensor, "*batch D"]) -> Sums:
        return x, x

    def after(
        self, x: Tensor, change: Tensor, following: nn.Module, bias: Tensor | None = None
    ) -> Sums:
        change = self.branch(change)
        if runs_kernels(x) and isinstance(self.norm, nn.LayerNorm):
            from saccade.blocks.kernels.residual import add_norm

            y = add_norm(x, change, *_of(self.norm), rate=self.dropout.now)
        else:
            y = self.norm(x + self.dropout(change))
        return y, y


class PreNorm(Residual):
    """Normalise, then add: the sum itself is never normalised, so gradients pass straight down.

        y = x + dropout(f(norm(x)))

    Kernels make a sum and the norm that follows it in one pass.
    """

    pre = True

    def before(self, x: Float[Tensor, "*batch D"]) -> Sums:
        if runs_kernels(x) and isinstance(self.norm, nn.LayerNorm):
            from saccade.blocks.kernels.residual import norm_beside

            normed, x = norm_beside(x, *_of(self.norm))
            return x, normed
        return x, self.norm(x)

    def after(
        self, x: Tensor, change: Tensor, following: nn.Module, bias: Tensor | None = None
    ) -> Sums:
        change = self.branch(change)
        if not runs_kernels(x):
            x = x + self.dropout(change)
            return x, following(x)
        from saccade.blocks.kernels.residual import add_dropped, add_norm_beside

        if isinstance(following, nn.LayerNorm):
            normed, x = add_norm_beside(x, change, bias, *_of(following), rate=self.dropout.now)
            return x, normed
        x = add_dropped(x, change, rate=self.dropout.now)
        return x, following(x)


def _of(norm: nn.LayerNorm) -> tuple[Tensor, Tensor, float]:
    return norm.weight, norm.bias, norm.eps


ResidualKind = Literal["post", "pre"]
RESIDUALS: dict[ResidualKind, type[PostNorm] | type[PreNorm]] = {"post": PostNorm, "pre": PreNorm}
