"""Attention within sequences that lie end to end, by what serves sequences of one length."""

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention import masks
from saccade.attention.kernels.train.dense import dense_attention
from saccade.attention.segments import Segments


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
            dense_attention(heads[0], heads[1], heads[2], causal=causal and t > 1, scale=scale)
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
    output = dense_attention(heads[0], heads[1], heads[2], mask, scale=scale)
    real = (t < segments.query_starts.diff()[:, None]) & (keys > 0)[:, None]  # (B, T)
    place = torch.where(real, query_at, len(q)).flatten()  # one place more, to be thrown away
    flat = output.transpose(1, 2).reshape(rows * len(t), *output.shape[1:2], output.shape[3])
    empty = flat.new_zeros(len(q) + 1, *flat.shape[1:])
    return empty.index_copy(0, place, flat)[:-1]
