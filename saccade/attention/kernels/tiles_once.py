"""One pass for rows and keys together: every weight is computed once and taken for both.

Along a row nothing is new (`tiles_rows`). Sums over the queries are a product in the tensor
cores, of numbers in half precision that together hold what a thread has of a key to 21 bits:

    h = 2¹⁴ (aₜ + aₜ₊₈)        hi = h cut to 11 bits        lo = h − hi        Σₜ h = [hi lo]ᵀ 1

2¹⁴ keeps small weights clear of where halves lose their digits: no sum is off by more than 2⁻³⁹
for each two of its queries, or by 2⁻²¹ of itself. Many programs add to one key: they add whole
numbers, of which the order does not matter, so that the same input gives the same bits. A cell
of a map is no less than a tile high and a quad's 16 keys wide.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

from typing import Any, NamedTuple

import triton
import triton.language as tl

from saccade.attention.kernels.tiles_rows import (
    finish,
    lane_sums,
    load_shift,
    nearby,
    nothing,
    remember,
    row_of,
)
from saccade.attention.kernels.tiles_scores import (
    LN2,
    SPAN,
    UNSEEN,
    bounds,
    load_queries,
    tile_scores,
)
from saccade.attention.kernels.tiles_sort import quad_maxima

UNIT = tl.constexpr(2.0**40)  # whole numbers count 2⁻⁴⁰: eight million queries do not overflow
CLEAR = tl.constexpr(2.0**14)  # two weights of 1 times this are the largest that a half can hold


class Tally(NamedTuple):
    """Where the kernel counts what keys and cells were given, in whole numbers, from 0 on.

    `received` is (B·N, S); `mass` is (B·N, Gt, Gs); `peak` likewise, the bits of a weight.
    A cell is `down` queries by CELLS-ths of a tile, or by EVERY tiles.
    """

    received: Any
    mass: Any
    peak: Any
    map_rows: int
    map_columns: int
    down: int
    CELLS: tl.constexpr
    EVERY: tl.constexpr


@triton.jit
def look_once(
    sight, lse, out, tally, sink, local, D: tl.constexpr, PAIR: tl.constexpr, ROWS: tl.constexpr
):
    """All that `Rows` holds, for ROWS queries of one head, and their part of the `Tally`."""
    start = (tl.num_programs(0) - 1 - tl.program_id(0)) * ROWS
    t = start + tl.arange(0, ROWS)
    shift = load_shift(lse, t, sight)
    q = load_queries(start, sight, ROWS, False)
    last = tl.minimum(start + ROWS, sight.queries) - 1
    spans = _even(bounds(start, last, local, sight), PAIR)
    best, ids = nothing(ROWS, D)
    state = (tl.zeros((ROWS, 4), tl.float32), best, ids)
    state = _where_all_see(state, q, shift, start, spans, tally, sight, D, PAIR, ROWS)
    state, near = _at_edges(state, q, shift, start, spans, local, tally, sight, D, ROWS)
    entropy, best, ids = state
    row, inside = row_of(t, sight), t < sight.queries
    tl.store(out.local + row, near, mask=inside)
    tl.store(out.entropy + row, tl.maximum(tl.sum(entropy, 1) * LN2, 0.0), mask=inside)
    finish(best, ids, lse, start, shift, sink, out, sight, D, ROWS)


@triton.jit
def _where_all_see(
    state,
    q,
    shift,
    start,
    spans,
    tally,
    sight,
    D: tl.constexpr,
    PAIR: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Tiles in which all see all. Threads meet for a map only where its cell ends."""
    entropy, best, ids = state
    _, a, b, c, d, _ = spans
    t = start + tl.arange(0, ROWS)
    mass, peak = _empty(tally, ROWS)
    quads = tl.full((ROWS, 4, 8), UNSEEN, tl.float32)
    for i in tl.range(0, b - a + d - c):
        tile = tl.where(i < b - a, a + i, c + i - (b - a))
        x = tile_scores(q, shift[:, None], t, tile, sight, False)
        weights = tl.exp2(x)
        entropy -= lane_sums(weights * x, ROWS)
        mass += _give(weights, tile, tally, sight, ROWS)
        quads = tl.maximum(quads, quad_maxima(x, ROWS))
        if (tile + 1) % PAIR == 0:
            best, ids = remember(best, ids, quads, (tile + 1 - PAIR) * 2 + PAIR - 1, ROWS, D)
            peak = _higher(peak, quads, tally, ROWS)
            quads = tl.full(quads.shape, UNSEEN, tl.float32)
        if ((tile + 1) % tally.EVERY == 0) | (tile + 1 == b) | (tile + 1 == d):
            _count(mass, peak, start, tile, tally)
            mass, peak = _empty(tally, ROWS)
    return entropy, best, ids


