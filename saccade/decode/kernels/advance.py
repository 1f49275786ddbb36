"""What a step changes in the state of a search, in one kernel: a program for each sentence.

Does to a `BeamState` and to `Places` what `BeamState.expand` and `Places.go_on` do in a hundred
small operations, each of which would take longer to start than to run.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN202

import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import Places
from saccade.decode.beam_state import UNFINISHED, BeamState
from saccade.decode.greedy import GreedyState
from saccade.decode.top import Top

NEVER = tl.constexpr(-3.0e38)  # less probable than anything, but not yet taken
UNFINISHED_RANK = tl.constexpr(UNFINISHED)


def advance_beams(state: BeamState, slots: Places, top: Top) -> None:
    """One word further for every beam."""
    beams, each, steps = state.log_p.shape[1], top.scores.shape[1], state.words.shape[1]
    _advance_beams[(len(state.limits),)](
        top.scores, top.words, top.total, state.time, state.limits, state.over, state.log_p,
        state.words, state.parents, state.ending_log_p, state.ending_parents, state.scores,
        state.done_log_p, state.ended, state.sizes, state.slots, slots.tokens, slots.origins,
        slots.writers, state.length_penalty, state.end, steps,
        BEAMS=beams, EACH=each, CANDIDATES=triton.next_power_of_2(beams * each),
        COUNT=min(2 * beams, beams * each), SLOTS=triton.next_power_of_2(beams),
        MERGED=triton.next_power_of_2(3 * beams), STEPS=triton.next_power_of_2(steps), num_warps=1,
    )  # fmt: skip
    state.time += 1
    slots.clock[:1] += 1


def advance_rows(
    state: GreedyState, slots: Places, words: Int[Tensor, " B"], log_p: Float[Tensor, " B"]
) -> None:
    """One word further for every row."""
    block = 128
    _advance_rows[(triton.cdiv(len(words), block),)](
        words, log_p, state.time, state.limits, state.over, state.words, state.log_p, state.ended,
        state.sizes, slots.tokens, state.end, len(words), state.words.shape[1], BLOCK=block,
    )  # fmt: skip
    state.time += 1
    slots.clock[:1] += 1


@triton.jit
def _best(x, index, size: tl.constexpr):
    """The largest number and where it first is."""
    best = tl.max(x, axis=0)
    return best, tl.min(tl.where(x == best, index, size), axis=0)


@triton.jit
def _candidates(
    scores_at, words_at, total_at, log_p_at, first,
    BEAMS: tl.constexpr, EACH: tl.constexpr, CANDIDATES: tl.constexpr,
):  # fmt: skip
    """Every continuation of every beam: its log-probability and its word."""
    candidate = tl.arange(0, CANDIDATES)
    there, beam = candidate < BEAMS * EACH, candidate // EACH
    word = tl.load(words_at + first * EACH + candidate, mask=there, other=0).to(tl.int32)
    before = tl.load(log_p_at + first + beam, mask=there, other=0.0)
    before -= tl.load(total_at + first + beam, mask=there, other=0.0)
    x = before + tl.load(scores_at + first * EACH + candidate, mask=there, other=0.0)
    return tl.where(there, tl.maximum(x, NEVER), float("-inf")), word


@triton.jit
def _load_done(
    scores_at, log_p_at, ended_at, sizes_at, slots_at, first, time, merged, BEAMS: tl.constexpr
):  # fmt: skip
    """What was done before, and room for what ends now and for what is cut off."""
    old, at = merged < BEAMS, first + merged
    score = tl.load(scores_at + at, mask=old, other=float("-inf"))
    log_p = tl.load(log_p_at + at, mask=old, other=float("-inf"))
    ended = tl.load(ended_at + at, mask=old, other=0).to(tl.int32)
    size = tl.load(sizes_at + at, mask=old, other=0).to(tl.int32)
    slot = tl.load(slots_at + at, mask=old, other=0).to(tl.int32)
    return score, log_p, ended, tl.where(old, size, time + 1), slot


@triton.jit
def _expand(
    x, word, end, over, divisor, merged, beam, score, log_p, ended, slot,
    BEAMS: tl.constexpr, EACH: tl.constexpr, CANDIDATES: tl.constexpr, COUNT: tl.constexpr,
):  # fmt: skip
    """The best continuations, one after another: those that end are done, the others go on."""
    candidate = tl.arange(0, CANDIDATES)
    live_word, live_parent = tl.where(beam >= 0, end, 0), tl.where(beam >= 0, 0, 0)
    live_log_p = tl.where(beam >= 0, float("-inf"), 0.0)
    live = 0
    for i in tl.static_range(COUNT):
        best, at = _best(x, candidate, CANDIDATES)
        next_word = tl.sum(tl.where(candidate == at, word, 0), axis=0)
        x = tl.where(candidate == at, float("-inf"), x)
        best = tl.where(best <= NEVER, float("-inf"), best)
        ends = next_word == end
        if i < BEAMS:
            here = (merged == BEAMS + i) & ends & (over == 0)
            score = tl.where(here, best / divisor, score)
            log_p = tl.where(here, best, log_p)
            ended = tl.where(here, 1, ended)
            slot = tl.where(here, at // EACH, slot)
        here = (beam == live) & (ends == 0)
        live_word = tl.where(here, next_word, live_word)
        live_parent = tl.where(here, at // EACH, live_parent)
        live_log_p = tl.where(here, best, live_log_p)
        live += (ends == 0).to(tl.int32)
    return score, log_p, ended, slot, live_word, live_parent, live_log_p


@triton.jit
def _cut_off(
    at_limit, over, divisor, merged, beam, live_log_p, score, log_p, slot, BEAMS: tl.constexpr
):  # fmt: skip
    """At the limit the live ones are done as they are."""
    for i in tl.static_range(BEAMS):
        last = tl.max(tl.where(beam == i, live_log_p, float("-inf")), axis=0)
        here = (merged == 2 * BEAMS + i) & (at_limit == 1) & (over == 0)
        score = tl.where(here, last / divisor, score)
        log_p = tl.where(here, last, log_p)
        slot = tl.where(here, i, slot)
    return score, log_p, slot


@triton.jit
def _keep_best(
    scores_at, log_p_at, ended_at, sizes_at, slots_at, first,
    merged, score, log_p, ended, size, slot, BEAMS: tl.constexpr, MERGED: tl.constexpr,
):  # fmt: skip
    """Of all that is done the best, those that ended first; gives the worst score kept."""
    rank = tl.where(ended == 1, score, score - UNFINISHED_RANK)
    rank = tl.where(merged < 3 * BEAMS, tl.maximum(rank, NEVER), float("-inf"))
    worst = float("-inf")
    for i in tl.static_range(BEAMS):
        _, at = _best(rank, merged, MERGED)
        this = merged == at
        rank = tl.where(this, float("-inf"), rank)
        worst = tl.max(tl.where(this, score, float("-inf")), axis=0)
        tl.store(scores_at + first + i, worst)
        tl.store(log_p_at + first + i, tl.max(tl.where(this, log_p, float("-inf")), axis=0))
        tl.store(ended_at + first + i, tl.sum(tl.where(this, ended, 0), axis=0) == 1)
        tl.store(sizes_at + first + i, tl.sum(tl.where(this, size, 0), axis=0).to(tl.int64))
        tl.store(slots_at + first + i, tl.sum(tl.where(this, slot, 0), axis=0).to(tl.int64))
    return worst


@triton.jit
def _follow(writers_at, first, beam, parent, time, steps, real, STEPS: tl.constexpr):
    """Each beam's past is its parent's, and the newest position the parent's own."""
    step = tl.arange(0, STEPS)
    known = real[:, None] & (step < time)[None, :]
    theirs = writers_at + (first + parent)[:, None] * steps + step[None, :]
    past = tl.load(theirs, mask=known, other=0)
    tl.debug_barrier()  # all has been read before anything is written over it
    past = tl.where((step == time)[None, :], parent[:, None], past)
    mine = writers_at + (first + beam)[:, None] * steps + step[None, :]
    tl.store(mine, past, mask=real[:, None] & (step <= time)[None, :])


