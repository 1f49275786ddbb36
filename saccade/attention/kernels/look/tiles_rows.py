"""One pass over the keys of each block of queries: what every query looked at, as a few numbers.

With the log-sum-exp known beforehand a weight is one multiplication and one exponential,
and nothing is ever rescaled:

    x = log₂e · (e − lse)        a = 2ˣ        entropy = −ln 2 · Σ a x

Only tiles at an edge (the diagonal, the window's ends) look at places at all. The largest weights
come from the few quads of keys they are known to lie in, which are scored once more. Where no fused
kernel has given the log-sum-exp away, a pass before computes it.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

from typing import Any, NamedTuple

import triton
import triton.language as tl

from saccade.attention.kernels.look.tiles_scores import (
    LN2,
    LOG2E,
    SPAN,
    UNSEEN,
    bounds,
    load_queries,
    place,
    score_of,
    scores,
    tile_scores,
)
from saccade.attention.kernels.look.tiles_sort import merge, narrow, number, quad_maxima, sort


class RowStatistics(NamedTuple):
    """Where a kernel puts what it found of each query; `quads` only where the top is asked for.

    `shift` is lse in base 2, and so high where a query sees nothing that its weights come to 0.
    """

    lse: Any
    shift: Any
    entropy: Any
    highest: Any
    where: Any
    sink: Any
    local: Any
    quads: Any


@triton.jit
def look_along_rows(
    sight, lse, out, sink, local, D: tl.constexpr, PAIR: tl.constexpr, ROWS: tl.constexpr
):
    """All that `RowStatistics` holds, for ROWS queries of one head; long rows are begun first."""
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS
    t = start + tl.arange(0, ROWS)
    shift = load_shift(lse, t, sight)
    q = load_queries(start, sight, ROWS, False)
    last = tl.minimum(start + ROWS, sight.queries) - 1
    lo, a, b, c, d, hi = bounds(start, last, local, sight)
    b, d = a + (b - a) // PAIR * PAIR, c + (d - c) // PAIR * PAIR
    entropy = tl.zeros((ROWS, 4), tl.float32)
    best, ids = _nothing(ROWS, D)
    for i in tl.range(0, b - a + d - c, PAIR):
        tile = tl.where(i < b - a, a + i, c + i - (b - a))
        x = tile_scores(q, shift[:, None], t, tile, sight, False)
        entropy -= _lane_sums(tl.exp2(x) * x, ROWS)
        quads = quad_maxima(x, ROWS)
        if PAIR == 2:
            x = tile_scores(q, shift[:, None], t, tile + 1, sight, False)
            entropy -= _lane_sums(tl.exp2(x) * x, ROWS)
            quads = tl.maximum(quads, quad_maxima(x, ROWS))
        best, ids = _remember(best, ids, quads, tile * 2 + (PAIR - 1), ROWS, D)
    near = tl.zeros((ROWS,), tl.float32)
    for i in tl.range(0, a - lo + c - b + hi - d):
        tile = tl.where(i < a - lo, lo + i, b + i - (a - lo))
        tile = tl.where(i < a - lo + c - b, tile, d + i - (a - lo + c - b))
        x = tile_scores(q, shift[:, None], t, tile, sight, True)
        weights = tl.exp2(x)
        entropy -= _lane_sums(weights * x, ROWS)
        best, ids = _remember(best, ids, quad_maxima(x, ROWS), tile * 2, ROWS, D)
        near += tl.sum(_nearby(weights, t, tile, local, sight), 1)
    row, inside = row_of(t, sight), t < sight.queries
    tl.store(out.local + row, near, mask=inside)
    tl.store(out.entropy + row, tl.maximum(tl.sum(entropy, 1) * LN2, 0.0), mask=inside)
    _finish(best, ids, lse, start, shift, sink, out, sight, D, ROWS)


@triton.jit
def row_of(t, sight):
    """Where a query of this program's head stands among all."""
    return tl.program_id(1).to(tl.int64) * sight.queries + t


@triton.jit
def load_shift(lse, t, sight):
    """The log-sum-exp in base 2; 0 for a query that sees nothing, however the fused kernel says so.

    Beyond the last query it is so high that weights come to 0.
    """
    shift = tl.load(lse + row_of(t, sight), mask=t < sight.queries, other=0.0)
    shift = tl.where(tl.abs(shift) < -UNSEEN, shift * LOG2E, 0.0)
    return tl.where(t < sight.queries, shift, -UNSEEN)


@triton.jit
def store_best(top, where, lse, shift, t, out, sight):
    """The largest weight, its place, and the log-sum-exp: −∞ for who sees nothing."""
    row, inside = row_of(t, sight), t < sight.queries
    blind = top < UNSEEN / 2
    tl.store(out.highest + row, tl.exp2(top), mask=inside)
    tl.store(out.where + row, tl.where(blind, -1, where).to(tl.int64), mask=inside)
    given = tl.load(lse + row, mask=inside, other=0.0)
    tl.store(out.lse + row, tl.where(blind, float("-inf"), given), mask=inside)
    tl.store(out.shift + row, tl.where(blind, -UNSEEN, shift), mask=inside)


