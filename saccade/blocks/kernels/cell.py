"""A recurrent cell's step after its products, one kernel for each kind; see `gates.py`.

Products may stand beside others in wider rows, and the new state may take the old one's place.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

BLOCK = 256
KINDS = {"vanilla": 0, "gru": 1, "lstm": 2}


def cell(
    kind: str,
    x: Float[Tensor, "R G"],
    u: Float[Tensor, "R G"],
    state: tuple[Float[Tensor, "R H"], Float[Tensor, "R H"] | None],
    into: tuple[Float[Tensor, "R H"], Float[Tensor, "R H"] | None] | None,
) -> tuple[Float[Tensor, "R H"], Float[Tensor, "R H"] | None]:
    """The state after a step, put `into` these places where they are given."""
    h, c = (None if part is None else part.contiguous() for part in state)
    assert h is not None
    if into is None:
        into = torch.empty_like(h), None if c is None else torch.empty_like(c)
    after, cells = into
    rows, width = h.shape
    _cell[(rows, triton.cdiv(width, BLOCK))](
        x, u, h, h if c is None else c, after, after if cells is None else cells,
        x.stride(0), u.stride(0), width, KIND=KINDS[kind], BLOCK=BLOCK, num_warps=2,
    )  # fmt: skip
    return into


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def _tanh(x):
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * x))


@triton.jit
def _cell(
    x_at, u_at, h_at, c_at, to_h_at, to_c_at, x_stride, u_stride, width,
    KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, column = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    real, at = column < width, row * width + column
    x_at, u_at = x_at + row * x_stride + column, u_at + row * u_stride + column
    x = tl.load(x_at, mask=real, other=0.0).to(tl.float32)
    first = x + tl.load(u_at, mask=real, other=0.0).to(tl.float32)
    h = _tanh(first)
    if KIND > 0:
        x = tl.load(x_at + width, mask=real, other=0.0).to(tl.float32)
        second = x + tl.load(u_at + width, mask=real, other=0.0).to(tl.float32)
        x = tl.load(x_at + 2 * width, mask=real, other=0.0).to(tl.float32)
        u = tl.load(u_at + 2 * width, mask=real, other=0.0).to(tl.float32)
        if KIND == 1:
            new = _tanh(x + _sigmoid(first) * u)
            old = tl.load(h_at + at, mask=real, other=0.0).to(tl.float32)
            h = new + _sigmoid(second) * (old - new)
        else:
            c = tl.load(c_at + at, mask=real, other=0.0).to(tl.float32)
            c = _sigmoid(second) * c + _sigmoid(first) * _tanh(x + u)
            tl.store(to_c_at + at, c.to(to_c_at.dtype.element_ty), mask=real)
            x = tl.load(x_at + 3 * width, mask=real, other=0.0).to(tl.float32)
            last = x + tl.load(u_at + 3 * width, mask=real, other=0.0).to(tl.float32)
            h = _sigmoid(last) * _tanh(c)
    tl.store(to_h_at + at, h.to(to_h_at.dtype.element_ty), mask=real)
