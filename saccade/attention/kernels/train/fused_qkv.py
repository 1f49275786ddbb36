"""Queries, keys and values that one product made: apart without a copy, and together again.

On the way back their three gradients are put side by side in one pass, which also sums them for
the product's biases.
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

ROWS, COLUMNS, WARPS = 8, 256, 4  # of a block: half a kilobyte of a row at a time
PROGRAMS = 1056  # eight to each of an H200's processors; each sums its rows' part


def apart(
    joint: Float[Tensor, "B T joined"], heads: int, *biases: Float[Tensor, " D"]
) -> tuple[Float[Tensor, "B N T K"], ...]:
    """What equal parts of the joint product are to each head; as many parts as biases.

        ∂joint = [∂q; ∂k; ∂v]        ∂b = Σ ∂joint over all rows

    The biases are in the product already: here they only get their gradients.
    """
    return _Apart.apply(joint, heads, *biases)


class _Apart(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, joint: Tensor, heads: int, *biases: Tensor) -> tuple[Tensor, ...]:
        ctx.dtypes = [bias.dtype for bias in biases]
        parts = joint.chunk(len(biases), dim=-1)
        return tuple(part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        parts = [x.transpose(1, 2).flatten(2) for x in grads]  # (B, T, D), as a rule no copy
        joined, sums = _joined(parts)
        by_bias = (one.to(dtype) for one, dtype in zip(sums, ctx.dtypes))
        return joined, None, *by_bias


def _joined(parts: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Three (or fewer) side by side, and the sum of each over all rows."""
    *batch, width = parts[0].shape
    parts = [x.contiguous() for x in parts]
    rows, count = parts[0].numel() // width, len(parts)
    blocks = triton.cdiv(width, COLUMNS)
    programs = max(1, min(PROGRAMS // (blocks * count), triton.cdiv(rows, ROWS)))
    joined = parts[0].new_empty(*batch, count * width)
    sums = parts[0].new_empty(count, programs, width, dtype=torch.float32)
    _join[(programs, blocks, count)](
        parts[0], parts[min(1, count - 1)], parts[count - 1], joined, sums,
        rows, width, programs, count, ROWS=ROWS, COLUMNS=COLUMNS, num_warps=WARPS,
    )  # fmt: skip
    return joined, sums.sum(dim=1)


@triton.jit
def _join(
    first, second, third, joined, sums, rows, width, programs, count,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    which = tl.program_id(2)
    part = first
    if which == 1:
        part = second
    if which == 2:
        part = third
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)  # summed at the end: threads need not meet before
    for start in range(tl.program_id(0) * ROWS, rows, programs * ROWS):
        row = (start + tl.arange(0, ROWS))[:, None].to(tl.int64)
        inside = (row < rows) & (column < width)[None, :]
        x = tl.load(part + row * width + column[None, :], mask=inside, other=0.0)
        at = row * (count * width) + which * width + column[None, :]
        tl.store(joined + at, x, mask=inside)
        total += x.to(tl.float32)
    own = sums + (which * programs + tl.program_id(0)) * width + column
    tl.store(own, tl.sum(total, 0), mask=column < width)
