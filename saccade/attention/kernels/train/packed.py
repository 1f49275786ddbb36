"""Attention within short windows, under a mask, and of sequences that lie end to end: which kernel
serves.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON
from saccade.attention.kernels.train.dense import HALVES
from saccade.attention.kernels.train.ragged import ragged_attention
from saccade.attention.segments import Segments

SHORT = 128  # positions of a sequence whose scores fit into registers
NARROW = 64  # the width of a head whose keys and values fit beside them


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
    if takes_short(q, segments):
        from saccade.attention.kernels.train.short_sequence import short_attention

        return short_attention(q, k, v, *starts, *longest, causal, scale)
    return torch.ops.aten._flash_attention_forward(
        q, k, v, *starts, *longest, 0.0, causal, False, scale=scale
    )[0]


def takes_short(x: Tensor, segments: Segments) -> bool:
    """Whether the short-sequence kernel serves."""
    longest = max(segments.longest_query, segments.longest_key)
    return _kernels_take(x) and longest <= SHORT and HAS_TRITON


def takes_masked(q: Float[Tensor, "B N T K"], mask: Tensor) -> bool:
    """Whether the kernel for one mask of all sequences and heads serves."""
    shared = mask.shape[:3] == (1, 1, q.shape[2]) and mask.stride(3) == 1
    return shared and _kernels_take(q) and HAS_TRITON


def takes_windows(x: Tensor, cells: int, head_width: int) -> bool:
    """Whether the kernel for windows of one size serves what linear layers make of x."""
    mixed = torch.is_autocast_enabled("cuda")
    dtype = torch.get_autocast_dtype("cuda") if mixed else x.dtype
    fits = 0 < cells <= SHORT and head_width <= NARROW
    return x.device.type == "cuda" and dtype in HALVES and fits and HAS_TRITON


def _kernels_take(x: Tensor) -> bool:
    return x.device.type == "cuda" and x.dtype in HALVES and x.shape[-1] <= 128