@triton.jit
def _at_edges(
    state, q, shift, start, spans, local, tally, sight, D: tl.constexpr, ROWS: tl.constexpr
):
    """The other tiles; also the mass on keys nearby, which are all in these."""
    entropy, best, ids = state
    lo, a, b, c, d, hi = spans
    t = start + tl.arange(0, ROWS)
    near = tl.zeros((ROWS,), tl.float32)
    for i in tl.range(0, a - lo + c - b + hi - d):
        tile = tl.where(i < a - lo, lo + i, b + i - (a - lo))
        tile = tl.where(i < a - lo + c - b, tile, d + i - (a - lo + c - b))
        x = tile_scores(q, shift[:, None], t, tile, sight, True)
        weights = tl.exp2(x)
        entropy -= lane_sums(weights * x, ROWS)
        quads = quad_maxima(x, ROWS)
        best, ids = remember(best, ids, quads, tile * 2, ROWS, D)
        near += tl.sum(nearby(weights, t, tile, local, sight), 1)
        mass, peak = _empty(tally, ROWS)
        mass += _give(weights, tile, tally, sight, ROWS)
        _count(mass, _higher(peak, quads, tally, ROWS), start, tile, tally)
    return (entropy, best, ids), near


@triton.jit
def _even(spans, PAIR: tl.constexpr):
    """The same spans, those in which all see all cut so that pairs of tiles begin at even ones."""
    lo, a, b, c, d, hi = spans
    a, c = tl.minimum(a + a % PAIR, b), tl.minimum(c + c % PAIR, d)
    return lo, a, a + (b - a) // PAIR * PAIR, c, c + (d - c) // PAIR * PAIR, hi


@triton.jit
def _empty(tally, ROWS: tl.constexpr):
    peak = tl.full((ROWS, 4, tally.CELLS), UNSEEN, tl.float32)
    return tl.zeros((SPAN,), tl.float32), peak


@triton.jit
def _give(weights, tile, tally, sight, ROWS: tl.constexpr):
    """Add what a tile of queries gives to each key of a tile; return it, in units of 1/CLEAR."""
    h = tl.sum(tl.reshape(weights, (ROWS // 16, 2, 8, SPAN)), 1) * CLEAR  # within a thread
    hi = (h.to(tl.int32, bitcast=True) & ~0x1FFF).to(tl.float32, bitcast=True)
    both = tl.permute(tl.join(hi, h - hi).to(tl.float16), (3, 0, 1, 2))
    both = tl.reshape(both, (ROWS, SPAN))
    # The least that the tensor cores multiply with is eight columns: an eighth of the sum in each.
    given = tl.sum(tl.dot(both.T, tl.full((ROWS, 8), 0.125, tl.float16)), 1)
    s = tile * SPAN + tl.arange(0, SPAN)
    at = tl.program_id(1).to(tl.int64) * sight.keys + s
    whole = (given * (UNIT / CLEAR)).to(tl.int64)
    tl.atomic_add(tally.received + at, whole, mask=s < sight.keys, sem="relaxed")
    return given


@triton.jit
def _higher(peak, quads, tally, ROWS: tl.constexpr):
    """The largest score so far of each cell of the tile, as far as one thread knows."""
    parts = tl.reshape(quads, (ROWS, 4, tally.CELLS, 8 // tally.CELLS))
    return tl.maximum(peak, tl.max(parts, 3))


@triton.jit
def _count(mass, peak, start, tile, tally):
    """Add the mass that this tile's cells were given, and raise their largest weight."""
    mass = tl.sum(tl.reshape(mass, (tally.CELLS, SPAN // tally.CELLS)), 1)
    column = tile * tally.CELLS // tally.EVERY + tl.arange(0, tally.CELLS)
    row = tl.program_id(1).to(tl.int64) * tally.map_rows + start // tally.down
    at, inside = row * tally.map_columns + column, column < tally.map_columns
    whole = (mass * (UNIT / CLEAR)).to(tl.int64)
    tl.atomic_add(tally.mass + at, whole, mask=inside, sem="relaxed")
    bits = tl.exp2(tl.max(tl.max(peak, 1), 0)).to(tl.int32, bitcast=True)
    tl.atomic_max(tally.peak + at, bits, mask=inside, sem="relaxed")
