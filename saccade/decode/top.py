"""The best words by their scores, and what turns scores into log-probabilities.

    log p(w) = score(w) − log Σᵥ exp score(v)

Log-probabilities of the whole vocabulary are never made: a search needs those of a few words.
"""

from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor

from saccade.attention.kernels import HAS_TRITON

LARGEST_VOCABULARY = 1 << 16  # that one program of the kernel holds at once
MOST = 32  # words that it finds, one after another
CHUNK = 64  # words, of which at first only the best is looked at


class Top(NamedTuple):
    """Words in falling order with their scores, and the log of the sum over all words."""

    scores: Float[Tensor, "R c"]
    words: Int[Tensor, "R c"]
    total: Float[Tensor, " R"]


class Continuations(NamedTuple):
    """The best continuations of each sentence's beams in falling order."""

    log_p: Float[Tensor, "B c"]
    parents: Int[Tensor, "B c"]
    words: Int[Tensor, "B c"]


def top(logits: Float[Tensor, "R V"], count: int) -> Top:
    """The `count` best words of every row, or all there are."""
    count = min(count, logits.shape[1])
    if HAS_TRITON and logits.is_cuda and logits.shape[1] <= LARGEST_VOCABULARY and count <= MOST:
        from saccade.decode.kernels.top import take_top

        return Top(*take_top(logits, count))
    logits = logits.float()
    scores, words = _taken(logits, count)
    return Top(scores, words, _total(logits, scores[:, 0]))


def best_of(found: Top, log_p: Float[Tensor, "B k"], count: int) -> Continuations:
    """The best continuations, when the best words of every beam are known."""
    before = log_p.flatten() - found.total  # (B·k,)
    total = (found.scores + before[:, None]).view(len(log_p), -1)  # (B, k·c)
    best, index = total.topk(min(count, total.shape[1]))
    words = found.words.view(len(log_p), -1).gather(1, index)
    return Continuations(best, index // found.scores.shape[1], words)


def best_continuations(
    logits: Float[Tensor, "R V"], log_p: Float[Tensor, "B k"], count: int
) -> Continuations:
    """The `count` best continuations of each sentence's beams, with their log-probabilities.

    log p(y₁ … yₜ) = log p(y₁ … yₜ₋₁) + score(yₜ) − log Σ exp score
    """
    if logits.is_cuda:
        return best_of(top(logits, count), log_p, count)
    logits = logits.float()
    if _in_chunks(logits, count):
        return _continued_by_chunks(logits, log_p, count)
    before = log_p.flatten() - _total(logits, logits.amax(dim=-1))  # (B·k,)
    total = (logits + before[:, None]).view(len(log_p), -1)  # (B, k·V)
    best, index = total.topk(min(count, total.shape[1]))
    return Continuations(best, index // logits.shape[1], index % logits.shape[1])


def _continued_by_chunks(
    logits: Float[Tensor, "R V"], log_p: Float[Tensor, "B k"], count: int
) -> Continuations:
    """All beams of a sentence side by side, and only the best of each chunk in sight at first."""
    sentences, beams = log_p.shape
    chunks = logits.view(sentences, -1, CHUNK)  # (B, k·n, CHUNK)
    highest = chunks.amax(dim=-1).view(sentences, beams, -1)  # (B, k, n)
    before = log_p - _total(logits, highest.amax(dim=-1).flatten()).view_as(log_p)
    ranked = (highest + before[..., None]).flatten(1)  # (B, k·n)
    which = ranked.topk(count, sorted=False).indices  # (B, c)
    parents = which // highest.shape[2]
    inside = chunks.gather(1, which[..., None].expand(-1, -1, CHUNK))  # (B, c, CHUNK)
    inside += before.gather(1, parents)[..., None]
    best, places = inside.flatten(1).topk(count)
    where = places // CHUNK
    words = which.gather(1, where) % highest.shape[2] * CHUNK + places % CHUNK
    return Continuations(best, parents.gather(1, where), words)


def _in_chunks(logits: Float[Tensor, "R V"], count: int) -> bool:
    """Whether there are enough words for chunks of them to pay."""
    return logits.shape[1] % CHUNK == 0 and logits.shape[1] >= 4 * CHUNK * count


def _total(logits: Float[Tensor, "R V"], highest: Float[Tensor, " R"]) -> Float[Tensor, " R"]:
    """The log of Σ exp; by softmax, the one reduction over a row that torch does well on CPUs."""
    return highest - logits.softmax(dim=-1).amax(dim=-1).log_()


def _taken(
    logits: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R c"], Int[Tensor, "R c"]]:
    if _in_chunks(logits, count):
        return _by_chunks(logits, count)
    found = logits.topk(count)
    return found.values, found.indices


def _by_chunks(
    logits: Float[Tensor, "R V"], count: int
) -> tuple[Float[Tensor, "R c"], Int[Tensor, "R c"]]:
    """The best `count` words lie in the `count` chunks whose best words are best."""
    chunks = logits.unflatten(1, (-1, CHUNK))  # (R, V / CHUNK, CHUNK)
    which = chunks.amax(dim=-1).topk(count, sorted=False).indices  # (R, c)
    inside = chunks.gather(1, which[..., None].expand(-1, -1, CHUNK)).flatten(1)  # (R, c·CHUNK)
    scores, places = inside.topk(count)
    words = which.gather(1, places // CHUNK) * CHUNK + places % CHUNK
    return scores, words
