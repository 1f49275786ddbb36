"""A linear layer as decoding uses it: weights joined, cast and packed once, then only read.

    y = W x + b        or        y = max(W x + b, 0)

Several layers of the same input are one, with their outputs side by side.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON
from saccade.blocks.inference.int8 import MOST_ROWS, Int8, filled_up

Precision = Literal["float32", "bfloat16", "int8"]
Affine = Callable[[Float[Tensor, "R D"]], Float[Tensor, "R out"]]


def affine(
    weight: Float[Tensor, "out D"],
    bias: Float[Tensor, " out"] | None,
    *,
    precision: Precision,
    relu: bool = False,
) -> Affine:
    """The fastest way to compute this layer where its weights lie."""
    if precision == "int8":
        return Int8(weight, bias, relu=relu)
    if precision == "bfloat16":
        weight, bias = weight.bfloat16(), None if bias is None else bias.bfloat16()
    if weight.device.type == "cpu" and weight.dtype == torch.float32 and _has_onednn():
        return Packed(weight, bias, relu=relu)
    return Plain(weight, bias, relu=relu)


def _has_onednn() -> bool:
    return torch.backends.mkldnn.is_available()


class Plain:
    """By torch's own kernels, the bend included where one of them can."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, relu: bool) -> None:
        self.weight, self.relu = weight.detach(), relu
        self.bias = None if bias is None else bias.detach()

    def __call__(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R out"]:
        if len(x) == 1 and x.is_cuda and x.dtype == torch.bfloat16 and HAS_TRITON:
            from saccade.blocks.inference.one_row import one_row

            return one_row(x.contiguous(), self.weight, self.bias, relu=self.relu)
        if self.relu and self.bias is not None and x.is_cuda:
            return torch._addmm_activation(self.bias, x, self.weight.mT)  # type: ignore[attr-defined]
        y = F.linear(x, self.weight, self.bias)
        return y.relu_() if self.relu else y


def scores(
    weight: Float[Tensor, "V D"], bias: Float[Tensor, " V"] | None, *, precision: Precision
) -> Affine:
    """The layer that scores words. Halves cannot tell good words apart, so sums leave in full."""
    if precision == "bfloat16" and weight.is_cuda:
        return Scores(weight, bias)
    return affine(weight, bias, precision=precision)


class Scores:
    """On the GPU from halves to float32. A bias is two more columns: its half, and the rest.

    W x + b ≈ [W, b₁, b₂] [x; 1; 1]        b₁ = half(b)        b₂ = half(b − b₁)
    """

    def __init__(self, weight: Float[Tensor, "V D"], bias: Float[Tensor, " V"] | None) -> None:
        halves, self.ones = weight.detach().bfloat16(), None
        if bias is not None:
            half = bias.detach().bfloat16()
            rest = (bias.detach() - half).bfloat16()
            # Eight columns, for products are fast where rows begin at multiples of 16 bytes.
            more = torch.stack([half, rest] + [torch.zeros_like(half)] * 6, dim=1)  # (V, 8)
            halves, self.ones = torch.cat([halves, more], dim=1), halves.new_ones(1, 8)
        self.weight = halves.mT

    def __call__(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R V"]:
        if self.ones is not None:
            x = torch.cat([x, self.ones.expand(len(x), -1)], dim=1)
        return torch.mm(x, self.weight, out_dtype=torch.float32)


class Packed:
    """On the CPU in float32: oneDNN's kernel with weights in the order in which it reads them."""

    def __init__(self, weight: Tensor, bias: Tensor | None, *, relu: bool) -> None:
        self.weight, self.relu = weight.detach(), relu
        self.bias = None if bias is None else bias.detach()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.contiguous(), None)

    def __call__(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "R out"]:
        # A row alone only reads the weights, in whatever order; for very many it does not matter.
        if len(x) == 1 or len(x) > MOST_ROWS:
            y = F.linear(x, self.weight, self.bias)
            return y.relu_() if self.relu else y
        bend, rows = "relu" if self.relu else "none", len(x)
        x = filled_up(x)
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, bend, [], "")[:rows]
