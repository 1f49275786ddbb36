"""One pass over the queries of each block of keys: what every key was given, and the maps.

Tiles lie on their side, keys down and queries across, so that sums over queries stay within a
thread. One program owns a block of keys and goes through the queries in order; no two programs
write to one place, and no sum depends on who came first.

    received_s = Σₜ 2ˣ        mean = Σ_cell 2ˣ / |rows|        max = 2^(max_cell x)
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

from typing import Any, NamedTuple

import triton
import triton.language as tl

from saccade.attention.kernels.look.tiles_rows import row_of
from saccade.attention.kernels.look.tiles_scores import UNSEEN, load_keys, load_queries, scores


class KeyStatistics(NamedTuple):
    """Where the kernel puts what it found; the maps are (B·N, Gt, columns), None if not kept.

    A cell of a map is DOWN · EVERY queries by ACROSS keys. ACROSS is at most the 16 that one warp
    holds: a broader cell is left in several columns, to be joined afterwards. LANES threads share
    the queries of a cell.
    """

    received: Any
    mean: Any
    highest: Any
    map_rows: int
    map_columns: int
    DOWN: tl.constexpr
    EVERY: tl.constexpr
    ACROSS: tl.constexpr
    LANES: tl.constexpr


@triton.jit
def look_along_keys(sight, shift, out, KEYS: tl.constexpr, COUNT: tl.constexpr):
    """All that `KeyStatistics` holds, for KEYS keys of one head, COUNT queries at a time."""
    first = tl.program_id(0) * KEYS
    k = load_keys(first, sight, KEYS, False)
    lo, a, d, hi = _spans(first, sight, KEYS, COUNT)
    sums = tl.zeros((KEYS, COUNT // out.DOWN, out.LANES), tl.float32)
    peaks = tl.full(sums.shape, UNSEEN, tl.float32)
    state = (tl.zeros((KEYS, out.LANES), tl.float32), sums, peaks)
    state = _sweep(state, k, shift, lo, a, hi, out, sight, KEYS, COUNT, True)
    state = _sweep(state, k, shift, a, d, hi, out, sight, KEYS, COUNT, False)
    state = _sweep(state, k, shift, d, hi, hi, out, sight, KEYS, COUNT, True)
    if out.received is not None:
        s = first + tl.arange(0, KEYS)
        at = tl.program_id(1).to(tl.int64) * sight.keys + s
        tl.store(out.received + at, tl.sum(state[0], 1), mask=s < sight.keys)


@triton.jit
def _spans(first, sight, KEYS: tl.constexpr, COUNT: tl.constexpr):
    """Tiles of queries that may look at these keys: lo ≤ a ≤ d ≤ hi, in [a, d) all see all."""
    whole = first + KEYS <= sight.keys
    last = tl.minimum(first + KEYS, sight.keys) - 1
    first -= sight.keys - sight.queries
    last -= sight.keys - sight.queries
    start, end = first * 0, first * 0 + sight.queries
    inner, outer = start, end
    if sight.CAUSAL:
        start, inner = tl.maximum(start, first), tl.maximum(inner, last)
    if sight.reach is not None:
        start, end = tl.maximum(start, first - sight.reach), tl.minimum(end, last + sight.reach + 1)
        inner = tl.maximum(inner, last - sight.reach)
        outer = tl.minimum(outer, first + sight.reach + 1)
    lo = start // COUNT
    hi = tl.maximum(lo, tl.cdiv(tl.maximum(end, 0), COUNT))
    a = tl.where(whole, tl.minimum(tl.maximum(lo, tl.cdiv(inner, COUNT)), hi), hi)
    if sight.MASKED:
        a = hi
    d = tl.minimum(tl.maximum(a, tl.maximum(outer, 0) // COUNT), hi)
    return lo, a, d, hi


@triton.jit
def _sweep(
    state,
    k,
    shift,
    begin,
    end,
    hi,
    out,
    sight,
    KEYS: tl.constexpr,
    COUNT: tl.constexpr,
    EDGE: tl.constexpr,
):
    """Go through tiles begin…end of the queries. Threads meet only where a cell ends."""
    EACH: tl.constexpr = 2 if out.LANES > 1 else out.DOWN
    TIMES: tl.constexpr = out.DOWN // (out.LANES * EACH)
    SHAPE: tl.constexpr = (KEYS, COUNT // out.DOWN, TIMES, out.LANES, EACH)
    received, sums, peaks = state
    for i in tl.range(0, end - begin):
        tile = begin + i
        x = _logs(k, shift, tile, sight, KEYS, COUNT, EDGE)
        given = tl.sum(tl.sum(tl.reshape(tl.exp2(x), SHAPE), 2), 3)
        received += tl.sum(given, 1)
        if out.mean is not None:
            sums += given
            peaks = tl.maximum(peaks, tl.max(tl.max(tl.reshape(x, SHAPE), 2), 3))
            if ((tile + 1) % out.EVERY == 0) | (tile + 1 == hi):
                _store_cells(sums, peaks, tile, out, sight, KEYS, COUNT)
                sums, peaks = tl.zeros_like(sums), tl.full(peaks.shape, UNSEEN, tl.float32)
    return received, sums, peaks


@triton.jit
def _logs(k, shift, tile, sight, KEYS: tl.constexpr, COUNT: tl.constexpr, EDGE: tl.constexpr):
    """log₂ of the weights that a tile of queries gives to these keys, (keys, queries)."""
    t = tile * COUNT + tl.arange(0, COUNT)
    at = shift + row_of(tile * COUNT, sight) + tl.arange(0, COUNT)
    level = tl.load(at, mask=t < sight.queries, other=-UNSEEN) if EDGE else tl.load(at)
    q = load_queries(tile * COUNT, sight, COUNT, not EDGE)
    dots = tl.dot(k, q.T, input_precision=sight.PRECISION)
    s = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
    return scores(dots, level[None, :], t[None, :], s[:, None], sight, EDGE)


@triton.jit
def _store_cells(sums, peaks, tile, out, sight, KEYS: tl.constexpr, COUNT: tl.constexpr):
    """Write the cells that end with this tile: means over their queries, and maxima."""
    CK: tl.constexpr = KEYS // out.ACROSS
    CQ: tl.constexpr = COUNT // out.DOWN
    cell = tile // out.EVERY * CQ + tl.arange(0, CQ)[None, :]
    column = tl.program_id(0) * CK + tl.arange(0, CK)[:, None]
    size: tl.constexpr = out.DOWN * out.EVERY
    rows = tl.maximum(tl.minimum(sight.queries - cell * size, size), 1).to(tl.float32)
    at = (tl.program_id(1).to(tl.int64) * out.map_rows + cell) * out.map_columns + column
    inside = (cell < out.map_rows) & (column < out.map_columns)
    means = tl.sum(_by_cell(sums, out, CK, CQ), 2) / rows
    tl.store(out.mean + at, means, mask=inside)
    tl.store(out.highest + at, tl.exp2(tl.max(_by_cell(peaks, out, CK, CQ), 2)), mask=inside)


@triton.jit
def _by_cell(x, out, CK: tl.constexpr, CQ: tl.constexpr):
    """(keys, CQ, lanes) → (CK, CQ, all that one cell holds)."""
    y = tl.permute(tl.reshape(x, (CK, out.ACROSS, CQ, out.LANES)), (0, 2, 1, 3))
    return tl.reshape(y, (CK, CQ, out.ACROSS * out.LANES))
