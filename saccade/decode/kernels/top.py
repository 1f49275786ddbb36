"""The best words of a row of scores in one reading of them, on the GPU."""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Float, Int
from torch import Tensor

CHUNK = 128  # words
AT_ONCE = 32  # chunks


def take_top(
    logits: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R c"], Int[Tensor, "R c"], Float[Tensor, " R"]]:
    """The `count` best of every row in falling order, and the log of the sum of all exponentials.

    Of equal scores the word with the smaller number comes first. All scores are read once, for the
    best of each chunk of words; only chunks that a word is taken from are read again.
    """
    rows, size = logits.shape
    chunks = triton.cdiv(size, CHUNK)
    highest, sums = torch.empty(2, rows, chunks, device=logits.device)
    _look_through[(rows, triton.cdiv(chunks, AT_ONCE))](
        logits, highest, sums, size, chunks, logits.stride(0), CHUNK=CHUNK, AT_ONCE=AT_ONCE,
        num_warps=4,
    )  # fmt: skip
    scores = torch.empty(rows, count, device=logits.device)
    words = torch.empty(rows, count, dtype=torch.long, device=logits.device)
    total = torch.empty(rows, device=logits.device)
    _take_top[(rows,)](
        logits, highest, sums, scores, words, total, size, chunks, logits.stride(0), COUNT=count,
        CHUNKS=triton.next_power_of_2(chunks), CHUNK=CHUNK, num_warps=1,
    )  # fmt: skip
    return scores, words, total


@triton.jit
def _look_through(
    logits_at, highest_at, sums_at, size, chunks, stride,
    CHUNK: tl.constexpr, AT_ONCE: tl.constexpr,
):  # fmt: skip
    """Of each chunk its best score, and the sum of exponentials relative to it."""
    row = tl.program_id(0).to(tl.int64)
    chunk = tl.program_id(1) * AT_ONCE + tl.arange(0, AT_ONCE)
    word = chunk[:, None] * CHUNK + tl.arange(0, CHUNK)[None, :]
    at = logits_at + row * stride + word
    x = tl.load(at, mask=word < size, other=float("-inf")).to(tl.float32)
    best = tl.max(x, axis=1)
    zero = tl.where(best == float("-inf"), 0.0, best)
    there, to = chunk < chunks, row * chunks + chunk
    tl.store(highest_at + to, best, mask=there)
    tl.store(sums_at + to, tl.sum(tl.exp(x - zero[:, None]), axis=1), mask=there)


@triton.jit
def _take_top(
    logits_at, highest_at, sums_at, scores_at, words_at, total_at, size, chunks, stride,
    COUNT: tl.constexpr, CHUNKS: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chunk, inside = tl.arange(0, CHUNKS), tl.arange(0, CHUNK)
    there = chunk < chunks
    highest = tl.load(highest_at + row * chunks + chunk, mask=there, other=float("-inf"))
    sums = tl.load(sums_at + row * chunks + chunk, mask=there, other=0.0)
    best = tl.max(highest, axis=0)
    tl.store(total_at + row, best + tl.log(tl.sum(sums * tl.exp(highest - best), axis=0)))
    where = 0
    for i in tl.static_range(COUNT):
        after = -1
        if i:
            taken, best = best, tl.max(highest, axis=0)
            after = tl.where(best < taken, -1, where)
        which = tl.min(tl.where(highest == best, chunk, CHUNKS - 1), axis=0)
        word = which * CHUNK + inside
        at = logits_at + row * stride + word
        x = tl.load(at, mask=word < size, other=float("-inf")).to(tl.float32)
        where = tl.min(tl.where((x == best) & (word > after), word, CHUNKS * CHUNK), axis=0)
        tl.store(scores_at + row * COUNT + i, best)
        tl.store(words_at + row * COUNT + i, where.to(tl.int64))
        # Whatever comes before this word in the order has been taken already.
        left = tl.where((x < best) | ((x == best) & (word > where)), x, float("-inf"))
        highest = tl.where(chunk == which, tl.max(left, axis=0), highest)
