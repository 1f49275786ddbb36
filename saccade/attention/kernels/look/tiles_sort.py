"""The largest scores of each query, found on the way without a branch.

A tile of the tensor core's result is spread over threads so that four of them share a query:
thread l of the four holds keys 8j + 2l and 8j + 2l + 1. All below keeps to what one thread holds
(reshaping and splitting cost nothing then). Keys {0, 1, 8, 9} + 16j + 2l form a quad; a query's
k largest scores lie in the k quads with the largest maxima, so only quads are sorted:

    quads of a tile → sorted by a bitonic network → merged into the k best of the keys before

Of long rows the quads of two tiles are taken as one. Each goes by its tag: twice its first tile,
and 1 more if it goes on in the next.

Lists are (rows, 4, D), the largest first.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201

import triton
import triton.language as tl

from saccade.attention.kernels.look.tiles_scores import SPAN


@triton.jit
def quad_maxima(x, ROWS: tl.constexpr):
    """The maximum of each quad, (rows, 4, 8)."""
    quads = tl.reshape(x, (ROWS, 8, 2, 4, 2))
    return tl.permute(tl.max(tl.max(quads, 4), 2), (0, 2, 1))


@triton.jit
def number(quads):
    """Write which of the eight each is in its three lowest bits.

    Three bits of 24 are as much as single precision loses in the dot product itself.
    """
    bits = quads.to(tl.int32, bitcast=True)
    return ((bits & ~7) | tl.arange(0, 8)[None, None, :]).to(tl.float32, bitcast=True)


@triton.jit
def apart(x, ROWS: tl.constexpr, LANES: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr):
    """Elements STEP apart in two tensors, (rows, lanes, SIZE / 2 / STEP, STEP) each."""
    y = tl.reshape(x, (ROWS, LANES, SIZE // (2 * STEP), 2, STEP))
    one, other = tl.split(tl.permute(y, (0, 1, 2, 4, 3)))
    return one, other


@triton.jit
def together(
    one, other, ROWS: tl.constexpr, LANES: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr
):
    """Undo `apart`."""
    y = tl.permute(tl.join(one, other), (0, 1, 2, 4, 3))
    return tl.reshape(y, (ROWS, LANES, SIZE))


@triton.jit
def reverse(x, ROWS: tl.constexpr, LANES: tl.constexpr, SIZE: tl.constexpr, PART: tl.constexpr):
    """Each PART of the last axis back to front: renames registers, moves nothing."""
    for power in tl.static_range(4):
        if 2 << power <= PART:
            one, other = apart(x, ROWS, LANES, SIZE, 1 << power)
            x = together(other, one, ROWS, LANES, SIZE, 1 << power)
    return x


@triton.jit
def exchange(x, ROWS: tl.constexpr, LANES: tl.constexpr, SIZE: tl.constexpr, STEP: tl.constexpr):
    """The larger of two elements STEP apart to the front."""
    one, other = apart(x, ROWS, LANES, SIZE, STEP)
    return together(tl.maximum(one, other), tl.minimum(one, other), ROWS, LANES, SIZE, STEP)


@triton.jit
def sort(x, ROWS: tl.constexpr):
    """Eight values, the largest first: a bitonic network (Batcher 1968)."""
    for power in tl.static_range(3):
        # Runs of 2^power are in order: set each against its neighbour back to front.
        one, other = apart(x, ROWS, 4, 8, 1 << power)
        other = tl.reshape(reverse(other, ROWS, 4, 4, 1 << power), one.shape)
        x = together(one, other, ROWS, 4, 8, 1 << power)
        for finer in tl.static_range(power + 1):
            x = exchange(x, ROWS, 4, 8, 1 << (power - finer))
    return x


@triton.jit
def tidy(x, ids, ROWS: tl.constexpr, LANES: tl.constexpr, SIZE: tl.constexpr):
    """Put a bitonic list in order, and what belongs to its values with it."""
    for power in tl.static_range(1, 5):
        if SIZE >> power > 0:
            one, other = apart(x, ROWS, LANES, SIZE, SIZE >> power)
            left, right = apart(ids, ROWS, LANES, SIZE, SIZE >> power)
            keep = one >= other
            first, second = tl.where(keep, left, right), tl.where(keep, right, left)
            ids = together(first, second, ROWS, LANES, SIZE, SIZE >> power)
            first, second = tl.maximum(one, other), tl.minimum(one, other)
            x = together(first, second, ROWS, LANES, SIZE, SIZE >> power)
    return x, ids


@triton.jit
def merge(x, ids, fresh, tag, ROWS: tl.constexpr, D: tl.constexpr):
    """The D largest of a list and of eight fresh values, both in order.

    maxᵢ (xᵢ, fresh_{D−1−i}) holds them, in bitonic order
    """
    fresh = reverse(fresh, ROWS, 4, 8, 8)
    if D == 8:
        ids = tl.where(fresh > x, tag, ids)
        x = tl.maximum(fresh, x)
    else:
        kept, last = apart(x, ROWS, 4, D, 8)
        kept_ids, last_ids = apart(ids, ROWS, 4, D, 8)
        fresh = tl.reshape(fresh, (ROWS, 4, 1, 8))
        last_ids = tl.where(fresh > last, tag, last_ids)
        x = together(kept, tl.maximum(fresh, last), ROWS, 4, D, 8)
        ids = together(kept_ids, last_ids, ROWS, 4, D, 8)
    return tidy(x, ids, ROWS, 4, D)


@triton.jit
def fold(x, ids, ROWS: tl.constexpr, LANES: tl.constexpr, D: tl.constexpr):
    """The D largest of the lists of two lanes, for each two of them."""
    HALF: tl.constexpr = LANES // 2
    x, y = tl.split(tl.permute(tl.reshape(x, (ROWS, HALF, 2, D)), (0, 1, 3, 2)))
    ids, jds = tl.split(tl.permute(tl.reshape(ids, (ROWS, HALF, 2, D)), (0, 1, 3, 2)))
    y, jds = reverse(y, ROWS, HALF, D, D), reverse(jds, ROWS, HALF, D, D)
    ids = tl.where(y > x, jds, ids)
    return tidy(tl.maximum(x, y), ids, ROWS, HALF, D)


@triton.jit
def narrow(x, ids, ROWS: tl.constexpr, D: tl.constexpr):
    """Of the lists of all four lanes the D best, (rows, 1, D), or (rows,) if D is 1.

    Given are tags; returned is twice the first key of each, and 1 more if it goes on.
    """
    lane = tl.arange(0, 4)[None, :]
    if D > 1:
        lane = lane[:, :, None]
    keys = ids // 2 * SPAN + (x.to(tl.int32, bitcast=True) & 7) * 16 + lane * 2
    keys = keys * 2 + ids % 2
    if D == 1:
        best = tl.max(x, 1)
        keys = tl.max(tl.where(x == best[:, None], keys, -1), 1)
    else:
        best, keys = fold(x, keys, ROWS, 4, D)
        best, keys = fold(best, keys, ROWS, 2, D)
    return best, keys
