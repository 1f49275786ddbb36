"""A language small enough to know all of it: the next word hangs on the last two and the time."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from saccade.data.tokens.vocabulary import OURS
from saccade.decode.greedy import Greedy
from saccade.decode.protocol import Hypothesis
from saccade.decode.search import search

END, START = OURS.end, OURS.start

WORDS = 5  # PAD, START, END, UNKNOWN and one more: any of them may be said


def extend(model: Any, state: Any, first: Tensor, **options: Any) -> list[Hypothesis]:
    """Greedy decoding: one hypothesis for each row."""
    return [one for (one,) in search(model, state, first, end=END, method=Greedy(), **options)]


@dataclass
class ToyState:
    """Which sentence a row belongs to, and what it has said."""

    sentence: Tensor
    said: Tensor

    def select(self, rows: Tensor) -> "ToyState":
        return ToyState(self.sentence[rows], self.said[rows])


@dataclass
class Toy:
    """Random scores for every sentence, time, last word but one, and last word."""

    scores: Tensor  # (sentences, T, V, V, V)
    rows_seen: list[int] = field(default_factory=list)

    @staticmethod
    def draw(sentences: int, *, longest: int = 8, seed: int = 0, sharpness: float = 1.5) -> "Toy":
        rng = torch.Generator().manual_seed(seed)
        shape = (sentences, longest, WORDS, WORDS, WORDS)
        return Toy(sharpness * torch.randn(shape, generator=rng))

    def start(self) -> tuple[ToyState, Tensor]:
        """The state before any word, and the first word of every sentence."""
        sentences = len(self.scores)
        nothing = torch.empty(sentences, 0, dtype=torch.long)
        return ToyState(torch.arange(sentences), nothing), torch.full((sentences,), START)

    def step(self, tokens: Tensor, state: ToyState) -> tuple[Tensor, ToyState]:
        self.rows_seen.append(len(tokens))
        said = torch.cat([state.said, tokens[:, None]], dim=1)
        before = said[:, -2] if said.shape[1] > 1 else torch.full_like(tokens, START)
        logits = self.scores[state.sentence, said.shape[1] - 1, before, tokens]
        return logits, ToyState(state.sentence, said)

    def log_p(self, sentence: int, words: tuple[int, ...]) -> list[float]:
        """How probable each next word is after `words`, without any of the above."""
        last = (START, START, *words)[-2:]
        row = self.scores[sentence, len(words), last[0], last[1]].tolist()
        total = math.log(sum(math.exp(x) for x in row))
        return [x - total for x in row]

    def everything(self, sentence: int, limit: int) -> dict[tuple[int, ...], float]:
        """Every sentence of the language: those that end, and those cut off at the limit."""
        live, found = {(): 0.0}, {}
        for _ in range(limit):
            grown = {
                (*words, word): total + p
                for words, total in live.items()
                for word, p in enumerate(self.log_p(sentence, words))
            }
            found |= {words: total for words, total in grown.items() if words[-1] == END}
            live = {words: total for words, total in grown.items() if words[-1] != END}
        return found | live
