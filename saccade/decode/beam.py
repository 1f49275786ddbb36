"""Beam search: keep the `size` best beginnings, not just one.

    score = log p(words) / ((5 + length) / 6)^α        (Wu et al. 2016, arXiv:1609.08144)

A sentence is done when `size` endings are kept and no live beginning, ending now, would beat the
worst of them. A beam of one is greedy decoding; a beam as wide as the language is exhaustive.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.attention.looking import Trace
from saccade.data.vocabulary import END, PAD
from saccade.decode.looks import Looks
from saccade.decode.protocol import Candidate, Decodable, Hypothesis, OnStep, S
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Beam:
    """How wide to search, and how much longer sentences are favoured."""

    size: int = 5
    length_penalty: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"beam size={self.size} must be at least 1")
        if self.length_penalty < 0:
            raise ConfigError(f"length_penalty={self.length_penalty} must be 0 or more")

    def penalty(self, length: int) -> float:
        """What a sum of log-probabilities over `length` words is divided by."""
        return ((5 + length) / 6) ** self.length_penalty


@dataclass
class _Kept:
    """`k` hypotheses of each sentence: live beginnings, or endings; best first."""

    scores: Float[Tensor, "B k"]  # what they are ranked by; −∞ is an empty place
    log_p: Float[Tensor, "B k"]
    tokens: Int[Tensor, "B k T"]
    ended: Bool[Tensor, "B k"]
    trail: Int[Tensor, "B k T"]  # which row of the batch each word came from

    @classmethod
    def none(cls, first: Int[Tensor, " B"], size: int, longest: int) -> "_Kept":
        shape = len(first), size
        empty = torch.full(shape, -torch.inf, device=first.device)
        tokens = first.new_full((*shape, longest), PAD)
        return cls(empty, empty.clone(), tokens, empty == 0, torch.zeros_like(tokens))

    def choose(self, index: Int[Tensor, "B k2"]) -> "_Kept":
        """Some of the hypotheses of each sentence."""
        rows = torch.arange(len(index), device=index.device)[:, None]
        return self.each(lambda x: x[rows, index])

    def select(self, sentences: Int[Tensor, " B2"]) -> "_Kept":
        """Some of the sentences."""
        return self.each(lambda x: x[sentences])

    def merge(self, other: "_Kept") -> "_Kept":
        """The best of both, as many as there were here; those that ended go before the rest."""
        both = _Kept(*(torch.cat(pair, dim=1) for pair in zip(self._tensors(), other._tensors())))
        rank = both.scores - 1e9 * ~both.ended
        return both.choose(
            rank.argsort(dim=1, descending=True, stable=True)[:, : len(self.scores[0])]
        )

    def _tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return self.scores, self.log_p, self.tokens, self.ended, self.trail

    def each(self, change: Callable[[Tensor], Tensor]) -> "_Kept":
        """The same change to every tensor."""
        return _Kept(*(change(x) for x in self._tensors()))


@torch.inference_mode()
def search(
    model: Decodable[S],
    state: S,
    first: Int[Tensor, " B"],
    *,
    limits: Int[Tensor, " B"],
    beam: Beam,
    trace: Trace | None = None,
    on_step: OnStep | None = None,
) -> list[list[Hypothesis]]:
    """The `beam.size` best sequences of each row, best first; finished rows leave the batch.

    A row that is given up has no hypotheses.
    """
    size, limits = beam.size, limits.to(first.device)
    live = _Kept.none(first, size, int(limits.max()))
    live.log_p[:, 0] = 0.0  # at first there is only one beginning
    done = _Kept.none(first, size, int(limits.max()))
    state = state.select(torch.arange(len(first), device=first.device).repeat_interleave(size))
    sentences, last = torch.arange(len(first), device=first.device), first.repeat_interleave(size)
    found: list[list[Hypothesis]] = [[] for _ in range(len(first))]
    looks = Looks(trace)
    for t in range(int(limits.max())):
        logits, state = model.step(last, state)
        looks.take()
        grown, parents = _grow(live, logits, t, size)
        live, parents, ended = _part(grown, parents, beam, t)
        done = done.merge(ended)
        at_limit = limits[sentences] == t + 1
        scores = (live.log_p / beam.penalty(t + 1)).masked_fill(~at_limit[:, None], -torch.inf)
        done = done.merge(replace(live, scores=scores))
        over = at_limit | (done.scores[:, -1] >= live.log_p[:, 0] / beam.penalty(t + 1))
        for sentence in over.nonzero()[:, 0].tolist():
            found[int(sentences[sentence])] = _hypotheses(done, sentence, t + 1, looks)
        if on_step is not None:
            over |= _unwanted(on_step, sentences, live, parents, ended, t)
        keep = (~over).nonzero()[:, 0]
        if len(keep) == 0:
            break
        if len(keep) < len(sentences):
            sentences, live, done = sentences[keep], live.select(keep), done.select(keep)
        parents = parents[keep] + keep[:, None] * size
        last, state = live.tokens[:, :, t].flatten(), state.select(parents.flatten())
    return found


def _grow(
    live: _Kept, logits: Float[Tensor, "R V"], t: int, size: int
) -> tuple[_Kept, Int[Tensor, "B k2"]]:
    """The best continuations of the live beginnings: twice as many as live, for some will end."""
    vocabulary = logits.shape[-1]
    log_p = logits.float().log_softmax(dim=-1).unflatten(0, (-1, size))  # (B, k, V)
    total = (live.log_p[:, :, None] + log_p).flatten(1)  # (B, k·V)
    best, index = total.topk(min(2 * size, total.shape[1]))  # (B, 2k)
    parents = index // vocabulary
    grown = replace(live.choose(parents), log_p=best)
    grown.tokens[:, :, t] = index % vocabulary
    sentences = torch.arange(len(parents), device=parents.device)[:, None]
    grown.trail[:, :, t] = sentences * size + parents
    return grown, parents


def _part(
    grown: _Kept, parents: Int[Tensor, "B k2"], beam: Beam, t: int
) -> tuple[_Kept, Int[Tensor, "B k"], _Kept]:
    """Continuations that go on, and those among the best `size` that end here."""
    ends = grown.tokens[:, :, t] == END
    scores = (grown.log_p / beam.penalty(t + 1)).masked_fill(~ends, -torch.inf)
    ended = replace(grown, scores=scores, ended=ends).each(lambda x: x[:, : beam.size])
    order = grown.log_p.masked_fill(ends, -torch.inf).argsort(dim=1, descending=True, stable=True)
    order = order[:, : beam.size]
    live = grown.choose(order)
    live.log_p.masked_fill_(ends.gather(1, order), -torch.inf)
    return live, parents.gather(1, order), ended


def _unwanted(
    on_step: OnStep,
    sentences: Int[Tensor, " B"],
    live: _Kept,
    parents: Int[Tensor, "B k"],
    ended: _Kept,
    t: int,
) -> Bool[Tensor, " B"]:
    """Tell what is kept of each sentence, and hear whose are to be given up."""
    step: dict[int, list[Candidate]] = {}
    for i, sentence in enumerate(sentences.tolist()):
        going = zip(live.tokens[i, :, t].tolist(), parents[i].tolist(), live.log_p[i].tolist())
        over = zip(
            ended.tokens[i, :, t].tolist(),
            (ended.trail[i, :, t] - i * live.tokens.shape[1]).tolist(),
            ended.log_p[i].tolist(),
        )
        step[sentence] = [Candidate(*one, False) for one in going if one[2] > -torch.inf]
        step[sentence] += [Candidate(*one, True) for one in over if one[0] == END]
    given_up = torch.tensor(list(on_step(step)), dtype=sentences.dtype, device=sentences.device)
    return torch.isin(sentences, given_up)


def _hypotheses(done: _Kept, sentence: int, limit: int, looks: Looks) -> list[Hypothesis]:
    made: list[Hypothesis] = []
    for k, score in enumerate(done.scores[sentence].tolist()):
        if score == -torch.inf:
            continue
        ended = bool(done.ended[sentence, k])
        row = done.tokens[sentence, k].tolist()
        words = row[: row.index(END)] if ended else row[:limit]
        trail = done.trail[sentence, k, : len(words) + ended].tolist()
        log_p = float(done.log_p[sentence, k])
        made.append(Hypothesis(words, score, log_p, ended, looks.along(trail)))
    return made
