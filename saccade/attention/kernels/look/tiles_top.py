"""Each query's largest weights, from the few quads of keys they are known to lie in."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

import triton
import triton.language as tl

from saccade.attention.kernels.look.tiles_rows import load_shift, row_of, store_best
from saccade.attention.kernels.look.tiles_scores import SPAN, UNSEEN, load_queries, place, scores


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
    """The TOP largest weights and their places; the first is also the largest of `Rows`."""
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
