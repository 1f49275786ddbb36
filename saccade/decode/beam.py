"""Beam search: keep the `size` best beginnings, not just one.

    score = log p(words) / ((5 + length) / 6)^α        (Wu et al. 2016, arXiv:1609.08144)

A sentence is done when `size` endings are kept and no live beginning, ending now, would beat the
worst of them. A beam of one is greedy decoding; a beam as wide as the language is exhaustive.
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.attention.look.glance import Glance
from saccade.attention.look.looking import Trace
from saccade.data.vocabulary import END
from saccade.decode.beam_state import Book, Found, Grown
from saccade.decode.beams import Beams
from saccade.decode.leaving import enough_gone
from saccade.decode.looks import Looks
from saccade.decode.protocol import Candidate, Decodable, Hypothesis, OnStep, S
from saccade.decode.top import best_continuations
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


@torch.inference_mode()
def search(
    model: Decodable[S],
    state: S,
    first: Int[Tensor, " B"],
    *,
    limits: Int[Tensor, " B"],
    beam: Beam,
    n_best: int | None = None,
    trace: Trace | None = None,
    on_step: OnStep | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` (or all) sequences of each row's beam, best first.

    Finished rows leave the batch. A row that is given up has no hypotheses.
    """
    running = _Running(first, limits, beam, n_best or beam.size, Looks(trace))
    beams = Beams.of(state, len(first), beam.size, first.device)
    last = first.repeat_interleave(beam.size)
    for t in range(int(limits.max())):
        logits, beams.state = model.step(last, beams.state)
        running.looks.take()
        grown = running.step(logits)
        if on_step is not None:
            running.give_up(on_step(running.candidates(grown)))
        parents = running.book.parents[:, t]  # (B, k)
        last = running.book.words[:, t].flatten()
        keep = running.leave()
        if keep is not None:
            if len(keep) == 0:
                break
            beams.keep(keep)
            parents, last = parents[keep], last.view(-1, beam.size)[keep].flatten()
        beams.follow(parents)
    return running.found


class _Running:
    """The sentences still searched for, and what was found for the others."""

    def __init__(
        self,
        first: Int[Tensor, " B"],
        limits: Int[Tensor, " B"],
        beam: Beam,
        n_best: int,
        looks: Looks,
    ) -> None:
        self.beam, self.n_best, self.looks = beam, n_best, looks
        self.book = Book.fresh(limits.to(first.device), beam.size, int(limits.max()))
        self.sentences = list(range(len(first)))
        self.live = [True] * len(first)  # of the sentences in the book, those not over
        self.given_up: set[int] = set()
        self.found: list[list[Hypothesis]] = [[] for _ in range(len(first))]
        self.places: list[dict[int, int]] = []  # where each sentence stood, step by step

    def step(self, logits: Tensor) -> Grown:
        self.places.append({sentence: i for i, sentence in enumerate(self.sentences)})
        best = best_continuations(logits, self.book.log_p, 2 * self.beam.size)
        return self.book.advance(best, self.beam.length_penalty)

    def candidates(self, grown: Grown) -> dict[int, list[Candidate]]:
        """What is kept of each sentence: beams that go on, then those that end here."""
        told: dict[int, list[Candidate]] = {}
        log_p, parents, words, live = (x.tolist() for x in grown)
        for i, sentence in enumerate(self.sentences):
            if not self.live[i]:
                continue
            every = [
                Candidate(word, parent, p, word == END)
                for word, parent, p in zip(words[i], parents[i], log_p[i])
            ]
            going = [every[j] for j in live[i] if not every[j].ended]
            over = [one for one in every[: self.beam.size] if one.ended]
            told[sentence] = [one for one in going + over if one.log_probability > -torch.inf]
        return told

    def give_up(self, unwanted: object) -> None:
        """Nobody waits for these any more."""
        rows = [i for i, sentence in enumerate(self.sentences) if sentence in unwanted]  # type: ignore[operator]
        self.given_up |= {self.sentences[i] for i in rows}
        self.book.over[rows] = True

    def leave(self) -> Int[Tensor, " B2"] | None:
        """Take out the sentences that are over, if that pays; gives the places of the rest."""
        over = self.book.over.tolist()
        self.live = [not one for one in over]
        if not enough_gone(over):
            return None
        gone, stay = (
            torch.tensor([i for i, one in enumerate(over) if one is which], dtype=torch.long)
            for which in (True, False)
        )
        gone, stay = gone.to(self.book.over.device), stay.to(self.book.over.device)
        for i, hypotheses in zip(
            gone.tolist(), self._hypotheses(self.book.found(gone, self.n_best), gone)
        ):
            if self.sentences[i] not in self.given_up:
                self.found[self.sentences[i]] = hypotheses
        self.book = self.book.select(stay)
        self.sentences = [self.sentences[i] for i in stay.tolist()]
        self.live = [True] * len(self.sentences)
        return stay

    def _hypotheses(self, found: Found, gone: Tensor) -> list[list[Hypothesis]]:
        made = hypotheses_of(found)
        if not self.looks.any:
            return made
        for i, (place, hypotheses) in enumerate(zip(gone.tolist(), made)):
            rows = found.rows[i].tolist()
            made[i] = [
                replace(one, attention=self._along(self.sentences[place], one, row))
                for one, row in zip(hypotheses, rows)
            ]
        return made

    def _along(self, sentence: int, one: Hypothesis, rows: list[int]) -> dict[str, Glance]:
        size, width = len(one.tokens) + one.finished, self.beam.size
        trail = [self.places[t][sentence] * width + row for t, row in enumerate(rows[:size])]
        return self.looks.along(trail)


def hypotheses_of(found: Found) -> list[list[Hypothesis]]:
    """The best of each sentence; empty places are left out."""
    return [
        [
            Hypothesis(words[: size - ended], score, log_p, ended)
            for score, log_p, ended, size, words in zip(*rows)
            if score > -torch.inf
        ]
        for rows in zip(*(x.tolist() for x in found[:5]))
    ]
