"""What stands between the products of a decoding step, each as one kernel on the GPU."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor


def add_norm(
    x: Float[Tensor, "R D"],
    y: Float[Tensor, "R D"],
    weight: Float[Tensor, " D"],
    bias: Float[Tensor, " D"],
    eps: float,
) -> tuple[Float[Tensor, "R D"], Float[Tensor, "R D"]]:
    """A residual and the norm after it; `y` is overwritten by the sum.

    s = x + y        LayerNorm(s)
    """
    normed, width = torch.empty_like(y), y.shape[1]
    block = triton.next_power_of_2(width)
    warps = 4 if block > 256 else 1
    _add_norm[(len(y),)](x, y, weight, bias, normed, width, eps, BLOCK=block, num_warps=warps)
    return y, normed


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
    width = table.shape[1]
    out = torch.empty(len(tokens), width, dtype=dtype, device=table.device)
    block = triton.next_power_of_2(width)
    _embed[(len(tokens),)](tokens, table, scale, positions, clock, out, width, BLOCK=block)
    return out


@triton.jit
def _add_norm(x_at, y_at, weight_at, bias_at, normed_at, width, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * width
    column = tl.arange(0, BLOCK)
    there = column < width
    x = tl.load(x_at + row + column, mask=there, other=0.0).to(tl.float32)
    y = tl.load(y_at + row + column, mask=there, other=0.0).to(tl.float32)
    weight = tl.load(weight_at + column, mask=there, other=0.0).to(tl.float32)
    bias = tl.load(bias_at + column, mask=there, other=0.0).to(tl.float32)
    total = x + y
    mean = tl.sum(total, axis=0) / width
    off = tl.where(there, total - mean, 0.0)
    deviation = tl.sqrt(tl.sum(off * off, axis=0) / width + eps)
    tl.store(y_at + row + column, total.to(y_at.dtype.element_ty), mask=there)
    normed = off / deviation * weight + bias
    tl.store(normed_at + row + column, normed.to(normed_at.dtype.element_ty), mask=there)


@triton.jit
def _embed(tokens_at, table_at, scale, positions_at, clock_at, out_at, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    there = column < width
    token = tl.load(tokens_at + row).to(tl.int64)
    place = tl.load(clock_at) + tl.load(clock_at + 1)
    word = tl.load(table_at + token * width + column, mask=there, other=0.0).to(tl.float32)
    at = tl.load(positions_at + place * width + column, mask=there, other=0.0).to(tl.float32)
    out = word * scale + at
    tl.store(out_at + row * width + column, out.to(out_at.dtype.element_ty), mask=there)
