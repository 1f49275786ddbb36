"""Attention within windows of one size, in Triton: the passes there and back.

A program finds the cells of a window by arithmetic, so that none is moved; it holds their scores in
registers, and computes them again on the way back. What several windows add to, each program sums
over its own windows, one after another.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportGeneralTypeIssues=false, reportArgumentType=false
# pyright: reportAssignmentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN201, ANN202

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
HIDDEN = tl.constexpr(-1e30)


@triton.jit
def _place(places, window, t, cells, ALL: tl.constexpr):
    """Where on its map cell t of a window lies, whether it is a cell, and of which region.

    A window that is all of its map needs no table.
    """
    code = tl.where(t < cells, t * 8, -1)
    if not ALL:
        code = tl.load(places + window * cells + t, mask=t < cells, other=-1)
    return code >> 3, code >= 0, code & 7


@triton.jit
def _load(pointer, cell, real, stride, width: tl.constexpr, WIDTH: tl.constexpr):
    """One head of some cells; zero where there is none."""
    column = tl.arange(0, WIDTH)[None, :]
    inside = real[:, None] & (column < width)
    return tl.load(pointer + cell[:, None] * stride + column, mask=inside, other=0.0)


@triton.jit
def _store(pointer, x, cell, real, stride, width: tl.constexpr, WIDTH: tl.constexpr):
    column = tl.arange(0, WIDTH)[None, :]
    inside = real[:, None] & (column < width)
    at = pointer + cell[:, None] * stride + column
    tl.store(at, x.to(pointer.dtype.element_ty), mask=inside)


@triton.jit
def _load_keys(
    own, inner, places, window, s, cells,
    ALL: tl.constexpr, width: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Keys and values of cells s, and where they lie."""
    cell, real, region = _place(places, window, s, cells, ALL)
    k = _load(own + inner, cell, real, 3 * inner, width, WIDTH)
    v = _load(own + 2 * inner, cell, real, 3 * inner, width, WIDTH)
    return k, v, s, region, cell, real


@triton.jit
def _store_keys(own, inner, dk, dv, keys, width: tl.constexpr, WIDTH: tl.constexpr):
    _, _, _, _, cell, real = keys
    _store(own + inner, dk, cell, real, 3 * inner, width, WIDTH)
    _store(own + 2 * inner, dv, cell, real, 3 * inner, width, WIDTH)


@triton.jit
def _added(
    biases, scales, scale, head, BIASED: tl.constexpr, LEARNT: tl.constexpr, S: tl.constexpr
):
    """What scores are multiplied by, and what `spread` has for each pair of cells."""
    bias = scale
    if LEARNT:
        scale = tl.load(scales + head).to(tl.float32)
    if BIASED:
        t, s = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
        bias = tl.load(biases + head * S * S + t * S + s)
    return scale, bias


@triton.jit
def _scores(
    q, t, here, keys, scale, bias, cells,
    ITSELF: tl.constexpr, REGIONS: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    """The scores q kᵀ · scale + bias, in powers of two."""
    k, _, s, there, _, _ = keys
    e = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)
    if BIASED:
        e = e + bias
    else:
        seen = (s < cells)[None, :]
        if not ITSELF:
            seen = seen & (t[:, None] != s[None, :])
        e = tl.where(seen, e, HIDDEN)
    if REGIONS:
        e = tl.where(here[:, None] == there[None, :], e, HIDDEN)
    return e


@triton.jit
def _weights(
    q, t, here, keys, rest, scale, bias, cells,
    ITSELF: tl.constexpr, REGIONS: tl.constexpr, BIASED: tl.constexpr, REST: tl.constexpr,
):  # fmt: skip
    """The weights of keys and of the rest of them, before and by what their sum divides them.

    All are zero where all is hidden.
    """
    p = _scores(q, t, here, keys, scale, bias, cells, ITSELF, REGIONS, BIASED)
    p2, highest = p, tl.max(p, 1)
    if REST:
        p2 = _scores(q, t, here, rest, scale, bias, cells, ITSELF, REGIONS, BIASED)
        highest = tl.maximum(highest, tl.max(p2, 1))
    highest = tl.maximum(highest, 0.1 * HIDDEN)[:, None]
    p = tl.exp2(p - highest)
    total = tl.sum(p, 1)
    if REST:
        p2 = tl.exp2(p2 - highest)
        total += tl.sum(p2, 1)
    return p, p2, tl.where(total > 0, 1 / tl.where(total > 0, total, 1.0), 0.0)


