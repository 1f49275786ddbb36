"""Batches of similar length within a token budget, in an order that is a function of the seed.

Sorting by length leaves little padding. Where the sorted list is cut depends on the lengths alone,
so every epoch has the same number of batches of the same shapes; what changes is which of the
equally long sentences meet, and the order of the batches. Position in the data is one integer.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.rows import BatchShape
from saccade.errors import DataError


@dataclass(frozen=True)
class Batches:
    """Rows of a ragged data set, cut into batches of at most `budget` tokens, padding included.

    `lengths` may have several columns (source, target): a batch costs rows × the sum of its
    longest lengths.
    """

    lengths: Int[Tensor, "rows columns"]
    cuts: list[int]
    seed: int
    shapes: tuple[BatchShape, ...] | None = None  # every batch has a shape of its own

    @classmethod
    def of_lengths(
        cls, lengths: Int[Tensor, "rows columns"], *, budget: int, seed: int
    ) -> "Batches":
        check_fits(lengths, budget)
        ordered, cuts = lengths[by_length(lengths)], [0]
        while cuts[-1] < len(ordered):
            cuts.append(_end_of_batch(ordered, cuts[-1], budget))
        return cls(lengths, cuts, seed)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self.cuts) - 1

    def epoch(self, number: int) -> list[Int[Tensor, " batch"]]:
        """The rows of every batch of an epoch, in order."""
        rng = epoch_draws(self.seed, number)
        shuffled = torch.randperm(len(self.lengths), generator=rng)
        rows = shuffled[by_length(self.lengths[shuffled])]  # equal lengths stay shuffled
        batches = rows.split(torch.tensor(self.cuts).diff().tolist())
        return [batches[i] for i in torch.randperm(len(self), generator=rng).tolist()]

    @property
    def positions(self) -> int:
        """How many are computed in an epoch, padding counted."""
        ordered = self.lengths[by_length(self.lengths)]
        return sum(
            (end - start) * int(ordered[start:end].amax(dim=0).sum())
            for start, end in zip(self.cuts, self.cuts[1:])
        )

    @property
    def padding(self) -> float:
        """The share of padding among all positions computed."""
        return 1 - int(self.lengths.sum()) / self.positions


def epoch_draws(seed: int, number: int) -> torch.Generator:
    """Where all that is random in an epoch comes from."""
    return torch.Generator().manual_seed(seed * 1_000_003 + number)


def check_fits(lengths: Int[Tensor, "rows columns"], budget: int) -> None:
    """Refuse data of which no batch, or not every batch, can be made."""
    longest = int(lengths.sum(dim=1).max()) if len(lengths) else 0
    if longest == 0:
        raise DataError("there is nothing to make batches of: every row is empty")
    if longest > budget:
        raise DataError(
            f"a row has {longest} tokens, more than a batch may hold ({budget}); "
            f"give --train.batch-tokens {longest}, or lower what bounds rows (--longest; --window "
            "where lines are learnt)"
        )


def _end_of_batch(ordered: Int[Tensor, "rows columns"], start: int, budget: int) -> int:
    """The row at which the batch that begins at `start` would cost more than the budget."""
    window = budget // max(1, int(ordered[start].sum())) + 1  # a batch has fewer rows, if any words
    while True:
        widest = np.maximum.accumulate(ordered[start : start + window].numpy())
        costs = widest.sum(axis=1) * np.arange(1, len(widest) + 1)
        fit = int(np.searchsorted(costs, budget, side="right"))  # costs never fall
        if fit < len(widest) or start + fit == len(ordered):
            return start + fit
        window *= 2


def by_length(lengths: Int[Tensor, "rows columns"]) -> Int[Tensor, " rows"]:
    """A stable order by the last column, then by the one before it."""
    short = lengths.numel() == 0 or int(lengths.max()) < 1 << 16
    columns = lengths.numpy().astype(np.uint16 if short else np.int64)  # of 16 bits: radix sort
    order = np.arange(len(columns))
    for column in columns.T:
        order = order[column[order].argsort(kind="stable")]
    return torch.from_numpy(order)


def pad(rows: list[Int[Tensor, " _"]], *, value: int) -> Int[Tensor, "B T"]:
    """Ragged rows as one rectangle, filled up on the right."""
    lengths = torch.tensor([row.numel() for row in rows])
    real = torch.arange(int(lengths.max())) < lengths[:, None]  # (B, T)
    rectangle = rows[0].new_full(real.shape, value)
    return rectangle.masked_scatter_(real.to(rectangle.device), torch.cat(rows))
