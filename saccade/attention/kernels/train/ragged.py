"""Attention within sequences that lie end to end, by torch's own kernels, or on a CPU that learns
in 16 bits by products of matrices.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.attention import masks
from saccade.attention.segments import Segments

HALVES = (torch.bfloat16, torch.float16)
HELD = 256  # positions of a sequence up to which its weights may be held in memory


def ragged_attention(
    q: Float[Tensor, "T N K"],
    k: Float[Tensor, "S N K"],
    v: Float[Tensor, "S N Kv"],
    segments: Segments,
    *,
    causal: bool,
    scale: float | None,
) -> Float[Tensor, "T N Kv"]:
    """What `attend` computes under `segments.mask`, stretch by stretch.

    Where neighbours have the same lengths they are rectangles already, and no padding is computed;
    where nearly all differ, one padded call is cheaper than many small ones.
    """
    if q.device.type == "cpu" and len(segments.runs) <= 0.75 * len(segments.query_starts):
        return _by_runs(q, k, v, segments, causal=causal, scale=scale)
    return _padded(q, k, v, segments, causal=causal, scale=scale)


def _by_runs(
    q: Tensor, k: Tensor, v: Tensor, segments: Segments, *, causal: bool, scale: float | None
) -> Tensor:
    runs = segments.runs
    if not any(t and s for _, t, s in runs):  # nobody sees anything, and yet gradients must flow
        return _padded(q, k, v, segments, causal=causal, scale=scale)
    queries = [many * t for many, t, _ in runs]
    keys = [many * s for many, _, s in runs]
    outputs: list[Tensor] = []
    for (many, t, s), *stretch in zip(runs, q.split(queries), k.split(keys), v.split(keys)):
        heads = [x.unflatten(0, (many, -1)).transpose(1, 2) for x in stretch]  # (many, N, T, K)
        output = (
            _read(heads, mask=None, causal=causal and t > 1, scale=scale)
            if s and t
            else heads[0].new_zeros(many, q.shape[1], t, v.shape[-1])
        )
        outputs.append(output.transpose(1, 2).flatten(0, 1))
    return torch.cat(outputs)


def _padded(
    q: Tensor, k: Tensor, v: Tensor, segments: Segments, *, causal: bool, scale: float | None
) -> Tensor:
    """Each stretch in a row of its own, filled up with whatever follows it, which is not seen."""
    rows = len(segments.query_starts) - 1
    t = torch.arange(segments.longest_query, device=q.device)
    s = torch.arange(segments.longest_key, device=q.device)
    query_at = (segments.query_starts[:-1, None] + t).clamp(max=len(q) - 1)  # (B, T)
    key_at = (segments.key_starts[:-1, None] + s).clamp(max=len(k) - 1)  # (B, S)
    keys = segments.key_starts.diff()
    mask = masks.padding(keys.clamp(min=1), len(s))  # a row that sees nothing may become NaN
    if causal:
        mask = masks.both(mask, masks.causal(len(t), len(s), device=q.device))
    heads = [x[at].transpose(1, 2) for x, at in ((q, query_at), (k, key_at), (v, key_at))]
    output = _read(heads, mask=mask, causal=False, scale=scale)
    real = (t < segments.query_starts.diff()[:, None]) & (keys > 0)[:, None]  # (B, T)
    place = torch.where(real, query_at, len(q)).flatten()  # one place more, to be thrown away
    flat = output.transpose(1, 2).reshape(rows * len(t), *output.shape[1:2], output.shape[3])
    empty = flat.new_zeros(len(q) + 1, *flat.shape[1:])
    return empty.index_copy(0, place, flat)[:-1]


def _read(
    heads: list[Tensor],
    *,
    mask: Bool[Tensor, "#B #N #T S"] | None,
    causal: bool,
    scale: float | None,
) -> Float[Tensor, "B N T Kv"]:
    q, k, v = heads
    if not learns_in_halves(q, k, v):
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=causal, scale=scale
        )
    if causal:
        mask = masks.causal(q.shape[2], k.shape[2], device=q.device)
    return by_products(q, k, v, mask, q.shape[3] ** -0.5 if scale is None else scale)


def learns_in_halves(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether a gradient is to go through numbers of 16 bits on a CPU, where torch's kernel takes
    four to fifteen times as long for it as the formula does.
    """
    learns = torch.is_grad_enabled() and any(x.requires_grad for x in (q, k, v))
    on_cpu = q.device.type == "cpu" and q.dtype in HALVES
    return learns and on_cpu and max(q.shape[2], k.shape[2]) <= HELD


def by_products(
    q: Float[Tensor, "B N T K"],
    k: Float[Tensor, "B N S K"],
    v: Float[Tensor, "B N S Kv"],
    mask: Bool[Tensor, "#B #N #T S"] | None,
    scale: float,
) -> Float[Tensor, "B N T Kv"]:
    """What `attend` computes, its weights held; every query must see something."""
    rows = *q.shape[:3], k.shape[2]
    hidden = q.new_zeros(() if mask is None else mask.shape)  # 0 or −∞, to be added
    if mask is not None:
        hidden.masked_fill_(~mask, -torch.inf)
    flat = hidden.expand(rows).flatten(0, 1), q.flatten(0, 1), k.flatten(0, 1).mT
    scores = torch.baddbmm(*flat, beta=float(mask is not None), alpha=scale)  # (B·N, T, S)
    return scores.softmax(dim=-1).unflatten(0, q.shape[:2]) @ v
