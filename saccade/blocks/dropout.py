"""Dropout whose random numbers cost little on the CPU (Srivastava et al. 2014, JMLR 15).

torch draws a float for each element there, one after another on one core: a third of a small
Transformer's training step. Here four elements share one 64-bit draw. Elsewhere, and where the
step is compiled, torch's own dropout is already fused with its neighbours and is used as it is.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.blocks.kernels import runs_kernels
from saccade.errors import ConfigError

CHANCES = 1 << 16  # of an element: what 16 random bits can tell apart
PER_DRAW = 4  # elements


class Dropout(nn.Module):
    """Zero a share of the elements while training, and make up for it in the others.

        y = m · x / (1 − r)        m ∼ Bernoulli(1 − r)

    r is `rate` to within 2⁻¹⁷, and the scale is that of r itself, so E[y] = x. Torch's global
    random state decides m, whatever the layout of x in memory.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate <= 1:
            raise ConfigError(f"dropout={rate} must be from 0 to 1")
        self.rate = rate

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if not self.now:
            return x
        return x * keep(x, self.rate) if draws_cheaply(x) else F.dropout(x, self.rate)

    def after_relu(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Both in one: what is positive after them tells the gradient all, so no mask is kept.

        y = dropout(max(x, 0))
        """
        if runs_kernels(x):
            from saccade.blocks.kernels.activation import relu_dropped

            return relu_dropped(x, rate=self.now)
        if self.now and draws_cheaply(x):
            return ReluDropout.apply(x, self.rate)
        return self(F.relu(x))

    @property
    def now(self) -> float:
        """The share of elements that is zeroed: none when not training."""
        return self.rate if self.training else 0.0

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class DropPath(nn.Module):
    """Leave a whole branch out for some rows of a batch (Huang et al. 2016, arXiv:1603.09382).

        y = m · x / (1 − r)        m ∼ Bernoulli(1 − r), one for each row

    With it a deep network is trained as many shallower ones.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ConfigError(f"drop_path={rate} must be at least 0 and below 1")
        self.rate = rate

    def forward(self, x: Float[Tensor, "B *rest"]) -> Float[Tensor, "B *rest"]:
        if not self.now:
            return x
        kept = x.new_empty(len(x), *[1] * (x.dim() - 1)).bernoulli_(1 - self.rate)
        return x * (kept / (1 - self.rate))

    @property
    def now(self) -> float:
        """The rate at which rows are left out: none when not training."""
        return self.rate if self.training else 0.0

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


def growing(rate: float, depth: int) -> Iterator[float]:
    """A rate for each block: none at the first, `rate` at the last, even steps between."""
    return (rate * number / max(1, depth - 1) for number in range(depth))


def draws_cheaply(x: Float[Tensor, "*shape"]) -> bool:
    """Whether random bits of our own beat torch's dropout."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def keep(x: Float[Tensor, "*shape"], rate: float) -> Float[Tensor, "*shape"]:
    """What to multiply by: zero for a share of the elements, 1 / (1 − r) for the others."""
    draws = torch.empty(-(-x.numel() // PER_DRAW), dtype=torch.int64).random_(-(1 << 63), None)
    lanes = draws.view(torch.int16)[: x.numel()].view(x.shape)
    kept = torch.empty(x.shape, dtype=x.dtype)
    # Into floats at once: comparing into booleans and converting these takes four times as long.
    torch.ge(lanes, dropped_chances(rate) - CHANCES // 2, out=kept)
    return kept.mul_(kept_scale(rate))


def dropped_chances(rate: float) -> int:
    """How many of an element's chances drop it."""
    return round(rate * CHANCES)


def kept_scale(rate: float) -> float:
    left = CHANCES - dropped_chances(rate)
    return CHANCES / left if left else 0.0


class ReluDropout(torch.autograd.Function):
    """Forward keeps nothing but its own output, which the next layer keeps anyway.

    dx = dy / (1 − r) where y > 0, else 0
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        y = (x * keep(x, rate)).relu_()
        ctx.save_for_backward(y)
        ctx.scale = kept_scale(rate)
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (y,) = ctx.saved_tensors
        # Not a product with y > 0: comparing into floats in one pass.
        return torch.ops.aten.threshold_backward(grads[0], y, 0).mul_(ctx.scale), None
