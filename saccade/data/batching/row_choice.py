"""Which rows of a corpus are meant: a stretch, and of it every so-and-so-many-th or all others."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.ragged import Ragged, RaggedRows, Sequences


@dataclass(frozen=True)
class RowChoice:
    """From one share of the rows up to another.

    With `every`, of these rows the ones whose number is a multiple of it (`those`), or all others.
    """

    start: float = 0.0
    end: float = 1.0
    every: int = 0
    those: bool = False

    def bounds(self, count: int) -> tuple[int, int]:
        """Where the stretch begins and ends."""
        return int(count * self.start), int(count * self.end)

    def count(self, count: int) -> int:
        """How many of so many rows are chosen."""
        start, end = self.bounds(count)
        those = len(range(0, end - start, self.every)) if self.every else 0
        return those if self.those else end - start - those

    def stretch(self, column: Ragged) -> Ragged:
        """Of a column, without a copy of its tokens; numbers of rows begin anew there."""
        return column.stretch(*self.bounds(len(column)))

    def among(self, rows: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        """Whether rows of the stretch are chosen."""
        if not self.every:
            return torch.ones(len(rows), dtype=torch.bool)
        return (rows % self.every == 0) == self.those

    def of(self, column: Ragged) -> Sequences:
        """The chosen rows of a column; only these are looked at where they are few."""
        stretch = self.stretch(column)
        if not self.every:
            return stretch
        if self.those:
            return RaggedRows(stretch, torch.arange(0, len(stretch), self.every))
        return stretch.where(self.among(torch.arange(len(stretch))))

    def holds(self, rows: Int[Tensor, " n"], count: int) -> Bool[Tensor, " n"]:
        """Whether rows of a corpus of so many are chosen."""
        start, end = self.bounds(count)
        return (rows >= start) & (rows < end) & self.among(rows - start)
