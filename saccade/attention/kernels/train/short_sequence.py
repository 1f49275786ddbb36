"""Attention within short sequences that lie end to end, in Triton: one program to a head.

A sentence's whole T×S scores fit into registers, so the forward pass reads q, k, v once and the
backward pass computes the weights again instead of reading anything that was kept.
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


@triton.jit
def _weights(q, k, queries, keys, scale, CAUSAL: tl.constexpr, T: tl.constexpr, S: tl.constexpr):
    """softmax(q kᵀ · scale) over the keys there are; zero for whoever sees none."""
    t, s = tl.arange(0, T)[:, None], tl.arange(0, S)[None, :]
    seen = (s < keys) & (t < queries)
    if CAUSAL:
        seen = seen & (s <= t)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * 1.4426950408889634)
    scores = tl.where(seen, scores, -1e30)
    highest = tl.max(scores, 1)
    p = tl.where(seen, tl.exp2(scores - highest[:, None]), 0.0)
    total = tl.sum(p, 1)
    return p / tl.where(total > 0, total, 1.0)[:, None]


@triton.jit
def _forward(
    q_at, k_at, v_at, out, q_starts, k_starts, q_stride, k_stride, v_stride, heads, width, scale,
    CAUSAL: tl.constexpr, T: tl.constexpr, S: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Output = A v."""
    row, head = tl.program_id(0), tl.program_id(1)
    q_start, k_start = tl.load(q_starts + row), tl.load(k_starts + row)
    queries, keys = tl.load(q_starts + row + 1) - q_start, tl.load(k_starts + row + 1) - k_start
    q = load_rows(q_at, q_start, queries, q_stride, head, width, T, WIDTH)
    k = load_rows(k_at, k_start, keys, k_stride, head, width, S, WIDTH)
    v = load_rows(v_at, k_start, keys, v_stride, head, width, S, WIDTH)
    p = _weights(q, k, queries, keys, scale, CAUSAL, T, S)
    o = tl.dot(p.to(v.dtype), v, input_precision="ieee")
    store_rows(out, o, q_start, queries, heads * width, head, width, T, WIDTH)


@triton.jit
def _backward(
    q_at, k_at, v_at, do_at, dq_at, dk_at, dv_at, q_starts, k_starts,
    q_stride, k_stride, v_stride, dq_stride, dk_stride, heads, width, scale,
    CAUSAL: tl.constexpr, T: tl.constexpr, S: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """∂v = Aᵀ ∂o        ∂E = A ∘ (∂o vᵀ − rowsum(A ∘ ∂o vᵀ))        ∂q = ∂E k        ∂k = ∂Eᵀ q."""
    row, head = tl.program_id(0), tl.program_id(1)
    q_start, k_start = tl.load(q_starts + row), tl.load(k_starts + row)
    queries, keys = tl.load(q_starts + row + 1) - q_start, tl.load(k_starts + row + 1) - k_start
    q = load_rows(q_at, q_start, queries, q_stride, head, width, T, WIDTH)
    k = load_rows(k_at, k_start, keys, k_stride, head, width, S, WIDTH)
    v = load_rows(v_at, k_start, keys, v_stride, head, width, S, WIDTH)
    do = load_rows(do_at, q_start, queries, heads * width, head, width, T, WIDTH)
    p = _weights(q, k, queries, keys, scale, CAUSAL, T, S)
    dv = tl.dot(tl.trans(p.to(do.dtype)), do, input_precision="ieee")
    store_rows(dv_at, dv, k_start, keys, dk_stride, head, width, S, WIDTH)
    dp = tl.dot(do, tl.trans(v), input_precision="ieee")
    de = (p * (dp - tl.sum(p * dp, 1)[:, None]) * scale).to(q.dtype)
    dq = tl.dot(de, k, input_precision="ieee")
    store_rows(dq_at, dq, q_start, queries, dq_stride, head, width, T, WIDTH)
    dk = tl.dot(tl.trans(de), q, input_precision="ieee")
    store_rows(dk_at, dk, k_start, keys, dk_stride, head, width, S, WIDTH)


def _sizes(q: Tensor, longest_query: int, longest_key: int) -> dict[str, Any]:
    t, s = few(longest_query), few(longest_key)
    warps = {16: 1, 32: 1, 64: 4, 128: 8}[max(t, s)]
    return {"T": t, "S": s, "WIDTH": few(q.shape[2]), "num_warps": warps}


@torch.library.custom_op("saccade::short_attention", mutates_args=())
def short_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest_query: int,
    longest_key: int,
    causal: bool,
    scale: float,
) -> Tensor:
    """What `attend` computes within each stretch; q, k, v are (positions, heads, width)."""
    q, k, v = side_by_side(q), side_by_side(k), side_by_side(v)
    _, heads, width = q.shape
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    _forward[(len(query_starts) - 1, heads)](
        q, k, v, out, query_starts, key_starts, q.stride(0), k.stride(0), v.stride(0),
        heads, width, scale, CAUSAL=causal, **_sizes(q, longest_query, longest_key),
    )  # fmt: skip
    return out


