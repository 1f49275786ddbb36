"""Which calls of a site are one reading: the steps of decoding, row by row of one hypothesis.

A step of decoding goes on from a call before it if every row's past keys are those of some row of
that call. So a row is followed through a beam search too, in which rows change places, whoever runs
the search. Any other call begins anew: a second forward pass, a pass without a cache, or one that
is computed again for gradients.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.attention.look.padding import Seen, visible_keys
from saccade.attention.look.view import View


@dataclass
class Step:
    """Whether a call goes on from the one before, and which rows of it each row may go on from.

    Every layer of a pass narrows that down: in the first, rows with the same words look alike.
    """

    goes_on: bool
    alike: Bool[Tensor, "B before"] | None = None

    @property
    def parents(self) -> Int[Tensor, " B"] | None:
        """The row that each row goes on from, of those alike the nearest; None if its own."""
        if self.alike is None:
            return None
        rows, before = (torch.arange(n, device=self.alike.device) for n in self.alike.shape)
        apart = (rows[:, None] - before).abs()
        return apart.masked_fill(~self.alike, len(rows) + len(before)).argmin(dim=1)


MIXER = 6364136223846793005  # odd, with bits all over
BEGINS, GOES_ON = Step(goes_on=False), Step(goes_on=True)


@dataclass(frozen=True)
class _Past:
    """How many keys a call saw, and a number for each of them where its keys are known."""

    keys: int
    marks: Int[Tensor, "B S"] | None


class Follower:
    """Tells of each call what it goes on from."""

    def __init__(self) -> None:
        self.forward_pass = 0
        self._past: dict[str, _Past] = {}
        self._steps: dict[str, tuple[int, Step]] = {}  # by the axis of the rows, with its pass
        self._passes: dict[str, int] = {}

    def step(self, site: str, seen: Seen, rows: str, columns: str) -> Step:
        """What looks across follows those of its rows that look at themselves."""
        same_pass = self._passes.get(site) == self.forward_pass
        self._passes[site] = self.forward_pass
        if rows == columns:
            step, before = self._from_past(site, seen), self._steps.get(rows)
            if before is None or before[0] != self.forward_pass or not step.goes_on:
                self._steps[rows] = self.forward_pass, step
            elif step.alike is not None and before[1].alike is not None:
                before[1].alike &= step.alike
        elif rows not in self._steps:  # read word by word inside of one pass
            return GOES_ON if same_pass else BEGINS
        return self._steps[rows][1]

    def _from_past(self, site: str, seen: Seen) -> Step:
        queries, keys = seen.shape[2], _extent(seen)
        past = self._past.get(site)
        marks = _marks(seen, keys) if isinstance(seen, View) else None
        self._past[site] = _Past(keys, marks)
        if past is None or keys != past.keys + queries:
            return BEGINS
        if marks is None or past.marks is None:  # weights do not tell rows apart: only one is safe
            return GOES_ON if seen.shape[0] == 1 else BEGINS
        alike = (marks[:, None, : past.keys] == past.marks[None]).all(dim=2)  # (B, B before)
        return Step(goes_on=True, alike=alike) if bool(alike.any(dim=1).all()) else BEGINS


def _extent(seen: Seen) -> int:
    """How many keys there are: a cache that is allocated ahead hides those to come."""
    visible = visible_keys(seen, itself=True)
    if visible is None:
        return seen.shape[3]
    return int(visible.any(dim=0).nonzero().max()) + 1 if bool(visible.any()) else 0


def _marks(view: View, keys: int) -> Int[Tensor, "B S"]:
    """A number for each key, the same for the same bits: sums of integers do not round.

    Of the first and the last head, which stay these when others copy the heads of a group.
    """
    kinds = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}
    ends = view.k[:, [0, -1], :keys]  # (B, 2, S, K)
    bits = ends.contiguous().view(kinds[view.k.element_size()]).long()
    odd = 2 * torch.arange(2 * bits.shape[3], device=bits.device).view(2, 1, -1) + 1
    return (bits * (odd * MIXER)).sum(dim=(1, 3))
