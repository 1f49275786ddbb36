"""One head's rows of a product of queries, keys or values, in Triton: loaded and stored."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def load_rows(pointer, start, size, stride, head, width, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Positions start … start + size of one head; zero outside."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDTH)[None, :]
    at = (start + row).to(tl.int64) * stride + head * width + column
    return tl.load(pointer + at, mask=(row < size) & (column < width), other=0.0)


@triton.jit
def store_rows(
    pointer, x, start, size, stride, head, width, ROWS: tl.constexpr, WIDTH: tl.constexpr
):
    """The way back: what lies outside is left alone."""
    row, column = tl.arange(0, ROWS)[:, None], tl.arange(0, WIDTH)[None, :]
    at = (start + row).to(tl.int64) * stride + head * width + column
    inside = (row < size) & (column < width)
    tl.store(pointer + at, x.to(pointer.dtype.element_ty), mask=inside)


def side_by_side(x: Tensor) -> Tensor:
    """Heads next to each other within a position, as a linear layer writes them."""
    return x if x.stride(2) == 1 and x.stride(1) == x.shape[2] else x.contiguous()