@triton.jit
def _finish(best, ids, lse, start, shift, sink, out, sight, D: tl.constexpr, ROWS: tl.constexpr):
    """What is left when all keys are seen: the sinks, and where the largest weights are."""
    t = start + tl.arange(0, ROWS)
    row, inside = row_of(t, sight), t < sight.queries
    q = load_queries(start, sight, ROWS, False).to(tl.float32)
    sunk = tl.zeros((ROWS,), tl.float32)
    for key in tl.range(0, tl.minimum(sink, sight.keys)):
        sunk += tl.exp2(score_of(q, t * 0 + key, shift, t, sight))
    tl.store(out.sink + row, sunk, mask=inside)
    top, quads = narrow(best, ids, ROWS, D)
    if D > 1:
        at = out.quads + row[:, None, None] * D + tl.arange(0, D)[None, None, :]
        tl.store(at, tl.where(top > UNSEEN / 2, quads, -1), mask=inside[:, None, None])
    else:
        top, where = tl.full((ROWS,), UNSEEN, tl.float32), tl.full((ROWS,), -1, tl.int32)
        for member in tl.static_range(4):
            key = quads // 2 + (member // 2) * 8 + member % 2
            x = score_of(q, key, shift, t, sight)
            where = tl.where(x > top, key, where)
            top = tl.maximum(x, top)
        store_best(top, where, lse, shift, t, out, sight)


@triton.jit
def _nothing(ROWS: tl.constexpr, D: tl.constexpr):
    if D == 1:
        best = tl.full((ROWS, 4), UNSEEN, tl.float32)
    else:
        best = tl.full((ROWS, 4, D), UNSEEN, tl.float32)
    return best, tl.zeros_like(best).to(tl.int32)


@triton.jit
def _lane_sums(x, ROWS: tl.constexpr):
    """Sums over what one thread holds of each row, (rows, 4)."""
    return tl.sum(tl.sum(tl.reshape(x, (ROWS, SPAN // 8, 4, 2)), 1), 2)


@triton.jit
def _remember(best, ids, quads, tag, ROWS: tl.constexpr, D: tl.constexpr):
    """Take the quads of one more tile, or of two, among the D best."""
    fresh = number(quads)
    if D == 1:
        fresh = tl.max(fresh, 2)
        ids = tl.where(fresh > best, tag, ids)
        best = tl.maximum(fresh, best)
    else:
        best, ids = merge(best, ids, sort(fresh, ROWS), tag, ROWS, D)
    return best, ids


@triton.jit
def _nearby(weights, t, tile, local, sight):
    """Those of the weights that fall on keys at most `local` positions away."""
    here = (t + (sight.keys - sight.queries))[:, None]
    s = (tile * SPAN + tl.arange(0, SPAN))[None, :]
    near = s >= here - local
    if not sight.CAUSAL:  # else what lies ahead has no weight
        near &= s <= here + local
    return tl.where(near, weights, 0.0)


@triton.jit
def look_at_top(
    sight,
    lse,
    out,
    weights,
    places,
    TOP: tl.constexpr,
    PAIR: tl.constexpr,
    ROWS: tl.constexpr,
    D: tl.constexpr,
):
    """The TOP largest weights and their places; the first is also the largest of its row."""
    start = tl.program_id(0) * ROWS
    t = start + tl.arange(0, ROWS)
    shift = load_shift(lse, t, sight)
    x, key = _rescore(out.quads, start, shift, t, sight, PAIR, ROWS, D)
    at, inside = row_of(t, sight) * TOP, t < sight.queries
    for i in tl.static_range(TOP):
        best = tl.max(x, 1)
        where = tl.min(tl.where(x == best[:, None], key, sight.keys), 1)
        weight = tl.exp2(best)
        x = tl.where(key == where[:, None], UNSEEN, x)
        tl.store(weights + at + i, weight, mask=inside)
        tl.store(places + at + i, tl.where(weight > 0, where, -1).to(tl.int64), mask=inside)
        if i == 0:
            store_best(best, where, lse, shift, t, out, sight)


@triton.jit
def _rescore(
    quads, start, shift, t, sight, PAIR: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr
):
    """Scores of every key of every quad in single precision, (rows, 4 PAIR D), and the keys."""
    member = tl.arange(0, 4 * PAIR * D)[None, :]
    at = row_of(t, sight)[:, None] * D + member % D
    quad = tl.load(quads + at, mask=t[:, None] < sight.queries, other=-1)
    member //= D
    key = quad // 2 + (member % 2) + (member // 2 % 2) * 8 + (member // 4) * SPAN
    key = tl.where((quad < 0) | ((member >= 4) & (quad % 2 == 0)), sight.keys, key)
    column = tl.arange(0, sight.K)[None, None, :]
    at = key.to(tl.int64)[:, :, None] * sight.k_steps[2] + column * sight.k_steps[3]
    inside = (key[:, :, None] < sight.keys) & (column < sight.width)
    at += place(sight.k_steps, sight, True)
    k = tl.load(sight.k + at, mask=inside, other=0.0).to(tl.float32)
    q = load_queries(start, sight, ROWS, False).to(tl.float32)
    dots = tl.sum(q[:, None, :] * k, 2)
    x = scores(dots, shift[:, None], t[:, None], key, sight, True)
    return tl.where(key < sight.keys, x, UNSEEN), key


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
