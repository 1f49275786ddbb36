"""The plain search over any model: step, choose, and let finished rows leave the batch."""

from dataclasses import dataclass
from typing import Generic, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.decode.protocol import Decodable, Hypothesis, OnStep, S, SharedState
from saccade.decode.search_state import SearchMethod

SHARE = 0.25  # of the batch that must be over before it leaves: copying the rest costs a step


@torch.inference_mode()
def search(
    model: Decodable[S],
    state: S,
    first: Int[Tensor, " B"],
    *,
    limits: Int[Tensor, " B"],
    end: int,
    method: SearchMethod,
    n_best: int | None = None,
    uniforms: Float[Tensor, "B T"] | None = None,
    on_step: OnStep | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` (or all) hypotheses of every row, best first; `end` is the word that ends one.

    A row that is given up ends there; of its beams, if it has several, nothing remains.
    """
    rows, over, longest = list(range(len(first))), (limits <= 0).tolist(), int(limits.max())
    progress = method.state(len(first), longest, end, first.device)
    progress.begin(limits.to(first.device), uniforms)
    beams = Beams.of(state, len(first), method.size, first.device)
    last, found = first.repeat_interleave(method.size), [list[Hypothesis]() for _ in rows]
    for t in range(longest):
        logits, beams.state = model.step(last, beams.state)
        words, parents = progress.advance(logits)
        if on_step is not None:
            progress.tell(on_step, rows, over, t)
        over = progress.over.tolist()
        if sum(over) >= max(1, SHARE * len(over)):
            gone, stay = (_places(over, which, first.device) for which in (True, False))
            for place, some in zip(gone.tolist(), progress.hypotheses(gone, n_best or method.size)):
                found[rows[place]] = some
            if len(stay) == 0:
                break
            beams.keep(stay)
            rows, over = [rows[place] for place in stay.tolist()], [False] * len(stay)
            progress, words = progress.select(stay), words[stay]
            parents = None if parents is None else parents[stay]
        last = words.flatten()
        if parents is not None:
            beams.follow(parents)
    return found


def _places(over: list[bool], which: bool, device: torch.device) -> Int[Tensor, " B"]:
    places = [i for i, one in enumerate(over) if one is which]
    return torch.tensor(places, dtype=torch.long, device=device)


@dataclass
class Beams(Generic[S]):
    """A state of `size` beams for each sentence: shared where it can be, else copied by rows."""

    state: S
    size: int

    @classmethod
    def of(cls, state: S, sentences: int, size: int, device: torch.device) -> "Beams[S]":
        """Beams that are all equal."""
        if size == 1:
            return cls(state, size)
        if isinstance(state, SharedState):
            return cls(cast(S, state.spread(size)), size)
        rows = torch.arange(sentences, device=device).repeat_interleave(size)
        return cls(state.select(rows), size)

    def follow(self, parents: Int[Tensor, "B k"]) -> None:
        """Beam i of each sentence goes on from where beam `parents[i]` stands."""
        if self.size == 1:
            return
        if isinstance(self.state, SharedState):
            self.state = cast(S, self.state.follow(parents))
        else:
            firsts = torch.arange(len(parents), device=parents.device)[:, None] * self.size
            self.state = self.state.select((parents + firsts).flatten())

    def keep(self, sentences: Int[Tensor, " B2"]) -> None:
        """Only these sentences go on."""
        if isinstance(self.state, SharedState) or self.size == 1:
            self.state = self.state.select(sentences)
        else:
            places = torch.arange(self.size, device=sentences.device)
            self.state = self.state.select((sentences[:, None] * self.size + places).flatten())
