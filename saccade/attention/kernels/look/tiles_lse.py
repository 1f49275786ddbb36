"""The log-sum-exp of every query's scores, for where no fused kernel has given it away."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

import triton
import triton.language as tl

from saccade.attention.kernels.look.tiles_rows import row_of
from saccade.attention.kernels.look.tiles_scores import (
    LN2,
    LOG2E,
    UNSEEN,
    bounds,
    load_queries,
    tile_scores,
)


@triton.jit
def normalise(sight, lse, sinks, ROWS: tl.constexpr):
    """Online (Milakov & Gimelshein 2018), a learnt score `sinks` of the head counted in.

    m' = max(m, x)        l' = l · 2^(m − m') + Σ 2^(x − m')        lse = ln 2 · (m + log₂ l)
    """
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS
    t = start + tl.arange(0, ROWS)
    q = load_queries(start, sight, ROWS, False)
    peak, total = tl.full((ROWS,), UNSEEN, tl.float32), tl.zeros((ROWS,), tl.float32)
    if sinks is not None:
        own = tl.load(sinks + tl.program_id(1) % sight.heads).to(tl.float32)
        peak, total = tl.zeros_like(peak) + own * LOG2E, total + 1.0
    last = tl.minimum(start + ROWS, sight.queries) - 1
    lo, a, _, _, d, hi = bounds(start, last, -(1 << 30), sight)
    for tile in tl.range(a, d):
        peak, total = _add(tile_scores(q, 0.0, t, tile, sight, False), peak, total)
    for i in tl.range(0, a - lo + hi - d):
        tile = tl.where(i < a - lo, lo + i, d + i - (a - lo))
        peak, total = _add(tile_scores(q, 0.0, t, tile, sight, True), peak, total)
    found = tl.where(peak > UNSEEN / 2, (peak + tl.log2(total)) * LN2, float("-inf"))
    tl.store(lse + row_of(t, sight), found, mask=t < sight.queries)


@triton.jit
def _add(x, peak, total):
    higher = tl.maximum(peak, tl.max(x, 1))
    total = total * tl.exp2(peak - higher) + tl.sum(tl.exp2(x - higher[:, None]), 1)
    return higher, total
