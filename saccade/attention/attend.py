"""Attention as a function: no parameters, no state, no randomness."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.attention import masks
from saccade.attention.kernels.sdpa import sdpa_with_lse
from saccade.attention.kernels.train.dense import dense_attention, learns_in_halves
from saccade.attention.kernels.train.packed import (
    packed_attention,
    takes_masked,
    takes_short,
)
from saccade.attention.look.view import View, Watcher
from saccade.attention.scores import Score, scaled_dot
from saccade.attention.segments import Segments

Mask = Bool[Tensor, "#B #N #T S"] | Segments | None


class Attended(NamedTuple):
    """What the queries read, and where they looked to read it."""

    output: Float[Tensor, "*batch T Kv"]
    weights: Float[Tensor, "*batch T S"]


def weigh(
    scores: Float[Tensor, "*batch T S"], *, mask: Bool[Tensor, "*#batch #T S"] | None = None
) -> Float[Tensor, "*batch T S"]:
    """Scores to weights in 0…1 that sum to one over what may be seen.

        aₜᵢ = exp eₜᵢ / Σⱼ exp eₜⱼ        eₜᵢ = −∞ where the mask is False

    A query that may look nowhere weighs everything zero, never NaN.
    """
    if mask is None:
        return scores.softmax(dim=-1)
    blind = ~mask.any(dim=-1, keepdim=True)  # (*, T, 1): softmax there would be 0/0
    weights = scores.masked_fill(~(mask | blind), -torch.inf).softmax(dim=-1)
    return weights.masked_fill(blind, 0.0)


def attend(
    q: Float[Tensor, "*batch T Kq"],
    k: Float[Tensor, "*batch S Kk"],
    v: Float[Tensor, "*batch S Kv"],
    *,
    mask: Bool[Tensor, "*#batch #T S"] | None = None,
    score: Score = scaled_dot,
) -> Attended:
    """Read from a memory: every query weighs all values by how well their keys fit.

        E = score(q, k)        A = softmax(E) over S        output = A v

    `mask` is True where a query may look. A query that may look nowhere reads zero.
    """
    weights = weigh(score(q, k), mask=mask)
    return Attended(weights @ v, weights)


def fused(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S Kv"],
    *,
    mask: Mask = None,
    causal: bool = False,
    bias: Float[Tensor, "#B #N T S"] | None = None,
    scale: float | None = None,
    watcher: Watcher | None = None,
) -> Float[Tensor, "B N T Kv"]:
    """What `attend` computes, by the kernel that never holds the T×S weights.

    `bias` is added to the scores. A watcher is shown what the weights follow from; the output is
    the same to the last bit, unless it answers with weights to read by.
    """
    if isinstance(mask, Segments):
        assert bias is None
        return _packed(q, k, v, mask, causal=causal, scale=scale, watcher=watcher)
    seen, hides = mask, causal
    if causal and q.shape[-2] == 1:
        causal = False  # the newest position sees all that there is
    if causal and (mask is not None or bias is not None or q.shape[-2] != k.shape[-2]):
        mask = masks.both(mask, masks.causal(q.shape[-2], k.shape[-2], device=q.device))
        causal = False
    added = mask
    if bias is not None:
        added = bias.to(q) if mask is None else bias.to(q).masked_fill(~mask, -torch.inf)
    if watcher is None and bias is None and mask is not None and takes_masked(q, mask):
        from saccade.attention.kernels.train.masked import masked_attention

        factor = q.shape[-1] ** -0.5 if scale is None else scale
        return masked_attention(q, k, v, mask[0, 0], factor)[0]
    if watcher is None:
        return dense_attention(q, k, v, added, causal=causal, scale=scale)
    if learns_in_halves(q, k, v):
        output, lse = dense_attention(q, k, v, added, causal=causal, scale=scale), None
    else:
        output, lse = sdpa_with_lse(q, k, v, mask=added, causal=causal, scale=scale)
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    weights = watcher(View(q, k, factor, causal=hides, mask=seen, bias=bias, lse=lse))
    return output if weights is None else weights.to(v.dtype) @ v


def fused_self(
    qkv: Float[Tensor, "T 3 N K"], segments: Segments, *, causal: bool, scale: float
) -> Float[Tensor, "T N K"]:
    """What `attend` computes within sequences end to end, of one product's q, k and v."""
    if takes_short(qkv, segments):
        from saccade.attention.kernels.train.short_sequence import short_self_attention

        starts, longest = segments.query_starts, segments.longest_query
        return short_self_attention(qkv, starts, longest, causal, scale)
    q, k, v = qkv.unbind(1)
    return packed_attention(q, k, v, segments, causal=causal, scale=scale)


def fused_cross(
    q: Float[Tensor, "T N K"], kv: Float[Tensor, "S 2 N K"], segments: Segments, *, scale: float
) -> Float[Tensor, "T N K"]:
    """The same across, for queries of one product and keys and values of another."""
    if takes_short(q, segments):
        from saccade.attention.kernels.train.short_sequence import short_cross_attention

        starts = segments.query_starts, segments.key_starts
        longest = segments.longest_query, segments.longest_key
        return short_cross_attention(q, kv, *starts, *longest, scale)
    k, v = kv.unbind(1)
    return packed_attention(q, k, v, segments, causal=False, scale=scale)


def _packed(
    q: Float[Tensor, "1 N T K"],
    k: Float[Tensor, "1 N S K"],
    v: Float[Tensor, "1 N S Kv"],
    segments: Segments,
    *,
    causal: bool,
    scale: float | None,
    watcher: Watcher | None,
) -> Float[Tensor, "1 N T Kv"]:
    factor = q.shape[-1] ** -0.5 if scale is None else scale
    rows = [x[0].transpose(0, 1) for x in (q, k, v)]  # (T, N, K)
    output = packed_attention(rows[0], rows[1], rows[2], segments, causal=causal, scale=factor)
    if watcher is not None:
        mask = segments.mask(q.shape[2], k.shape[2])
        weights = watcher(View(q, k, factor, causal=causal, mask=mask))
        if weights is not None:
            return weights.to(v.dtype) @ v
    return output.transpose(0, 1)[None]