@triton.jit
def _advance_beams(
    scores_at, candidates_at, total_at, time_at, limits_at, over_at, log_p_at, words_at,
    parents_at, ending_log_p_at, ending_parents_at, done_scores_at, done_log_p_at, ended_at,
    sizes_at, slots_at, tokens_at, origins_at, writers_at, penalty, end, steps,
    BEAMS: tl.constexpr, EACH: tl.constexpr, CANDIDATES: tl.constexpr, COUNT: tl.constexpr,
    SLOTS: tl.constexpr, MERGED: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    sentence = tl.program_id(0)
    first, merged, beam = sentence * BEAMS, tl.arange(0, MERGED), tl.arange(0, SLOTS)
    time = tl.load(time_at).to(tl.int32)
    over = tl.load(over_at + sentence).to(tl.int32)
    at_limit = (tl.load(limits_at + sentence).to(tl.int32) == time + 1).to(tl.int32)
    divisor = tl.exp(tl.log((6.0 + time.to(tl.float32)) / 6.0) * penalty)
    done = done_scores_at, done_log_p_at, ended_at, sizes_at, slots_at
    score, log_p, ended, size, slot = _load_done(*done, first, time, merged, BEAMS)
    x, word = _candidates(
        scores_at, candidates_at, total_at, log_p_at, first, BEAMS, EACH, CANDIDATES
    )
    score, log_p, ended, slot, live_word, live_parent, live_log_p = _expand(
        x, word, end, over, divisor, merged, beam, score, log_p, ended, slot,
        BEAMS, EACH, CANDIDATES, COUNT,
    )  # fmt: skip
    ending, ending_at = (merged >= BEAMS) & (merged < 2 * BEAMS), first + merged - BEAMS
    tl.store(ending_log_p_at + ending_at, log_p, mask=ending)
    tl.store(ending_parents_at + ending_at, slot.to(tl.int64), mask=ending)
    score, log_p, slot = _cut_off(
        at_limit, over, divisor, merged, beam, live_log_p, score, log_p, slot, BEAMS
    )
    worst = _keep_best(*done, first, merged, score, log_p, ended, size, slot, BEAMS, MERGED)
    highest = tl.max(live_log_p, axis=0)
    tl.store(over_at + sentence, (over == 1) | (at_limit == 1) | (worst >= highest / divisor))
    real, note = beam < BEAMS, (sentence * steps + time) * BEAMS + beam
    tl.store(log_p_at + first + beam, live_log_p, mask=real)
    tl.store(words_at + note, live_word.to(tl.int64), mask=real)
    tl.store(parents_at + note, live_parent.to(tl.int64), mask=real)
    tl.store(tokens_at + first + beam, live_word.to(tl.int64), mask=real)
    tl.store(origins_at + first + beam, (first + live_parent).to(tl.int64), mask=real)
    _follow(writers_at, first, beam, live_parent, time, steps, real, STEPS)


@triton.jit
def _advance_rows(
    words_at, log_p_at, time_at, limits_at, over_at, said_at, sums_at, ended_at, sizes_at,
    tokens_at, end, rows, steps, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = row < rows
    time = tl.load(time_at)
    word = tl.load(words_at + row, mask=real, other=0)
    over = tl.load(over_at + row, mask=real, other=1).to(tl.int32) == 1
    limit = tl.load(limits_at + row, mask=real, other=0)
    ends = (word == end) & (over == 0)
    going = real & (over == 0)
    tl.store(said_at + row * steps + time, word, mask=real)
    tl.store(tokens_at + row, word, mask=real)
    total = tl.load(sums_at + row, mask=going, other=0.0)
    total += tl.load(log_p_at + row, mask=going, other=0.0)
    tl.store(sums_at + row, total, mask=going)
    tl.store(sizes_at + row, time + 1, mask=going)
    tl.store(ended_at + row, ends, mask=going)
    tl.store(over_at + row, ends | (limit == time + 1), mask=going)
