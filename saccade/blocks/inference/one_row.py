"""A linear layer of a single row on the GPU: nothing but the reading of its weights.

A product of one row has no use for tensor cores. What it takes is the time to read W once, and the
libraries' kernels, which are made for many rows, leave a third of what memory could give unused.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

# Found by trial on an H200: rows of W that a program reads, and how much of each at a time.
SHAPE = {"OUT": 4, "BLOCK": 2048, "num_warps": 4}


def one_row(
    x: Float[Tensor, "1 D"],
    weight: Float[Tensor, "out D"],
    bias: Float[Tensor, " out"] | None,
    *,
    relu: bool = False,
) -> Float[Tensor, "1 out"]:
    """One row of W x + b, or of max(W x + b, 0); summed in float32."""
    out, width = weight.shape
    y = x.new_empty(1, out)
    _one_row[(triton.cdiv(out, SHAPE["OUT"]),)](
        x, weight, bias, y, out, width, weight.stride(0), HAS_BIAS=bias is not None, RELU=relu,
        **SHAPE,
    )  # fmt: skip
    return y


@triton.jit
def _one_row(
    x_at, weight_at, bias_at, y_at, out, width, stride,
    HAS_BIAS: tl.constexpr, RELU: tl.constexpr, OUT: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0) * OUT + tl.arange(0, OUT), tl.arange(0, BLOCK)
    there = row < out
    start_at = weight_at + row.to(tl.int64)[:, None] * stride + column[None, :]
    sums = tl.zeros((OUT, BLOCK), tl.float32)
    for start in tl.range(0, width, BLOCK):
        inside = start + column < width
        x = tl.load(x_at + start + column, mask=inside, other=0.0).to(tl.float32)
        w = tl.load(start_at + start, mask=there[:, None] & inside[None, :], other=0.0)
        sums += w.to(tl.float32) * x[None, :]
    y = tl.sum(sums, axis=1)
    if HAS_BIAS:
        y += tl.load(bias_at + row, mask=there, other=0.0).to(tl.float32)
    if RELU:
        y = tl.maximum(y, 0.0)
    tl.store(y_at + row, y.to(y_at.dtype.element_ty), mask=there)
