"""What the Triton kernels share: a view as they are handed it, and a tile of its scores.

Every program works on one head, the second number of its place in the grid. Scores are kept in
base 2, where the machine has an exponential:

    x = e · log₂ exp(1)
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

from saccade.attention.look.view import View

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)
UNSEEN = tl.constexpr(-1e30)  # as in `View`: finite, so that a weight of 0 times it is 0
SPAN = tl.constexpr(128)  # keys in a tile


class Sight(NamedTuple):
    """A `View` as a kernel takes it: addresses and strides; what is not there is None.

    The fields in capitals are known to the compiler.
    """

    q: Any
    q_steps: tuple[Any, ...]
    k: Any
    k_steps: tuple[Any, ...]
    mask: Any
    mask_steps: tuple[int, ...] | None
    bias: Any
    bias_steps: tuple[int, ...] | None
    heads: int
    group: int
    queries: int
    keys: int
    width: int
    scale: float  # in base 2, except beside a cap, which wants it as it is
    cap: float | None
    reach: int | None
    K: tl.constexpr  # width, rounded up to a power of two
    WHOLE: tl.constexpr  # whether it is one
    CAUSAL: tl.constexpr
    MASKED: tl.constexpr
    PRECISION: tl.constexpr


def sight(view: View) -> Sight:
    """The view's addresses and strides; a side that is broadcast has a step of 0."""
    _, heads, queries, keys = view.shape
    mask, mask_steps = _spread(view.mask, view)
    bias, bias_steps = _spread(view.bias, view)
    width = view.q.shape[3]
    padded = max(16, triton.next_power_of_2(width))
    return Sight(
        *(view.q, _steps(view.q), view.k, _steps(view.k)),
        *(mask, mask_steps, bias, bias_steps),
        *(heads, view.group, queries, keys, width),
        scale=view.scale * (1.0 if view.softcap else LOG2E.value),
        cap=view.softcap,
        reach=view.reach,
        K=tl.constexpr(padded),
        WHOLE=tl.constexpr(padded == width),
        CAUSAL=tl.constexpr(view.causal),
        MASKED=tl.constexpr(view.mask is not None or view.bias is not None),
        PRECISION=tl.constexpr("ieee"),
    )


def _steps(side: torch.Tensor) -> tuple[Any, ...]:
    """Strides; the one from row to row is known to the compiler, which saves registers in loops.

    It depends on how heads lie in memory and never on a length: few kernels are compiled.
    """
    batch, head, row, column = side.stride()
    return batch, head, tl.constexpr(row), column


def _spread(
    part: torch.Tensor | None, view: View
) -> tuple[torch.Tensor | None, tuple[int, ...] | None]:
    if part is None:
        return None, None
    steps = part.expand(view.shape).stride()
    return (part.view(torch.uint8) if part.dtype == torch.bool else part), steps


@triton.jit
def place(steps, sight, SHARED: tl.constexpr):
    """Where this program's head begins; SHARED among the group where keys are meant."""
    batch, head = tl.program_id(1) // sight.heads, tl.program_id(1) % sight.heads
    if SHARED:
        head //= sight.group
    return batch.to(tl.int64) * steps[0] + head.to(tl.int64) * steps[1]


@triton.jit
def load_queries(first, sight, COUNT: tl.constexpr, WHOLE: tl.constexpr):
    """COUNT queries from `first` on, zeros beyond the last; WHOLE promises they are all there."""
    base = place(sight.q_steps, sight, False) + tl.cast(first, tl.int64) * sight.q_steps[2]
    left = sight.queries - first
    return _load(sight.q + base, sight.q_steps, left, sight, COUNT, WHOLE)


@triton.jit
def load_keys(first, sight, COUNT: tl.constexpr, WHOLE: tl.constexpr):
    """COUNT keys from `first` on, zeros beyond the last; WHOLE promises they are all there."""
    base = place(sight.k_steps, sight, True) + tl.cast(first, tl.int64) * sight.k_steps[2]
    return _load(sight.k + base, sight.k_steps, sight.keys - first, sight, COUNT, WHOLE)


@triton.jit
def _load(start, steps, left, sight, COUNT: tl.constexpr, WHOLE: tl.constexpr):
    row, column = tl.arange(0, COUNT)[:, None], tl.arange(0, sight.K)[None, :]
    at = start + row * steps[2] + column * steps[3]
    if WHOLE and sight.WHOLE:
        return tl.load(at)
    return tl.load(at, mask=(row < left) & (column < sight.width), other=0.0)