@triton.jit
def forward(
    qkv, out, places, biases, scales, scale, windows, programs, heads,
    size, count, cells,
    ITSELF: tl.constexpr, REGIONS: tl.constexpr, BIASED: tl.constexpr, LEARNT: tl.constexpr,
    ALL: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr, S: tl.constexpr, REST: tl.constexpr,
    width: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Output = A v, for one head of every so-manieth window."""
    head, inner = tl.program_id(0) % heads, heads * width
    scale, bias = _added(biases, scales, scale, head, BIASED, LEARNT, S)
    s, s2 = tl.arange(0, S), S + tl.arange(0, REST if REST else S)
    for window in range(tl.program_id(0) // heads, windows, programs):
        first, which = (window // count).to(tl.int64) * size, window % count
        own = qkv + first * (3 * inner) + head * width
        keys = _load_keys(own, inner, places, which, s, cells, ALL, width, WIDTH)
        rest = keys
        if REST:
            rest = _load_keys(own, inner, places, which, s2, cells, ALL, width, WIDTH)
        for tile in range(TILES):
            t = tile * TILE + tl.arange(0, TILE)
            cell, real, here = _place(places, which, t, cells, ALL)
            q = _load(own, cell, real, 3 * inner, width, WIDTH)
            p, p2, share = _weights(
                q, t, here, keys, rest, scale, bias, cells, ITSELF, REGIONS, BIASED, REST
            )
            o = tl.dot(p.to(q.dtype), keys[1], input_precision="ieee")
            if REST:
                o = tl.dot(p2.to(q.dtype), rest[1], o, input_precision="ieee")
            o = o * share[:, None]
            _store(out + first * inner + head * width, o, cell, real, inner, width, WIDTH)


@triton.jit
def _back(q, do, keys, rest, p, p2, dk, dk2, dv, dv2, REST: tl.constexpr):
    """What some queries learn, and add to what keys and values learn; all but for the scale.

    ∂A = ∂o vᵀ        ∂E = A ∘ (∂A − rowsum(A ∘ ∂A))
    """
    dp = tl.dot(do, tl.trans(keys[1]), input_precision="ieee")
    mean = tl.sum(p * dp, 1)
    if REST:
        dp2 = tl.dot(do, tl.trans(rest[1]), input_precision="ieee")
        mean += tl.sum(p2 * dp2, 1)
    de = p * (dp - mean[:, None])
    e = de.to(q.dtype)
    dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="ieee")
    dk = tl.dot(tl.trans(e), q, dk, input_precision="ieee")
    dq = tl.dot(e, keys[0], input_precision="ieee")
    if REST:
        e = (p2 * (dp2 - mean[:, None])).to(q.dtype)
        dv2 = tl.dot(tl.trans(p2.to(do.dtype)), do, dv2, input_precision="ieee")
        dk2 = tl.dot(tl.trans(e), q, dk2, input_precision="ieee")
        dq = tl.dot(e, rest[0], dq, input_precision="ieee")
    return dq, de, dk, dk2, dv, dv2


@triton.jit
def _keep(
    sums, own, head, heads, BIASED: tl.constexpr, LEARNT: tl.constexpr, SUMMED: tl.constexpr,
    S: tl.constexpr, width: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """What a program has summed: for pairs of cells, for the scale, for biases of q, k and v.

    A bias that all keys share changes no weight.
    """
    by_pair, by_scale, by_query, by_value = own
    if BIASED:
        t, s = tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
        tl.store(sums + head * S * S + t * S + s, by_pair)
        sums += heads * S * S
    if LEARNT:
        tl.store(sums + head, tl.sum(tl.sum(by_scale, 1), 0))
        sums += heads
    if SUMMED:
        column, inner = tl.arange(0, WIDTH), heads * width
        at = sums + head * width + column
        tl.store(at, tl.sum(by_query, 0), mask=column < width)
        tl.store(at + inner, tl.zeros([WIDTH], tl.float32), mask=column < width)
        tl.store(at + 2 * inner, tl.sum(by_value, 0), mask=column < width)


@triton.jit
def _queries_back(
    qkv, grad, slopes, places, which, keys, rest, scale, bias, inner, cells, sums,
    ITSELF: tl.constexpr, REGIONS: tl.constexpr, BIASED: tl.constexpr, LEARNT: tl.constexpr,
    SUMMED: tl.constexpr, ALL: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr,
    S: tl.constexpr, REST: tl.constexpr, width: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """What the queries of a window learn is stored; what others learn of them is summed."""
    by_pair, by_scale, by_query, by_value = sums
    dk = tl.zeros([S, WIDTH], tl.float32)
    dk2 = tl.zeros([REST if REST else S, WIDTH], tl.float32)
    dv, dv2 = dk, dk2
    for tile in range(TILES):
        t = tile * TILE + tl.arange(0, TILE)
        cell, real, here = _place(places, which, t, cells, ALL)
        q = _load(qkv, cell, real, 3 * inner, width, WIDTH)
        do = _load(grad, cell, real, inner, width, WIDTH)
        p, p2, share = _weights(
            q, t, here, keys, rest, scale, bias, cells, ITSELF, REGIONS, BIASED, REST
        )
        p, p2 = p * share[:, None], p2 * share[:, None]
        dq, de, dk, dk2, dv, dv2 = _back(q, do, keys, rest, p, p2, dk, dk2, dv, dv2, REST)
        _store(slopes, dq * scale, cell, real, 3 * inner, width, WIDTH)
        if BIASED:
            by_pair += de
        if LEARNT:
            by_scale += q * dq
        if SUMMED:  # values with a bias are read with that bias, by whoever sees anything
            by_query += dq * scale
            by_value += do if ITSELF else tl.where((share > 0)[:, None], do, 0.0)
    return dk, dk2, dv, dv2, (by_pair, by_scale, by_query, by_value)


@triton.jit
def backward(
    qkv, grad, slopes, sums, places, biases, scales, scale, windows, programs, heads, summed,
    size, count, cells,
    ITSELF: tl.constexpr, REGIONS: tl.constexpr, BIASED: tl.constexpr, LEARNT: tl.constexpr,
    SUMMED: tl.constexpr, ALL: tl.constexpr, TILE: tl.constexpr, TILES: tl.constexpr,
    S: tl.constexpr, REST: tl.constexpr, width: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """∂v = Aᵀ ∂o        ∂q = ∂E k · scale        ∂k = ∂Eᵀ q · scale."""
    head, inner = tl.program_id(0) % heads, heads * width
    scale, bias = _added(biases, scales, scale, head, BIASED, LEARNT, S)
    s, s2 = tl.arange(0, S), S + tl.arange(0, REST if REST else S)
    by_pair, by_cell = tl.zeros([TILE, S], tl.float32), tl.zeros([TILE, WIDTH], tl.float32)
    own_sums = by_pair, by_cell, by_cell, by_cell  # for each cell: threads meet only at the end
    for window in range(tl.program_id(0) // heads, windows, programs):
        first, which = (window // count).to(tl.int64) * size, window % count
        own, out = first * (3 * inner) + head * width, first * inner + head * width
        keys = _load_keys(qkv + own, inner, places, which, s, cells, ALL, width, WIDTH)
        rest = keys
        if REST:
            rest = _load_keys(qkv + own, inner, places, which, s2, cells, ALL, width, WIDTH)
        dk, dk2, dv, dv2, own_sums = _queries_back(
            qkv + own, grad + out, slopes + own, places, which, keys, rest, scale, bias, inner,
            cells, own_sums, ITSELF, REGIONS, BIASED, LEARNT, SUMMED, ALL, TILE, TILES, S, REST,
            width, WIDTH,
        )  # fmt: skip
        _store_keys(slopes + own, inner, dk * scale, dv, keys, width, WIDTH)
        if REST:
            _store_keys(slopes + own, inner, dk2 * scale, dv2, rest, width, WIDTH)
    sums += (tl.program_id(0) // heads).to(tl.int64) * summed
    _keep(sums, own_sums, head, heads, BIASED, LEARNT, SUMMED, S, width, WIDTH)


@triton.jit
def spread(offsets, biases, heads, cells, wide, side, ITSELF: tl.constexpr, S: tl.constexpr):
    """For each pair of a window's cells the number of their offset, in powers of two.

    Who is never seen is hidden.
    """
    head, t, s = tl.program_id(0), tl.arange(0, S)[:, None], tl.arange(0, S)[None, :]
    down, across = t // wide - s // wide, t % wide - s % wide
    row = (down + side - 1) * (2 * side - 1) + across + side - 1
    seen = (t < cells) & (s < cells)
    if not ITSELF:
        seen = seen & (t != s)
    found = tl.load(offsets + row * heads + head, mask=seen, other=0.0).to(tl.float32)
    tl.store(biases + head * S * S + t * S + s, tl.where(seen, found * LOG2E, HIDDEN))


@triton.jit
def gather(by_pair, by_offset, heads, cells, wide, side, S: tl.constexpr):
    """The way back from `spread`: the sum over all pairs of cells that lie as far apart."""
    offset, head, high = tl.program_id(0), tl.program_id(1), cells // wide
    down, across = offset // (2 * side - 1) - side + 1, offset % (2 * side - 1) - side + 1
    s = tl.arange(0, S)
    y, x = s // wide + down, s % wide + across
    inside = (s < cells) & (y >= 0) & (y < high) & (x >= 0) & (x < wide)
    at = by_pair + head * S * S + (y * wide + x) * S + s
    total = tl.sum(tl.load(at, mask=inside, other=0.0), 0)
    tl.store(by_offset + offset * heads + head, total)
