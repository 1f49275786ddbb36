"""One look by the additive score and its way back, each one kernel: a step of a recurrence.

A row's keys and values pass by in strips; its scores stay in registers.
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

TILE = 4096  # elements of keys or values at once


def look(
    q: Float[Tensor, "B F"],
    keys: Float[Tensor, "B S F"],
    values: Float[Tensor, "B S D"],
    hide: Float[Tensor, "B 1 S"] | None,
    w: Float[Tensor, " F"],
) -> tuple[Float[Tensor, "B 1 S"], Float[Tensor, "B D"]]:
    """Where each row looks, and what it reads there.

    a = softmax over i of wᵀ tanh(q + kᵢ)        c = Σᵢ aᵢ vᵢ
    """
    rows, places, width = values.shape
    a, c = q.new_empty(rows, 1, places), q.new_empty(rows, width)
    sizes = {"places": places, "hidden": q.shape[1], "width": width}
    hides = {"hide_at": a if hide is None else hide, "HIDES": hide is not None}
    _look[(rows,)](q, keys, values, w, a, c, **hides, **sizes, **_tile(places))
    return a, c


def look_back(
    dc: Float[Tensor, "B D"],
    a: Float[Tensor, "B 1 S"],
    q: Float[Tensor, "B F"],
    keys: Float[Tensor, "B S F"],
    values: Float[Tensor, "B S D"],
    w: Float[Tensor, " F"],
    *,
    onto: tuple[Float[Tensor, "B S F"], Float[Tensor, "B F"]],
) -> Float[Tensor, "B F"]:
    """The gradient of q; those of the keys, without w, and of w, per row, are added `onto`."""
    rows, places, width = values.shape
    dq = torch.empty_like(q)
    sizes = {"places": places, "hidden": q.shape[1], "width": width}
    _look_back[(rows,)](dc, a, q, keys, values, w, *onto, dq, **sizes, **_tile(places))
    return dq


def _tile(places: int) -> dict[str, int]:
    tall = max(16, 1 << (places - 1).bit_length())
    return {"TALL": tall, "WIDE": max(16, TILE // tall), "num_warps": 4}


@triton.jit
def _bent(q_at, k_at, row, s, f, places, hidden):
    inside = f < hidden
    q = tl.load(q_at + row * hidden + f, mask=inside, other=0.0).to(tl.float32)
    at = (row * places + s[:, None]) * hidden + f[None, :]
    k = tl.load(k_at + at, mask=(s < places)[:, None] & inside[None, :], other=0.0).to(tl.float32)
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * (q[None, :] + k)))


@triton.jit
def _look(
    q_at,
    k_at,
    v_at,
    w_at,
    a_at,
    c_at,
    hide_at,
    places,
    hidden: tl.constexpr,
    width: tl.constexpr,
    HIDES: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
):
    row, s = tl.program_id(0).to(tl.int64), tl.arange(0, TALL)
    real = s < places
    e = tl.zeros([TALL], tl.float32)
    for start in range(0, hidden, WIDE):
        f = start + tl.arange(0, WIDE)
        w = tl.load(w_at + f, mask=f < hidden, other=0.0).to(tl.float32)
        e += tl.sum(_bent(q_at, k_at, row, s, f, places, hidden) * w[None, :], axis=1)
    if HIDES:
        e += tl.load(hide_at + row * places + s, mask=real, other=0.0).to(tl.float32)
    e = tl.where(real, e, float("-inf"))
    a = tl.exp(e - tl.max(e, axis=0))
    a = a / tl.sum(a, axis=0)
    tl.store(a_at + row * places + s, a, mask=real)
    for start in range(0, width, WIDE):
        d = start + tl.arange(0, WIDE)
        at = (row * places + s[:, None]) * width + d[None, :]
        v = tl.load(v_at + at, mask=real[:, None] & (d < width)[None, :], other=0.0)
        tl.store(c_at + row * width + d, tl.sum(a[:, None] * v, axis=0), mask=d < width)


@triton.jit
def _look_back(
    dc_at,
    a_at,
    q_at,
    k_at,
    v_at,
    w_at,
    dk_at,
    dw_at,
    dq_at,
    places,
    hidden: tl.constexpr,
    width: tl.constexpr,
    TALL: tl.constexpr,
    WIDE: tl.constexpr,
):
    row, s = tl.program_id(0).to(tl.int64), tl.arange(0, TALL)
    real = s < places
    da = tl.zeros([TALL], tl.float32)
    for start in range(0, width, WIDE):
        d = start + tl.arange(0, WIDE)
        at = (row * places + s[:, None]) * width + d[None, :]
        v = tl.load(v_at + at, mask=real[:, None] & (d < width)[None, :], other=0.0)
        dc = tl.load(dc_at + row * width + d, mask=d < width, other=0.0)
        da += tl.sum(v * dc[None, :], axis=1)
    a = tl.load(a_at + row * places + s, mask=real, other=0.0)
    de = a * (da - tl.sum(a * da, axis=0))
    for start in range(0, hidden, WIDE):
        f = start + tl.arange(0, WIDE)
        inside = f < hidden
        y = _bent(q_at, k_at, row, s, f, places, hidden)
        slope = de[:, None] * (1.0 - y * y)
        w = tl.load(w_at + f, mask=inside, other=0.0)
        tl.store(dq_at + row * hidden + f, w * tl.sum(slope, axis=0), mask=inside)
        at = (row * places + s[:, None]) * hidden + f[None, :]
        here = real[:, None] & inside[None, :]
        tl.store(dk_at + at, tl.load(dk_at + at, mask=here, other=0.0) + slope, mask=here)
        dw = tl.load(dw_at + row * hidden + f, mask=inside, other=0.0)
        dw += tl.sum(de[:, None] * y, axis=0)
        tl.store(dw_at + row * hidden + f, dw, mask=inside)