@triton.jit
def scores(dots, shift, t, s, sight, EDGE: tl.constexpr):
    """Scores in base 2 less a shift, from dot products; UNSEEN where a query may not look.

        x = log₂e · (cap(scale · q·k) + bias) − shift

    `t` and `s` say which query and key each is of. Away from an EDGE everyone may look.
    """
    if sight.cap is not None:
        x = _tanh(dots * (sight.scale / sight.cap)) * (sight.cap * LOG2E) - shift
    else:
        x = dots * sight.scale - shift
    if EDGE:
        here = t + (sight.keys - sight.queries)
        # Who looks only back cannot look beyond the last key.
        seen = s <= here if sight.CAUSAL else s < sight.keys
        if sight.reach is not None:
            seen &= (s >= here - sight.reach) & (s <= here + sight.reach)
        if sight.MASKED:
            x, seen = _masked(x, seen & (t < sight.queries), t, s, sight)
        x = tl.where(seen, x, UNSEEN)
    return x


@triton.jit
def _masked(x, seen, t, s, sight):
    """Add the bias, and see only where it is not out of all measure and the mask allows it."""
    if sight.mask is not None:
        at = _at(sight.mask_steps, t, s, sight)
        seen &= tl.load(sight.mask + at, mask=seen, other=0) != 0
    if sight.bias is not None:
        at = _at(sight.bias_steps, t, s, sight)
        bias = tl.load(sight.bias + at, mask=seen, other=0.0).to(tl.float32)
        x += bias * LOG2E
        seen &= bias > UNSEEN
    return x, seen


@triton.jit
def _at(steps, t, s, sight):
    near = t.to(tl.int64) * steps[2] + s.to(tl.int64) * steps[3]
    return place(steps, sight, False) + near


@triton.jit
def _tanh(y):
    """Hyperbolic tangent to single precision: near 0 its series, where 1 − exp would cancel."""
    z = tl.exp2(tl.abs(y) * (-2.0 * LOG2E))
    far = (1.0 - z) / (1.0 + z)
    far = tl.where(y < 0, -far, far)
    r = y * y
    series = 1.0 + r * (-1 / 3 + r * (2 / 15 + r * (-17 / 315 + r * (62 / 2835))))
    return tl.where(tl.abs(y) < 0.25, y * series, far)


@triton.jit
def tile_scores(q, shift, t, tile, sight, EDGE: tl.constexpr):
    """Scores of a block of queries with one tile of keys, (rows, SPAN)."""
    k = load_keys(tile * SPAN, sight, SPAN, not EDGE)
    dots = tl.dot(q, k.T, input_precision=sight.PRECISION)
    s = tile * SPAN + tl.arange(0, SPAN)
    return scores(dots, shift, t[:, None], s[None, :], sight, EDGE)


@triton.jit
def score_of(q, key, shift, t, sight):
    """One score for each query, in single precision: of the key given for it."""
    column = tl.arange(0, sight.K)[None, :]
    at = tl.cast(key, tl.int64)[:, None] * sight.k_steps[2] + column * sight.k_steps[3]
    inside = (key[:, None] < sight.keys) & (column < sight.width)
    at += place(sight.k_steps, sight, True)
    k = tl.load(sight.k + at, mask=inside, other=0.0)
    return scores(tl.sum(q * k.to(tl.float32), 1), shift, t, key, sight, True)


@triton.jit
def bounds(first, last, local, sight):
    """Tiles of keys that queries first…last may look at: lo ≤ a ≤ b ≤ c ≤ d ≤ hi.

    In [a, b) and [c, d) all of them see every key, and none of these is near to any.
    """
    start, end = first * 0, first * 0 + sight.keys  # seen by some
    inner, outer = start, end  # seen by all
    first += sight.keys - sight.queries
    last += sight.keys - sight.queries
    if sight.CAUSAL:
        end, outer = tl.minimum(end, last + 1), tl.minimum(outer, first + 1)
    if sight.reach is not None:
        start, end = tl.maximum(start, first - sight.reach), tl.minimum(end, last + sight.reach + 1)
        inner = tl.maximum(inner, last - sight.reach)
        outer = tl.minimum(outer, first + sight.reach + 1)
    lo = start // SPAN
    hi = tl.maximum(lo, tl.cdiv(tl.maximum(end, 0), SPAN))
    a = tl.minimum(tl.maximum(lo, tl.cdiv(tl.maximum(inner, 0), SPAN)), hi)
    if sight.MASKED:
        a = hi
    d = tl.minimum(tl.maximum(a, tl.maximum(outer, 0) // SPAN), hi)
    b = tl.minimum(tl.maximum(a, tl.maximum(first - local, 0) // SPAN), d)
    c = tl.minimum(tl.maximum(b, tl.maximum(last + local, 0) // SPAN + 1), d)
    return lo, a, b, c, d, hi
