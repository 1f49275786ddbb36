"""A batch of texts of which words are hidden, and how a data set becomes such batches."""

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.batches import Batches
from saccade.data.batching.rows import Rows
from saccade.tasks.base import MakeBatching
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.epochs import EpochOrder
from saccade.tasks.masked.framed import TextRows
from saccade.tasks.masked.masking import Masking

ROUND = 16  # kernels like sizes that are multiples of it


class MaskedBatch(NamedTuple):
    """Texts end to end, words of them hidden: `labels` are the words that stood `at` these places.

    `follows` says of each sequence whether its second text is another than the next, IGNORED where
    nobody asks, and None where there are no pairs; `real` is False at what only fills a shape. On a
    GPU `at` and `labels` are filled up to so many `slots`, with IGNORED labels of a special token.
    """

    rows: Rows
    types: Int[Tensor, " words"]
    real: Bool[Tensor, " words"]
    at: Int[Tensor, " hidden"]
    labels: Int[Tensor, " hidden"]
    follows: Int[Tensor, " sequences"] | None
    tokens: int
    slots: int

    @property
    def shape(self) -> Hashable:
        return self.rows.shape, len(self.at)

    def to(self, device: torch.device) -> "MaskedBatch":
        return self._each(lambda x: x.to(device, non_blocking=True), self.rows.to(device))

    def pinned(self) -> "MaskedBatch":
        return self._each(lambda x: x.pin_memory(), self.rows.pinned())

    def _each(self, move: Callable[[Tensor], Tensor], rows: Rows) -> "MaskedBatch":
        return self._replace(
            rows=rows,
            types=move(self.types),
            real=move(self.real),
            at=move(self.at),
            labels=move(self.labels),
            follows=None if self.follows is None else move(self.follows),
        )

    def filled(self) -> "MaskedBatch":
        """With as many places as other batches of its shape have at most."""
        more = self.slots - len(self.at)
        at = torch.cat([self.at, self.at.new_zeros(more)])
        return self._replace(at=at, labels=_filled(self.labels, self.slots, IGNORED))


def _filled(x: Tensor, size: int, value: int) -> Tensor:
    return torch.cat([x, x.new_full((size - len(x),), value)])


class MaskedBatches:
    """Rows of a data set in batches; other words are hidden in each epoch."""

    def __init__(
        self,
        texts: TextRows,
        masking: Masking,
        *,
        budget: int,
        seed: int,
        make_batching: MakeBatching = Batches.of_lengths,
    ) -> None:
        self.texts, self.masking = texts, masking
        self._batches = make_batching(texts.lengths[:, None], budget=budget, seed=seed)
        self.padding = self._batches.padding
        self._most = _most_of_equals(masking.most(texts), texts.lengths)
        alike = self._batches.shapes is not None
        self._slots = max(self._slots_of(rows) for rows in self._batches.epoch(0)) if alike else 0
        self._order = EpochOrder(len(self._batches), self._batches.epoch)

    def __len__(self) -> int:
        return len(self._batches)

    def at(self, position: int, *, shard: int = 0, shards: int = 1) -> MaskedBatch:
        """Batch number `position` since the start."""
        rows, counts, epoch = self._order.at(position, shard, shards)
        return self.batch(rows, epoch=epoch, counts=counts, whole=shards == 1)

    def batch(
        self, rows: Int[Tensor, " B"], *, epoch: int, counts: bool = True, whole: bool = True
    ) -> MaskedBatch:
        """Only a whole batch is filled up to its shape: shares of it differ in size."""
        texts = self.texts.take(rows)
        hidden = self.masking.hide(texts, self.texts.first[rows], epoch=epoch)
        shapes = self._batches.shapes
        shape = shapes[0] if shapes is not None and whole else None
        read = Rows.of(hidden.tokens, texts.lengths, shape=shape)
        total, follows = len(read.tokens), self.texts.follows(rows)
        if follows is not None:
            follows = _filled(follows, len(read.starts) - 1, IGNORED)
        asked: dict[str, Any] = {"labels": hidden.labels, "follows": follows}
        if not counts:
            nobody = {name: x for name, x in asked.items() if x is not None}
            asked |= {name: torch.full_like(x, IGNORED) for name, x in nobody.items()}
        return MaskedBatch(
            rows=read,
            types=_filled(texts.types, total, 0),
            real=(torch.arange(total) < len(hidden.tokens)) & counts,
            at=hidden.at,
            **asked,
            tokens=len(hidden.at) if counts else 0,
            slots=self._slots if shape is not None else self._slots_of(rows),
        )

    def _slots_of(self, rows: Int[Tensor, " B"]) -> int:
        return -(-int(self._most[rows].sum()) // ROUND) * ROUND


def _most_of_equals(
    hidden: Int[Tensor, " rows"], lengths: Int[Tensor, " rows"]
) -> Int[Tensor, " rows"]:
    """As many as any text of equal length has: which of these meet in a batch changes from epoch
    to epoch, and their lengths do not.
    """
    most = torch.zeros(int(lengths.max()) + 1, dtype=hidden.dtype)
    return most.scatter_reduce_(0, lengths, hidden, "amax")[lengths]
