"""Which rows come when: an order of their own for each epoch, found again at any position."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.batches import epoch_draws
from saccade.tasks.base import shard_rows


class EpochOrder:
    """The rows of every batch since the start, given those of all batches of an epoch.

    The epoch that was asked for last is kept.
    """

    def __init__(self, batches: int, rows_of: Callable[[int], Sequence[Tensor] | Tensor]) -> None:
        self.batches, self._rows_of = batches, rows_of
        self._kept: tuple[int, Sequence[Tensor] | Tensor] = (-1, ())

    def at(self, position: int, shard: int, shards: int) -> tuple[Int[Tensor, " B"], bool, int]:
        """Those of one process of many, whether they count, and the epoch."""
        epoch, index = divmod(position, self.batches)
        if self._kept[0] != epoch:
            self._kept = epoch, self._rows_of(epoch)
        rows, counts = shard_rows(self._kept[1][index], shard, shards)
        return rows, counts, epoch


def shuffled(count: int, *, seed: int, epoch: int) -> Int[Tensor, " count"]:
    """The numbers of all rows, in any order."""
    return torch.randperm(count, generator=epoch_draws(seed, epoch))


def batches_of(rows: Int[Tensor, " n"], size: int, *, seed: int) -> EpochOrder:
    """Each of some rows once an epoch, so many at a time; the last batch may have fewer."""

    def of_epoch(epoch: int) -> Sequence[Tensor]:
        return rows[shuffled(len(rows), seed=seed, epoch=epoch)].split(size)

    return EpochOrder(-(-len(rows) // size), of_epoch)


def equal_batches(count: int, most: int, *, seed: int, repeats: int = 1) -> EpochOrder:
    """Every row once an epoch, so many at a time at most, and each batch as large as another, give
    or take one: batch norms want no small ones.

    With more `repeats` fewer rows, each as often: copy c of row i is number i + c · count.
    """
    batches = -(-count // most)

    def of_epoch(epoch: int) -> Sequence[Tensor]:
        chosen = shuffled(count, seed=seed, epoch=epoch)[: -(-count // repeats)]
        copies = chosen[:, None] + count * torch.arange(repeats)
        return copies.flatten()[:count].tensor_split(batches)

    return EpochOrder(batches, of_epoch)
