"""Attention of a decoding step on the GPU, over memories whose room is fixed and partly filled.

One program reads for all beams of one head of one sentence. How much is filled is read from the
GPU's own memory, so that a captured step reads only what is there. The new keys and values come
straight from their projection: the same program puts them into the pool and sees them already.

    entry(t, j) = shared + t·k + j        written by beam j in step t

`writers[b, i, t]` is the beam that wrote position t of beam i's past; `shared` entries are those
from before the beams parted.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

# Found by trial on an H200: many small programs side by side, or few that hurry.
MANY = 512  # programs
SHARED_OUT = {"BLOCK": 16, "num_warps": 1}
ALONE = {"BLOCK": 32, "num_warps": 4}
HURRIED = 256  # fewer programs than this that look at some positions leave most of the GPU idle
AT_FEW = {"BLOCK": 128, "num_warps": 4}
AT_MANY = {"BLOCK": 32, "num_warps": 1}
LEAST = 16  # what a tensor core multiplies at once


def look_back(
    qkv: Float[Tensor, "R joined"],
    keys: Float[Tensor, "B N room K"],
    values: Float[Tensor, "B N room K"],
    writers: Int[Tensor, "B k steps"],
    clock: Int[Tensor, " 2"],
) -> Float[Tensor, "R D"]:
    """What every beam reads of its own past, the new position included, which is remembered.

    `clock` holds how many steps went before, and `shared`.
    """
    sentences, heads, room, width = keys.shape
    beams = writers.shape[1]
    read = qkv.new_empty(len(qkv), heads * width)
    _look_back[(sentences, heads)](
        qkv, keys, values, writers, clock, read, heads, room, writers.shape[2], width**-0.5,
        WIDTH=width, CHANNELS=_power(width), BEAMS=beams, QUERIES=_power(beams),
        **_shape(sentences * heads),
    )  # fmt: skip
    return read


def look_back_at(
    qkv: Float[Tensor, "R joined"],
    keys: Float[Tensor, "R N room K"],
    values: Float[Tensor, "R N room K"],
    positions: Int[Tensor, "L most"],
    counts: Int[Tensor, " L"],
    clock: Int[Tensor, " 2"],
) -> Float[Tensor, "R D"]:
    """The same without beams, of some positions of the past: those that the table has for the new
    one, of which the last is itself. No other key is read.
    """
    rows, heads, room, width = keys.shape
    read = qkv.new_empty(len(qkv), heads * width)
    _look_back_at[(rows, heads)](
        qkv, keys, values, positions, counts, clock, read, heads, room, positions.shape[1],
        width**-0.5, WIDTH=width, CHANNELS=_power(width),
        **(AT_FEW if rows * heads < HURRIED else AT_MANY),
    )  # fmt: skip
    return read


def look_across(
    q: Float[Tensor, "R D"],
    keys: Float[Tensor, "B N room K"],
    values: Float[Tensor, "B N room K"],
    lengths: Int[Tensor, " B"],
) -> Float[Tensor, "R D"]:
    """What every beam reads of its sentence's source, which is there once for all of them."""
    sentences, heads, room, width = keys.shape
    beams = len(q) // sentences
    read = q.new_empty(len(q), heads * width)
    _look_across[(sentences, heads)](
        q, keys, values, lengths, read, heads, room, width**-0.5,
        WIDTH=width, CHANNELS=_power(width), BEAMS=beams, QUERIES=_power(beams),
        **_shape(sentences * heads),
    )  # fmt: skip
    return read


def _shape(programs: int) -> dict[str, int]:
    return SHARED_OUT if programs >= MANY else ALONE


def _power(size: int) -> int:
    """The next power of two that a tensor core takes."""
    return max(LEAST, 1 << (size - 1).bit_length())


