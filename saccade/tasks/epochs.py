"""Which rows come when: an order of their own for each epoch, found again at any position."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.batches import epoch_draws
from saccade.tasks.base import shard_rows


class ChapterOrder:
    """The rows of every batch since the start, given those of all batches of a chapter in an epoch.

    Chapters come in another order in each epoch. The one that was asked for last is kept.
    """

    def __init__(
        self,
        batches: Sequence[int],
        rows_of: Callable[[int, int], Sequence[Tensor] | Tensor],
        *,
        seed: int,
    ) -> None:
        self._batches, self._rows_of, self._seed = list(batches), rows_of, seed
        self._count = sum(self._batches)
        self._kept: tuple[tuple[int, int], Sequence[Tensor] | Tensor] = ((-1, -1), ())

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return self._count

    def at(self, position: int, shard: int, shards: int) -> tuple[Int[Tensor, " B"], bool, int]:
        """Those of one process of many, whether they count, and the epoch."""
        epoch, index = divmod(position, len(self))
        chapter, index = self._chapter(epoch, index)
        if self._kept[0] != (epoch, chapter):
            self._kept = (epoch, chapter), self._rows_of(epoch, chapter)
        rows, counts = shard_rows(self._kept[1][index], shard, shards)
        return rows, counts, epoch

    def _chapter(self, epoch: int, index: int) -> tuple[int, int]:
        """Which one a batch of an epoch is in, and its number there."""
        if len(self._batches) == 1:
            return 0, index
        order = shuffled(len(self._batches), seed=self._seed, epoch=epoch)
        ends = torch.tensor(self._batches)[order].cumsum(0)
        place = int(torch.searchsorted(ends, index, right=True))
        return int(order[place]), index - (int(ends[place - 1]) if place else 0)


def epoch_order(batches: int, rows_of: Callable[[int], Sequence[Tensor] | Tensor]) -> ChapterOrder:
    """The same where a data set is one chapter."""
    return ChapterOrder([batches], lambda epoch, chapter: rows_of(epoch), seed=0)


def shuffled(count: int, *, seed: int, epoch: int) -> Int[Tensor, " count"]:
    """The numbers of all rows, in any order."""
    return torch.randperm(count, generator=epoch_draws(seed, epoch))


def batches_of(rows: Int[Tensor, " n"], size: int, *, seed: int) -> ChapterOrder:
    """Each of some rows once an epoch, so many at a time; the last batch may have fewer."""

    def of_epoch(epoch: int) -> Sequence[Tensor]:
        return rows[shuffled(len(rows), seed=seed, epoch=epoch)].split(size)

    return epoch_order(-(-len(rows) // size), of_epoch)


def equal_batches(count: int, most: int, *, seed: int, repeats: int = 1) -> ChapterOrder:
    """Every row once an epoch, so many at a time at most, and each batch as large as another, give
    or take one: batch norms want no small ones.

    With more `repeats` fewer rows, each as often: copy c of row i is number i + c · count.
    """
    batches = -(-count // most)

    def of_epoch(epoch: int) -> Sequence[Tensor]:
        chosen = shuffled(count, seed=seed, epoch=epoch)[: -(-count // repeats)]
        copies = chosen[:, None] + count * torch.arange(repeats)
        return copies.flatten()[:count].tensor_split(batches)

    return epoch_order(batches, of_epoch)
