"""Parts of a Transformer packed for inference: what training needs is gone.

No dropout, no gradients, no watchers; projections of the same input are one product, a residual
and the norm after it one function. They take rows: whose positions these are, a memory knows.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import together
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.inference.affine import Affine, Precision, affine
from saccade.blocks.kernels import runs_kernels
from saccade.blocks.residual import Residual, Sums

MANY_ROWS = 4096  # from which our norm beats torch's
Projection = Literal["q", "kv", "qkv"]


def joint_product(
    layers: Sequence[nn.Linear],
    precision: Precision | None,
    scale: Float[Tensor, " all"] | None = None,
) -> Affine:
    """Several layers of the same input as one; without a precision they stay as they are.

    What the product is multiplied by afterwards may go into its weights: γ (W x + b).
    """
    if precision is None:
        assert scale is None
        return lambda x: together(x, *layers)
    weight = torch.cat([layer.weight.detach() for layer in layers])
    bias = torch.cat([layer.bias.detach() for layer in layers])
    if scale is not None:
        weight, bias = weight * scale.detach()[:, None], bias * scale.detach()
    return affine(weight, bias, precision=precision)


class PackedAttention:
    """The projections of a `MultiHeadAttention`, those that a way of looking needs."""

    q: Affine
    kv: Affine
    qkv: Affine

    def __init__(
        self,
        site: MultiHeadAttention,
        precision: Precision,
        needs: Sequence[Projection],
        scale: Float[Tensor, " D"] | None = None,
    ) -> None:
        self.heads = site.heads
        if "q" in needs:
            self.q = joint_product([site.to_q], precision)
        if "kv" in needs:
            self.kv = joint_product([site.to_k, site.to_v], precision)
        if "qkv" in needs:
            self.qkv = joint_product([site.to_q, site.to_k, site.to_v], precision)
        self.output = joint_product([site.to_output], precision, scale)


class PackedNorm(NamedTuple):
    """A layer norm's numbers."""

    weight: Float[Tensor, " D"]
    bias: Float[Tensor, " D"]
    eps: float

    @classmethod
    def of(cls, norm: Any, precision: Precision) -> "PackedNorm":
        weight, bias = norm.weight.detach(), norm.bias.detach()
        if precision == "bfloat16":
            weight, bias = weight.bfloat16(), bias.bfloat16()
        return cls(weight, bias, norm.eps)


class PackedResidual:
    """A residual without dropout, and the norm after its sum."""

    def __init__(self, residual: Residual, following: nn.Module, precision: Precision) -> None:
        self.pre = residual.pre
        self.norm = PackedNorm.of(following if self.pre else residual.norm, precision)

    def before(self, x: Float[Tensor, "R D"]) -> Sums:
        """Of the first of a stack, whose own norm it is."""
        if not self.pre:
            return x, x
        if len(x) >= MANY_ROWS and runs_kernels(x):
            from saccade.blocks.kernels.residual import norm_beside

            return x, norm_beside(x, *self.norm)[0]
        return x, F.layer_norm(x, x.shape[-1:], *self.norm)

    def after(self, x: Float[Tensor, "R D"], change: Float[Tensor, "R D"]) -> Sums:
        """The change is overwritten by the sum.

        s = x + change        LayerNorm(s)
        """
        if runs_kernels(x):
            from saccade.blocks.inference.kernels import add_norm

            total, normed = add_norm(x, change, *self.norm)
        else:
            total = change.add_(x)
            normed = F.layer_norm(total, total.shape[-1:], *self.norm)
        return (total if self.pre else normed), normed


def embed(
    tokens: Int[Tensor, " R"],
    table: Float[Tensor, "V D"],
    scale: float,
    positions: Float[Tensor, "T D"],
    clock: Int[Tensor, " 2"],
    dtype: torch.dtype,
) -> Float[Tensor, "R D"]:
    """Words as vectors at the position that the clock shows, its two numbers together.

    x = scale · E[word] + P[time]
    """
    if runs_kernels(table):
        from saccade.blocks.inference import kernels

        return kernels.embed(tokens, table, scale, positions, clock, dtype)
    return (table[tokens] * scale + positions[clock.sum()]).to(dtype)