@triton.jit
def _attended(q, k, v, seen, top, total, read, scale):
    """One more block of the softmax over all that is seen."""
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(seen, scores, float("-inf"))
    new_top = tl.maximum(top, tl.max(scores, axis=1))
    safe = tl.where(new_top == float("-inf"), 0.0, new_top)
    weights = tl.exp(scores - safe[:, None])
    shrink = tl.exp(top - safe)
    read = read * shrink[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
    return new_top, total * shrink + tl.sum(weights, axis=1), read


@triton.jit
def _own(past_at, since, real, BEAMS: tl.constexpr):
    """Which entries are of a beam's own past, counted from when the beams parted."""
    step, writer = since // BEAMS, since % BEAMS
    parted = real & (since >= 0)[None, :]
    wrote = tl.load(past_at + step[None, :], mask=parted, other=-1)
    return (wrote == writer[None, :]) | (since < 0)[None, :]


@triton.jit
def _look_back(
    qkv_at, keys_at, values_at, writers_at, clock_at, read_at, heads, room, steps_room, scale,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, BEAMS: tl.constexpr, QUERIES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0), tl.program_id(1)
    beam, channel = tl.arange(0, QUERIES), tl.arange(0, CHANNELS)
    inside = (channel < WIDTH)[None, :]
    real = (beam < BEAMS)[:, None]
    whole = real & inside
    rows = (sentence * BEAMS + beam).to(tl.int64) * (3 * heads * WIDTH) + head * WIDTH
    new = qkv_at + rows[:, None] + channel[None, :]
    q = tl.load(new, mask=whole, other=0.0)
    k_new = tl.load(new + heads * WIDTH, mask=whole, other=0.0)
    v_new = tl.load(new + 2 * heads * WIDTH, mask=whole, other=0.0)
    steps, shared = tl.load(clock_at), tl.load(clock_at + 1)
    pool = (sentence * heads + head).to(tl.int64) * room * WIDTH
    live = shared + steps * BEAMS
    fresh = pool + (live + beam)[:, None] * WIDTH + channel[None, :]
    tl.store(keys_at + fresh, k_new, mask=whole)
    tl.store(values_at + fresh, v_new, mask=whole)
    top = tl.sum(q.to(tl.float32) * k_new.to(tl.float32), axis=1) * scale
    total = tl.full((QUERIES,), 1.0, tl.float32)
    read = v_new.to(tl.float32)
    for start in tl.range(0, live, BLOCK):
        entry = start + tl.arange(0, BLOCK)
        there = entry < live
        at = pool + entry[:, None] * WIDTH + channel[None, :]
        k = tl.load(keys_at + at, mask=there[:, None] & inside, other=0.0)
        v = tl.load(values_at + at, mask=there[:, None] & inside, other=0.0)
        seen = there[None, :] & (beam >= 0)[:, None]
        if BEAMS > 1:
            past = writers_at + (sentence * BEAMS + beam)[:, None] * steps_room
            seen = seen & _own(past, entry - shared, real & there[None, :], BEAMS)
        top, total, read = _attended(q, k, v, seen, top, total, read, scale)
    out = (sentence * BEAMS + beam).to(tl.int64) * (heads * WIDTH) + head * WIDTH
    read = read / total[:, None]
    tl.store(read_at + out[:, None] + channel[None, :], read.to(q.dtype), mask=whole)


@triton.jit
def _look_back_at(
    qkv_at, keys_at, values_at, positions_at, counts_at, clock_at, read_at, heads, room, most,
    scale, WIDTH: tl.constexpr, CHANNELS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    channel = tl.arange(0, CHANNELS)
    inside = channel < WIDTH
    new = qkv_at + row.to(tl.int64) * (3 * heads * WIDTH) + head * WIDTH + channel
    q = tl.load(new, mask=inside, other=0.0).to(tl.float32)
    k_new = tl.load(new + heads * WIDTH, mask=inside, other=0.0)
    v_new = tl.load(new + 2 * heads * WIDTH, mask=inside, other=0.0)
    now = tl.load(clock_at) + tl.load(clock_at + 1)
    pool = (row * heads + head).to(tl.int64) * room * WIDTH
    tl.store(keys_at + pool + now * WIDTH + channel, k_new, mask=inside)
    tl.store(values_at + pool + now * WIDTH + channel, v_new, mask=inside)
    top = tl.sum(q * k_new.to(tl.float32), axis=0) * scale
    total = 1.0
    read = v_new.to(tl.float32)
    before = tl.load(counts_at + now) - 1
    for start in tl.range(0, before, BLOCK):
        place = start + tl.arange(0, BLOCK)
        there = place < before
        entry = tl.load(positions_at + now * most + place, mask=there, other=0)
        at = pool + entry[:, None] * WIDTH + channel[None, :]
        k = tl.load(keys_at + at, mask=there[:, None] & inside[None, :], other=0.0)
        v = tl.load(values_at + at, mask=there[:, None] & inside[None, :], other=0.0)
        scores = tl.sum(q[None, :] * k.to(tl.float32), axis=1) * scale
        scores = tl.where(there, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=0))
        weights = tl.exp(scores - new_top)
        shrink = tl.exp(top - new_top)
        read = read * shrink + tl.sum(weights[:, None] * v.to(tl.float32), axis=0)
        total = total * shrink + tl.sum(weights, axis=0)
        top = new_top
    out = read_at + row.to(tl.int64) * (heads * WIDTH) + head * WIDTH + channel
    tl.store(out, (read / total).to(v_new.dtype), mask=inside)


@triton.jit
def _look_across(
    q_at, keys_at, values_at, lengths_at, read_at, heads, room, scale,
    WIDTH: tl.constexpr, CHANNELS: tl.constexpr, BEAMS: tl.constexpr, QUERIES: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0), tl.program_id(1)
    beam, channel = tl.arange(0, QUERIES), tl.arange(0, CHANNELS)
    inside = (channel < WIDTH)[None, :]
    real = (beam < BEAMS)[:, None]
    whole = real & inside
    rows = (sentence * BEAMS + beam).to(tl.int64) * (heads * WIDTH) + head * WIDTH
    rows = rows[:, None] + channel[None, :]
    q = tl.load(q_at + rows, mask=whole, other=0.0)
    length = tl.load(lengths_at + sentence)
    pool = (sentence * heads + head).to(tl.int64) * room * WIDTH
    top = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    read = tl.zeros((QUERIES, CHANNELS), tl.float32)
    for start in tl.range(0, length, BLOCK):
        entry = start + tl.arange(0, BLOCK)
        there = entry < length
        at = pool + entry[:, None] * WIDTH + channel[None, :]
        k = tl.load(keys_at + at, mask=there[:, None] & inside, other=0.0)
        v = tl.load(values_at + at, mask=there[:, None] & inside, other=0.0)
        seen = there[None, :] & (beam >= 0)[:, None]
        top, total, read = _attended(q, k, v, seen, top, total, read, scale)
    read = read / tl.where(total > 0, total, 1.0)[:, None]  # a sentence that is not there reads 0
    tl.store(read_at + rows, read.to(q.dtype), mask=whole)
