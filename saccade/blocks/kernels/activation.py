"""An activation and the dropout after it in one pass; no mask is kept for the way back."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

from saccade.blocks.kernels.chance import chances, draw_seed, kept

BLOCK = 4096


def relu_dropped(x: Float[Tensor, "*shape"], *, rate: float) -> Float[Tensor, "*shape"]:
    """dropout(max(x, 0))."""
    return _ReluDropped.apply(x, rate)


class _ReluDropped(torch.autograd.Function):
    """What is positive in the output tells the gradient all, and the next layer keeps it anyway.

    ∂x = ∂y / (1 − rate) where y > 0, else 0
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, rate: float) -> Tensor:
        x = x.contiguous()
        y, seed = torch.empty_like(x), draw_seed(x.device) if rate else x
        _forward[(triton.cdiv(x.numel(), BLOCK),)](
            x, y, seed, x.numel(), *chances(rate), DROP=rate > 0, BLOCK=BLOCK, num_warps=8
        )
        ctx.save_for_backward(y)
        ctx.rate = rate
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        dy, (y,) = grads[0].contiguous(), ctx.saved_tensors
        dx = torch.empty_like(dy)
        _backward[(triton.cdiv(y.numel(), BLOCK),)](
            dy, y, dx, y.numel(), chances(ctx.rate)[1], BLOCK=BLOCK, num_warps=8
        )
        return dx, None


@triton.jit
def _forward(x_at, y_at, seed, size, dropped, scale, DROP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    y = tl.maximum(tl.load(x_at + at, mask=at < size, other=0.0).to(tl.float32), 0.0)
    if DROP:
        y *= kept(seed, at, dropped, scale)
    tl.store(y_at + at, y.to(y_at.dtype.element_ty), mask=at < size)


@triton.jit
def _backward(dy_at, y_at, dx_at, size, scale, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_at + at, mask=at < size, other=0.0)
    dx = tl.load(dy_at + at, mask=at < size, other=0.0).to(tl.float32) * scale
    tl.store(dx_at + at, tl.where(y > 0, dx, 0.0).to(dx_at.dtype.element_ty), mask=at < size)
