"""What a search knows of its rows, however it chooses words: who is over, and what was said.

All tensors keep their shape and place while steps go by, and the time is one of them, so that a
step may be captured.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.blocks.inference.slots import Places
from saccade.decode.protocol import Candidate, Hypothesis, OnStep


class Expansion(NamedTuple):
    """The next word of every row or beam, and among several beams the one that it continues."""

    words: Int[Tensor, "B k"]
    parents: Int[Tensor, "B k"] | None = None


@dataclass(kw_only=True)
class SearchState(ABC):
    """B rows that are decoded side by side; `end` is the word that ends a row."""

    end: int
    time: Int[Tensor, " 1"]
    limits: Int[Tensor, " B"]
    over: Bool[Tensor, " B"]
    uniforms: Float[Tensor, "B drawn"]  # what words are drawn by, if they are drawn

    def begin(
        self, limits: Int[Tensor, " B"], uniforms: Float[Tensor, "B T"] | None = None
    ) -> None:
        """Start anew, with a batch that may be smaller; rows that it lacks are over."""
        self.reset()
        self.limits[: len(limits)] = limits
        self.over.copy_(self.limits <= 0)
        if uniforms is not None:
            self.uniforms[: len(uniforms), : uniforms.shape[1]] = uniforms

    def reset(self) -> None:
        """Forget everything."""
        for x in self._tensors().values():
            x.zero_()

    @abstractmethod
    def advance(self, logits: Float[Tensor, "R V"]) -> Expansion:
        """One word further."""

    @abstractmethod
    def advance_at(self, slots: Places, logits: Float[Tensor, "R V"]) -> None:
        """One word further at fixed places, in as few kernels as there can be."""

    @abstractmethod
    def candidates(self, t: int) -> list[list[Candidate]]:
        """What step `t`, the last one, made of every row: those that go on, then those that end."""

    @abstractmethod
    def hypotheses(self, rows: Int[Tensor, " B2"], n_best: int) -> list[list[Hypothesis]]:
        """What was said in rows that are over, best first."""

    def select(self, rows: Int[Tensor, " B2"]) -> "SearchState":
        """Some of the rows."""
        some = {name: x[rows] for name, x in self._tensors().items() if name != "time"}
        return replace(self, **some)

    def _tensors(self) -> dict[str, Tensor]:
        return {name: x for name, x in vars(self).items() if isinstance(x, Tensor)}

    def tell(self, on_step: OnStep, rows: Sequence[int], over: Sequence[bool], t: int) -> None:
        """Say what became of the rows that were not over; those that nobody awaits are given up."""
        every = zip(rows, over, self.candidates(t))
        unwanted = on_step({row: some for row, done, some in every if not done})
        places = [place for place, row in enumerate(rows) if row in unwanted]
        if places:
            self.give_up(places)

    def give_up(self, places: list[int]) -> None:
        """Nobody waits for these any more."""
        self.over[places] = True


@runtime_checkable
class SearchMethod(Protocol):
    """A way to choose words: what it keeps of so many rows. Equal ones share captured steps."""

    @property
    def size(self) -> int:
        """How many beams a row has."""
        ...

    def state(self, rows: int, longest: int, end: int, device: torch.device) -> SearchState:
        """Places for what a search will know; it is yet to begin."""
        ...
