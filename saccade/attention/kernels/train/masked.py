"""Attention of whole sequences under one mask for all of them, in Triton, both ways.

The weights are never written: tiles of scores come and go in registers, and a tile of which nobody
sees anything is passed over (Dao et al. 2022, arXiv:2205.14135). torch's own kernels that take a
mask add up in any order on the way back, and so may not run where an update must be repeatable.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from saccade.attention.kernels.train.head_rows import load_rows, side_by_side, store_rows
from saccade.data.batching.rows import few

TILE = 64  # queries, and keys, at a time


@triton.jit
def _seen(mask_at, t, s, queries, keys, stride, T: tl.constexpr):
    """Which of T queries from t on may look at which of T keys from s on."""
    row, column = t + tl.arange(0, T)[:, None], s + tl.arange(0, T)[None, :]
    inside = (row < queries) & (column < keys)
    return tl.load(mask_at + row * stride + column, mask=inside, other=0) != 0


@triton.jit
def _scores(q, k, seen, scale):
    """In powers of two; what is not seen is as low as can be."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * 1.4426950408889634)
    return tl.where(seen, scores, -1e30)


@triton.jit
def _forward(
    q_at, k_at, v_at, mask_at, out, lse_at, queries, keys,
    q_stride, k_stride, v_stride, mask_stride, heads, width, scale,
    T: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Output = A v, and log₂ of what each row of A was divided by."""
    t, row, head = tl.program_id(0) * T, tl.program_id(1), tl.program_id(2)
    q = load_rows(q_at, row * queries + t, queries - t, q_stride, head, width, T, WIDTH)
    highest, total = tl.full([T], -1e30, tl.float32), tl.zeros([T], tl.float32)
    o = tl.zeros([T, WIDTH], tl.float32)
    for s in range(0, keys, T):
        seen = _seen(mask_at, t, s, queries, keys, mask_stride, T)
        if tl.sum(tl.sum(seen.to(tl.int32), 1), 0) > 0:
            k = load_rows(k_at, row * keys + s, keys - s, k_stride, head, width, T, WIDTH)
            v = load_rows(v_at, row * keys + s, keys - s, v_stride, head, width, T, WIDTH)
            scores = _scores(q, k, seen, scale)
            higher = tl.maximum(highest, tl.max(scores, 1))
            p = tl.where(seen, tl.exp2(scores - higher[:, None]), 0.0)
            fade = tl.exp2(highest - higher)
            total = total * fade + tl.sum(p, 1)
            o = o * fade[:, None] + tl.dot(p.to(v.dtype), v, input_precision="ieee")
            highest = higher
    blind = total == 0
    o = o / tl.where(blind, 1.0, total)[:, None]
    store_rows(out, o, row * queries + t, queries - t, heads * width, head, width, T, WIDTH)
    lse = tl.where(blind, 1e30, highest + tl.log2(tl.where(blind, 1.0, total)))
    place = t + tl.arange(0, T)
    tl.store(lse_at + (row * heads + head) * queries + place, lse, mask=place < queries)


@triton.jit
def _slopes(q, k, v, do, seen, lse, delta, scale):
    """A, and ∂E = A ∘ (∂o vᵀ − rowsum(o ∘ ∂o)) · scale."""
    p = tl.where(seen, tl.exp2(_scores(q, k, seen, scale) - lse[:, None]), 0.0)
    dp = tl.dot(do, tl.trans(v), input_precision="ieee")
    return p, p * (dp - delta[:, None]) * scale


@triton.jit
def _to_queries(
    q_at, k_at, v_at, mask_at, do_at, lse_at, delta_at, dq_at, queries, keys,
    q_stride, k_stride, v_stride, mask_stride, heads, width, scale,
    T: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """∂q = ∂E k, for some queries over all keys."""
    t, row, head = tl.program_id(0) * T, tl.program_id(1), tl.program_id(2)
    start, left, wide = row * queries + t, queries - t, heads * width
    q = load_rows(q_at, start, left, q_stride, head, width, T, WIDTH)
    do = load_rows(do_at, start, left, wide, head, width, T, WIDTH)
    place = t + tl.arange(0, T)
    at = (row * heads + head) * queries + place
    lse = tl.load(lse_at + at, mask=place < queries, other=1e30)
    delta = tl.load(delta_at + at, mask=place < queries, other=0.0)
    dq = tl.zeros([T, WIDTH], tl.float32)
    for s in range(0, keys, T):
        seen = _seen(mask_at, t, s, queries, keys, mask_stride, T)
        if tl.sum(tl.sum(seen.to(tl.int32), 1), 0) > 0:
            k = load_rows(k_at, row * keys + s, keys - s, k_stride, head, width, T, WIDTH)
            v = load_rows(v_at, row * keys + s, keys - s, v_stride, head, width, T, WIDTH)
            _, de = _slopes(q, k, v, do, seen, lse, delta, scale)
            dq += tl.dot(de.to(k.dtype), k, input_precision="ieee")
    store_rows(dq_at, dq, start, left, wide, head, width, T, WIDTH)


@triton.jit
def _to_keys(
    q_at, k_at, v_at, mask_at, do_at, lse_at, delta_at, dk_at, dv_at, queries, keys,
    q_stride, k_stride, v_stride, mask_stride, heads, width, scale,
    T: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """∂k = ∂Eᵀ q        ∂v = Aᵀ ∂o, for some keys over all queries."""
    s, row, head = tl.program_id(0) * T, tl.program_id(1), tl.program_id(2)
    start, left, wide = row * keys + s, keys - s, heads * width
    k = load_rows(k_at, start, left, k_stride, head, width, T, WIDTH)
    v = load_rows(v_at, start, left, v_stride, head, width, T, WIDTH)
    dk, dv = tl.zeros([T, WIDTH], tl.float32), tl.zeros([T, WIDTH], tl.float32)
    for t in range(0, queries, T):
        seen = _seen(mask_at, t, s, queries, keys, mask_stride, T)
        if tl.sum(tl.sum(seen.to(tl.int32), 1), 0) > 0:
            q = load_rows(q_at, row * queries + t, queries - t, q_stride, head, width, T, WIDTH)
            do = load_rows(do_at, row * queries + t, queries - t, wide, head, width, T, WIDTH)
            place = t + tl.arange(0, T)
            at = (row * heads + head) * queries + place
            lse = tl.load(lse_at + at, mask=place < queries, other=1e30)
            delta = tl.load(delta_at + at, mask=place < queries, other=0.0)
            p, de = _slopes(q, k, v, do, seen, lse, delta, scale)
            dv += tl.dot(tl.trans(p.to(do.dtype)), do, input_precision="ieee")
            dk += tl.dot(tl.trans(de.to(q.dtype)), q, input_precision="ieee")
    store_rows(dk_at, dk, start, left, wide, head, width, T, WIDTH)
    store_rows(dv_at, dv, start, left, wide, head, width, T, WIDTH)


def _launch(q: Tensor, count: int) -> tuple[Any, dict[str, Any]]:
    """A program for every tile of `count` positions of every head of every sequence."""
    rows, heads, _, width = q.shape
    wide = few(width)
    sizes = {"T": TILE, "WIDTH": wide, "num_warps": 4 if wide <= 64 else 8}
    return (triton.cdiv(count, TILE), rows, heads), sizes


def _rows(x: Tensor) -> Tensor:
    """All positions of all sequences end to end, each with its heads side by side."""
    return side_by_side(x.transpose(1, 2).flatten(0, 1))


@torch.library.custom_op("saccade::masked_attention", mutates_args=())
def masked_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float
) -> tuple[Tensor, Tensor]:
    """What `attend` computes; q, k, v are (B, N, positions, width), and the mask is for all.

    Also log₂ of what the weights of each query were divided by.
    """
    (B, N, T, K), S = q.shape, k.shape[2]
    rows, seen = [_rows(x) for x in (q, k, v)], mask.view(torch.uint8)
    out = q.new_empty(B, T, N, K)
    lse = q.new_empty(B, N, T, dtype=torch.float32)
    grid, sizes = _launch(q, T)
    strides = *(x.stride(0) for x in rows), seen.stride(0)
    _forward[grid](*rows, seen, out, lse, T, S, *strides, N, K, scale, **sizes)
    return out.transpose(1, 2), lse


@torch.library.custom_op("saccade::masked_attention_backward", mutates_args=())
def _gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor,
    out: Tensor,
    lse: Tensor,
    grad: Tensor,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    (B, N, T, K), S = q.shape, k.shape[2]
    rows, seen = [_rows(x) for x in (q, k, v)], mask.view(torch.uint8)
    flow = grad.transpose(1, 2).contiguous()  # (B, T, N, K)
    delta = (out.transpose(1, 2) * flow).sum(dim=-1, dtype=torch.float32)
    given = *rows, seen, flow, lse, delta.transpose(1, 2).contiguous()
    strides = *(x.stride(0) for x in rows), seen.stride(0)
    dq, dk, dv = (x.new_empty(B, count, N, K) for x, count in zip(rows, (T, S, S)))
    for count, kernel, found in ((T, _to_queries, (dq,)), (S, _to_keys, (dk, dv))):
        grid, sizes = _launch(q, count)
        kernel[grid](*given, *found, T, S, *strides, N, K, scale, **sizes)
    return dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2)


def _as_it_lies(x: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], x.shape[2], x.shape[1], x.shape[3]).transpose(1, 2)


@masked_attention.register_fake
def _(q: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    return _as_it_lies(q), q.new_empty(q.shape[:3], dtype=torch.float32)


@_gradients.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _as_it_lies(q), _as_it_lies(k), _as_it_lies(v)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.scale = inputs
    ctx.save_for_backward(*tensors, *output)


def _backpropagate(ctx: Any, grad: Tensor, _: Tensor) -> tuple[Any, ...]:
    return (*_gradients(*ctx.saved_tensors, grad, ctx.scale), None, None)


masked_attention.register_autograd(_backpropagate, setup_context=_remember)
