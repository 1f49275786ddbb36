"""Batches that are all alike: the same mixture of lengths in each, so that one shape fits all.

Rows are sorted by length and dealt out like cards, to and fro. Every batch then gets nearly the
same number of tokens, and what is missing to the fullest is filled up: well under one percent.
How many tokens a batch gets depends on the lengths alone, so every epoch has the same shape.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.batches import by_length, check_fits, epoch_draws
from saccade.data.batching.rows import BatchShape

ROUND = 16  # kernels like sizes that are multiples of it


@dataclass(frozen=True)
class MixedBatches:
    """Rows of a ragged data set in batches of one shape, of at most `budget` tokens."""

    lengths: Int[Tensor, "rows columns"]
    count: int
    shapes: tuple[BatchShape, ...]  # one for each column
    seed: int

    @classmethod
    def of_lengths(
        cls, lengths: Int[Tensor, "rows columns"], *, budget: int, seed: int
    ) -> "MixedBatches":
        check_fits(lengths, budget)
        ordered = lengths[by_length(lengths)]
        count = -(-int(lengths.sum()) // budget)
        while True:
            sums = _dealt(ordered, count, filling=0).sum(dim=0)  # (count, columns)
            tokens = -(-sums.amax(dim=0) // ROUND) * ROUND
            if int(sums.sum(dim=1).max()) <= budget or count == len(lengths):
                break
            count += 1
        longest = lengths.amax(dim=0).clamp(min=1).tolist()
        # A filling is cut into pieces no longer than the longest row: no model must reach further.
        filling = int((-(-(tokens - sums) // torch.tensor(longest))).max())
        sequences = -(-len(ordered) // count) + filling
        shapes = tuple(
            BatchShape(int(size), sequences, most) for size, most in zip(tokens, longest)
        )
        return cls(lengths, count, shapes, seed)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return self.count

    def epoch(self, number: int) -> list[Int[Tensor, " batch"]]:
        """The rows of every batch of an epoch, in order."""
        rng = epoch_draws(self.seed, number)
        shuffled = torch.randperm(len(self.lengths), generator=rng)
        rows = shuffled[by_length(self.lengths[shuffled])]  # equal lengths stay shuffled
        dealt = _deal(rows, self.count)
        return [dealt[i] for i in torch.randperm(self.count, generator=rng).tolist()]

    @property
    def positions(self) -> int:
        """How many are computed in an epoch, filling counted."""
        return self.count * sum(shape.tokens for shape in self.shapes)

    @property
    def padding(self) -> float:
        """The share of filling among all positions computed."""
        return 1 - int(self.lengths.sum()) / self.positions


def _deal(rows: Int[Tensor, " rows"], count: int) -> list[Int[Tensor, " batch"]]:
    """The rows that each of `count` batches gets."""
    return [column[column >= 0] for column in _dealt(rows, count, filling=-1).T]


def _dealt(
    rows: Int[Tensor, "rows *columns"], count: int, *, filling: int
) -> Int[Tensor, "rounds count *columns"]:
    """Row by row to `count` batches, forwards and backwards in turn."""
    rounds = -(-len(rows) // count)
    rest = rows.new_full((rounds * count - len(rows), *rows.shape[1:]), filling)
    cards = torch.cat([rows, rest]).unflatten(0, (rounds, count))
    cards[1::2] = cards[1::2].flip(1)
    return cards
