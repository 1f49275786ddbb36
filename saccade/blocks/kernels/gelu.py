"""GELU and the dropout after it in one pass; on the way back, the sum for the bias before it.

Hendrycks & Gimpel 2016, arXiv:1606.08415, in both forms.
"""
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
ROWS, COLUMNS, WARPS = 16, 256, 8  # of a block on the way back
PROGRAMS = 1056  # eight to each of an H200's processors; each sums its rows' part


def gelu_dropped(
    x: Float[Tensor, "*batch F"], bias: Float[Tensor, " F"], *, rate: float, tanh: bool
) -> Float[Tensor, "*batch F"]:
    """dropout(gelu(x)).

        gelu(x) = x Φ(x)        with tanh: x σ(2u), u = √(2/π) (x + 0.044715 x³)

    `bias` is in x already, which owes it its gradient: Σ ∂x over all rows.
    """
    return _GeluDropped.apply(x, bias, rate, tanh)


def gelu_(x: Float[Tensor, "*shape"], *, tanh: bool) -> Float[Tensor, "*shape"]:
    """gelu(x) in the place of x, for whoever needs no gradient."""
    assert x.is_contiguous()
    _forward[(triton.cdiv(x.numel(), BLOCK),)](
        x, x, x, x.numel(), *chances(0.0), DROP=False, TANH=tanh, BLOCK=BLOCK, num_warps=8
    )
    return x


class _GeluDropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, bias: Tensor, rate: float, tanh: bool) -> Tensor:
        x = x.contiguous()
        y, seed = torch.empty_like(x), draw_seed(x.device) if rate else x
        _forward[(triton.cdiv(x.numel(), BLOCK),)](
            x, y, seed, x.numel(), *chances(rate),
            DROP=rate > 0, TANH=tanh, BLOCK=BLOCK, num_warps=8,
        )  # fmt: skip
        ctx.save_for_backward(x, seed)
        ctx.rate, ctx.tanh, ctx.dtype = rate, tanh, bias.dtype
        return y

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        dy, (x, seed) = grads[0].contiguous(), ctx.saved_tensors
        dx, width = torch.empty_like(x), x.shape[-1]
        rows, blocks = x.numel() // width, triton.cdiv(width, COLUMNS)
        programs = max(1, min(PROGRAMS // blocks, triton.cdiv(rows, ROWS)))
        sums = torch.empty(programs, width, dtype=torch.float32, device=x.device)
        _backward[(programs, blocks)](
            dy, x, dx, sums, seed, rows, width, programs, *chances(ctx.rate),
            DROP=ctx.rate > 0, TANH=ctx.tanh, ROWS=ROWS, COLUMNS=COLUMNS, num_warps=WARPS,
        )  # fmt: skip
        return dx, sums.sum(dim=0).to(ctx.dtype), None, None


@triton.jit
def _share(x, TANH: tl.constexpr):
    """What x is multiplied by, and the slope of that.

    Φ to within 1e-7 (Abramowitz & Stegun 1964, 7.1.26), for half of what an exact one costs: the
    exponential in it is that of the slope.
    """
    if TANH:
        s = tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
        slope = s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * x * x)
    else:
        bell = tl.exp(-0.5 * x * x)
        t = 1.0 / (1.0 + 0.23164189 * tl.abs(x))
        tail = 0.5307027145 * t - 0.7265760135
        tail = (tail * t + 0.7107068705) * t - 0.142248368
        tail = (tail * t + 0.127414796) * t * bell  # Φ(−|x|)
        s = tl.where(x < 0, tail, 1 - tail)
        slope = 0.3989422804014327 * bell
    return s, slope


@triton.jit
def _forward(
    x_at, y_at, seed, size, dropped, scale,
    DROP: tl.constexpr, TANH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_at + at, mask=at < size, other=0.0).to(tl.float32)
    share, _ = _share(x, TANH)
    y = x * share
    if DROP:
        y *= kept(seed, at, dropped, scale)
    tl.store(y_at + at, y.to(y_at.dtype.element_ty), mask=at < size)


@triton.jit
def _backward(
    dy_at, x_at, dx_at, sums, seed, rows, width, programs, dropped, scale,
    DROP: tl.constexpr, TANH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """∂x = ∂y (share + x · slope)."""
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)  # summed at the end: threads need not meet before
    for start in range(tl.program_id(0) * ROWS, rows, programs * ROWS):
        row = (start + tl.arange(0, ROWS))[:, None].to(tl.int64)
        inside = (row < rows) & (column < width)[None, :]
        at = row * width + column[None, :]
        x = tl.load(x_at + at, mask=inside, other=0.0).to(tl.float32)
        dx = tl.load(dy_at + at, mask=inside, other=0.0).to(tl.float32)
        if DROP:
            dx *= kept(seed, at, dropped, scale)
        share, slope = _share(x, TANH)
        dx *= share + x * slope
        tl.store(dx_at + at, dx.to(dx_at.dtype.element_ty), mask=inside)
        total += dx
    own = sums + tl.program_id(0) * width + column
    tl.store(own, tl.sum(total, 0), mask=column < width)
