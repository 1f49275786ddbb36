"""One look by the additive score and its way back, each one kernel: a step of a recurrence.

A row's keys and values pass by in strips; its scores stay in registers. Keys and values are there
once for a sentence, however many beams it has: those that ask one after another find them in the
cache. Queries and keys come doubled: see `additive.doubled_score`.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

TILE_BYTES = 16384  # of keys or values at once


def look(
    q: Float[Tensor, "R F"],
    keys: Float[Tensor, "B S F"],
    values: Float[Tensor, "B S D"],
    bias: Float[Tensor, "B 1 S"] | None,
    w: Float[Tensor, " F"],
    onto: Float[Tensor, "R D"] | None = None,
) -> tuple[Float[Tensor, "B k S"], Float[Tensor, "R D"]]:
    """Where each row looks, and what it reads there or, given something to add it onto, the bent
    sum; w is doubled.

    a = softmax over i of wᵀ σ(q + kᵢ)        c = Σᵢ aᵢ vᵢ        or        tanh(onto + c)
    """
    sentences, places, width = values.shape
    a, c = q.new_empty(sentences, len(q) // sentences, places), q.new_empty(len(q), width)
    _look[(len(q),)](
        q, keys, values, a if bias is None else bias, w, c if onto is None else onto, a, c, places,
        q.stride(0), 0 if onto is None else onto.stride(0), hidden=q.shape[1], width=width,
        BEAMS=a.shape[1], BIASED=bias is not None, BENDS=onto is not None, **_tile(keys),
    )  # fmt: skip
    return a, c


def look_back(
    dc: Float[Tensor, "B D"],
    da: Float[Tensor, "B S"] | None,
    a: Float[Tensor, "B S"],
    q: Float[Tensor, "B F"],
    keys: Float[Tensor, "B S F"],
    values: Float[Tensor, "B S D"],
    w: Float[Tensor, " F"],
    onto: tuple[Float[Tensor, "B S F"], Float[Tensor, "B F"]],
) -> Float[Tensor, "B F"]:
    """The gradient of half of q, given those of what was read and perhaps of the weights.

    Those of halves of the keys, without w, and of w, per row, are added `onto` what is there.
    """
    rows, places, width = values.shape
    dq = torch.empty_like(q)
    _look_back[(rows,)](
        dc, a if da is None else da, a, q, keys, values, w, *onto, dq, places,
        hidden=q.shape[1], width=width, ASKED=da is not None, **_tile(keys),
    )  # fmt: skip
    return dq


def _tile(keys: Float[Tensor, "B S F"]) -> dict[str, int]:
    tall = max(16, 1 << (keys.shape[1] - 1).bit_length())
    wide = max(16, TILE_BYTES // keys.element_size() // tall)
    return {"TALL": tall, "WIDE": wide, "num_warps": 4}


@triton.jit
def _sigma(q_at, k_at, row, s, f, places, hidden):
    inside = f < hidden
    q = tl.load(q_at + f, mask=inside, other=0.0).to(tl.float32)
    at = (row * places + s[:, None]) * hidden + f[None, :]
    k = tl.load(k_at + at, mask=(s < places)[:, None] & inside[None, :], other=0.0).to(tl.float32)
    return 1.0 / (1.0 + tl.exp(-q[None, :] - k))


@triton.jit
def _look(
    q_at, k_at, v_at, bias_at, w_at, onto_at, a_at, c_at, places, q_stride, onto_stride,
    hidden: tl.constexpr, width: tl.constexpr, BEAMS: tl.constexpr, BIASED: tl.constexpr,
    BENDS: tl.constexpr, TALL: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row, s = tl.program_id(0).to(tl.int64), tl.arange(0, TALL)
    sentence, real = row // BEAMS, s < places
    e = tl.zeros([TALL], tl.float32)
    for start in range(0, hidden, WIDE):
        f = start + tl.arange(0, WIDE)
        w = tl.load(w_at + f, mask=f < hidden, other=0.0).to(tl.float32)
        sigma = _sigma(q_at + row * q_stride, k_at, sentence, s, f, places, hidden)
        e += tl.sum(w[None, :] * sigma, axis=1)
    if BIASED:
        e += tl.load(bias_at + sentence * places + s, mask=real, other=0.0).to(tl.float32)
    e = tl.where(real, e, float("-inf"))
    a = tl.exp(e - tl.max(e, axis=0))
    a = a / tl.sum(a, axis=0)
    tl.store(a_at + row * places + s, a.to(a_at.dtype.element_ty), mask=real)
    for start in range(0, width, WIDE):
        d = start + tl.arange(0, WIDE)
        inside = d < width
        at = (sentence * places + s[:, None]) * width + d[None, :]
        v = tl.load(v_at + at, mask=real[:, None] & inside[None, :], other=0.0).to(tl.float32)
        c = tl.sum(a[:, None] * v, axis=0)
        if BENDS:
            c += tl.load(onto_at + row * onto_stride + d, mask=inside, other=0.0).to(tl.float32)
            c = 1.0 - 2.0 / (1.0 + tl.exp(2.0 * c))
        tl.store(c_at + row * width + d, c.to(c_at.dtype.element_ty), mask=inside)


@triton.jit
def _look_back(
    dc_at, da_at, a_at, q_at, k_at, v_at, w_at, dk_at, dw_at, dq_at, places,
    hidden: tl.constexpr, width: tl.constexpr, ASKED: tl.constexpr, TALL: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    row, s = tl.program_id(0).to(tl.int64), tl.arange(0, TALL)
    real = s < places
    da = tl.zeros([TALL], tl.float32)
    if ASKED:
        da += tl.load(da_at + row * places + s, mask=real, other=0.0).to(tl.float32)
    for start in range(0, width, WIDE):
        d = start + tl.arange(0, WIDE)
        at = (row * places + s[:, None]) * width + d[None, :]
        v = tl.load(v_at + at, mask=real[:, None] & (d < width)[None, :], other=0.0).to(tl.float32)
        dc = tl.load(dc_at + row * width + d, mask=d < width, other=0.0).to(tl.float32)
        da += tl.sum(v * dc[None, :], axis=1)
    a = tl.load(a_at + row * places + s, mask=real, other=0.0).to(tl.float32)
    de = a * (da - tl.sum(a * da, axis=0))
    for start in range(0, hidden, WIDE):
        f = start + tl.arange(0, WIDE)
        inside = f < hidden
        y = 2.0 * _sigma(q_at + row * hidden, k_at, row, s, f, places, hidden) - 1.0
        slope = de[:, None] * (1.0 - y * y)
        w = tl.load(w_at + f, mask=inside, other=0.0)
        tl.store(dq_at + row * hidden + f, w * tl.sum(slope, axis=0), mask=inside)
        at = (row * places + s[:, None]) * hidden + f[None, :]
        here = real[:, None] & inside[None, :]
        tl.store(dk_at + at, tl.load(dk_at + at, mask=here, other=0.0) + slope, mask=here)
        dw = tl.load(dw_at + row * hidden + f, mask=inside, other=0.0)
        dw += tl.sum(de[:, None] * y, axis=0)
        tl.store(dw_at + row * hidden + f, dw, mask=inside)