@torch.library.custom_op("saccade::short_attention_backward", mutates_args=())
def _gradients(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    grad: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest_query: int,
    longest_key: int,
    causal: bool,
    scale: float,
    joint: bool,
) -> list[Tensor]:
    """Gradients to q, to k and v side by side; or with `joint` to all three side by side."""
    q, k, v, grad = (side_by_side(x) for x in (q, k, v, grad.contiguous()))
    positions, heads, width = q.shape
    if joint:
        found = [q.new_empty(positions, 3, heads, width)]
        dq, dk, dv = found[0].unbind(1)
    else:
        found = [q.new_empty(positions, heads, width), k.new_empty(len(k), 2, heads, width)]
        dq, (dk, dv) = found[0], found[1].unbind(1)
    _backward[(len(query_starts) - 1, heads)](
        q, k, v, grad, dq, dk, dv, query_starts, key_starts,
        q.stride(0), k.stride(0), v.stride(0), dq.stride(0), dk.stride(0),
        heads, width, scale, CAUSAL=causal, **_sizes(q, longest_query, longest_key),
    )  # fmt: skip
    return found


@torch.library.custom_op("saccade::short_self_attention", mutates_args=())
def short_self_attention(
    qkv: Tensor, starts: Tensor, longest: int, causal: bool, scale: float
) -> Tensor:
    """The same for queries, keys and values of one product: (positions, 3, heads, width).

    So their gradients need not be put side by side afterwards.
    """
    return short_attention(*qkv.unbind(1), starts, starts, longest, longest, causal, scale)


@torch.library.custom_op("saccade::short_cross_attention", mutates_args=())
def short_cross_attention(
    q: Tensor,
    kv: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest_query: int,
    longest_key: int,
    scale: float,
) -> Tensor:
    """The same for keys and values of one product: (positions, 2, heads, width)."""
    starts = query_starts, key_starts
    return short_attention(q, *kv.unbind(1), *starts, longest_query, longest_key, False, scale)


@short_attention.register_fake
def _(q: Tensor, *_: Any) -> Tensor:
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


@short_self_attention.register_fake
def _(qkv: Tensor, *_: Any) -> Tensor:
    return qkv.new_empty(len(qkv), *qkv.shape[2:])


@short_cross_attention.register_fake
def _(q: Tensor, *_: Any) -> Tensor:
    return torch.empty(q.shape, dtype=q.dtype, device=q.device)


@_gradients.register_fake
def _(q: Tensor, k: Tensor, *rest: Any) -> list[Tensor]:
    positions, heads, width = q.shape
    if rest[-1]:
        return [q.new_empty(positions, 3, heads, width)]
    return [q.new_empty(positions, heads, width), k.new_empty(len(k), 2, heads, width)]


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    tensors = [x for x in inputs if isinstance(x, Tensor)]
    ctx.save_for_backward(*tensors)
    ctx.rest = inputs[len(tensors) :]


def _backpropagate(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    q, k, v, query_starts, key_starts = ctx.saved_tensors
    dq, dkv = _gradients(q, k, v, grad, query_starts, key_starts, *ctx.rest, False)
    return (dq, *dkv.unbind(1), None, None, None, None, None, None)


def _backpropagate_joint(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    qkv, starts = ctx.saved_tensors
    longest, *rest = ctx.rest
    (dqkv,) = _gradients(*qkv.unbind(1), grad, starts, starts, longest, longest, *rest, True)
    return dqkv, None, None, None, None


def _backpropagate_cross(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    q, kv, *starts = ctx.saved_tensors
    *longest, scale = ctx.rest
    dq, dkv = _gradients(q, *kv.unbind(1), grad, *starts, *longest, False, scale, False)
    return dq, dkv, None, None, None, None, None


short_attention.register_autograd(_backpropagate, setup_context=_remember)
short_self_attention.register_autograd(_backpropagate_joint, setup_context=_remember)
short_cross_attention.register_autograd(_backpropagate_cross, setup_context=_remember)
