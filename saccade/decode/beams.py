"""Beams over any model's state: shared where the state can, copied row by row where it cannot."""

from dataclasses import dataclass
from typing import Generic, cast

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.decode.protocol import S, SharedState


@dataclass
class Beams(Generic[S]):
    """The state of `size` beams for each of `sentences` sentences; `state` goes into a step."""

    state: S
    sentences: int
    size: int

    @classmethod
    def of(cls, state: S, sentences: int, size: int, device: torch.device) -> "Beams[S]":
        """Beams that are all equal."""
        if isinstance(state, SharedState):
            return cls(cast(S, state.spread(size)) if size > 1 else state, sentences, size)
        rows = torch.arange(sentences, device=device).repeat_interleave(size)
        return cls(state.select(rows) if size > 1 else state, sentences, size)

    def follow(self, parents: Int[Tensor, "B k"]) -> None:
        """Beam i of each sentence goes on from where beam `parents[i]` stands."""
        if self.size == 1:
            return
        if isinstance(self.state, SharedState):
            self.state = cast(S, self.state.follow(parents))
        else:
            self.state = self.state.select((parents + self._firsts(parents.device)).flatten())

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        """Only these sentences go on."""
        if isinstance(self.state, SharedState) or self.size == 1:
            self.state = self.state.select(sentences)
        else:
            places = torch.arange(self.size, device=sentences.device)
            self.state = self.state.select((sentences[:, None] * self.size + places).flatten())
        self.sentences = len(sentences)

    def _firsts(self, device: torch.device) -> Int[Tensor, "B 1"]:
        return torch.arange(self.sentences, device=device)[:, None] * self.size
