"""Attention within sequences that lie end to end: which kernel serves."""

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON
from saccade.attention.kernels.train.ragged import ragged_attention
from saccade.attention.segments import Segments

SHORT = 128  # positions of a sequence whose scores fit into registers
HALVES = (torch.bfloat16, torch.float16)


def packed_attention(
    q: Float[Tensor, "T N K"],
    k: Float[Tensor, "S N K"],
    v: Float[Tensor, "S N K"],
    segments: Segments,
    *,
    causal: bool,
    scale: float,
) -> Float[Tensor, "T N K"]:
    """What `attend` computes under `segments.mask`, without computing what it hides."""
    longest = segments.longest_query, segments.longest_key
    starts = segments.query_starts, segments.key_starts
    if not _kernels_take(q):
        return ragged_attention(q, k, v, segments, causal=causal, scale=scale)
    if max(longest) <= SHORT and HAS_TRITON:
        from saccade.attention.kernels.train.short_sequence import short_attention

        return short_attention(q, k, v, *starts, *longest, causal, scale)
    return torch.ops.aten._flash_attention_forward(
        q, k, v, *starts, *longest, 0.0, causal, False, scale=scale
    )[0]


def packed_self_attention(
    qkv: Float[Tensor, "T 3 N K"], segments: Segments, *, causal: bool, scale: float
) -> Float[Tensor, "T N K"]:
    """The same for queries, keys and values that one product made."""
    if _kernels_take(qkv) and segments.longest_query <= SHORT and HAS_TRITON:
        from saccade.attention.kernels.train.short_sequence import short_self_attention

        starts, longest = segments.query_starts, segments.longest_query
        return short_self_attention(qkv, starts, longest, causal, scale)
    q, k, v = qkv.unbind(1)
    return packed_attention(q, k, v, segments, causal=causal, scale=scale)


def packed_cross_attention(
    q: Float[Tensor, "T N K"], kv: Float[Tensor, "S 2 N K"], segments: Segments, *, scale: float
) -> Float[Tensor, "T N K"]:
    """The same for queries of one product, and keys and values of another."""
    longest = segments.longest_query, segments.longest_key
    if _kernels_take(q) and max(longest) <= SHORT and HAS_TRITON:
        from saccade.attention.kernels.train.short_sequence import short_cross_attention

        starts = segments.query_starts, segments.key_starts
        return short_cross_attention(q, kv, *starts, *longest, scale)
    k, v = kv.unbind(1)
    return packed_attention(q, k, v, segments, causal=False, scale=scale)


def _kernels_take(x: Tensor) -> bool:
    return x.device.type == "cuda" and x.dtype in HALVES and x.shape[-1] <= 128
