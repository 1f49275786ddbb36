"""A batch of texts of which words are hidden, and how a data set becomes such batches."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.batches import Batches
from saccade.data.batching.rows import Rows
from saccade.tasks.chapters import Chapter, ChapteredBatches, Counts, LearntRows
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.masked.framed import EncodedLines, TextRows
from saccade.tasks.masked.masking import Masking

ROUND = 16  # kernels like sizes that are multiples of it
BUDGET = 8192  # tokens that are measured at a time


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


ReadRows = Callable[[Int[Tensor, " n"]], TextRows]  # what is read, by number


@dataclass(frozen=True, kw_only=True)
class MaskedRows(LearntRows):
    """Texts of which words are hidden: those with at most `longest` tokens that have words.

    They are read from `lines`, which have so many tokens; `read` gives some of them by number.
    """

    lines: EncodedLines
    read: ReadRows
    masking: Masking
    longest: int

    def sizes(self, rows: Int[Tensor, " n"]) -> Int[Tensor, "n 1"]:
        return self.read(rows).lengths[:, None]

    def fits(self, rows: Int[Tensor, " n"], sizes: Int[Tensor, "n 1"]) -> Bool[Tensor, " n"]:
        return sizes[:, 0] <= self.longest

    def worth(self, rows: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        return self.masking.words(self.read(rows)) > 0

    def notes(self, chapter: Chapter) -> Counts:
        """How many words are hidden, how many at most by length, and the slots of a batch."""
        texts = self.read(chapter.rows)
        lengths, most = texts.lengths, torch.zeros(self.longest + 1, dtype=torch.long)
        words, slots = self.masking.words(texts), 0
        most.scatter_reduce_(0, lengths, self.masking.most(texts, words), "amax")
        if chapter.batches is not None and chapter.batches.shapes is not None:
            slots = max(slots_of(most[lengths[some]]) for some in chapter.batches.epoch(0))
        hidden = self.masking.target(words).sum()
        return {"hidden": hidden[None], "most": most[None], "slots": torch.tensor([slots])}


class MaskedBatches:
    """Rows of a data set in batches; other words are hidden in each epoch.

    Which texts of a length meet in a batch changes from epoch to epoch, so that room is made for as
    many hidden words as any of that length has.
    """

    def __init__(self, texts: MaskedRows, batches: ChapteredBatches) -> None:
        self.texts, self.batches = texts, batches
        self._most = batches.counts["most"].amax(dim=0)
        self._slots = int(batches.counts["slots"].max())

    def __len__(self) -> int:
        return len(self.batches)

    def at(self, position: int, *, shard: int = 0, shards: int = 1) -> MaskedBatch:
        """Batch number `position` since the start."""
        rows, counts, epoch = self.batches.at(position, shard, shards)
        return self.batch(rows, epoch=epoch, counts=counts, whole=shards == 1)

    def batch(
        self, rows: Int[Tensor, " B"], *, epoch: int, counts: bool = True, whole: bool = True
    ) -> MaskedBatch:
        """Only a whole batch is filled up to its shape: shares of it differ in size."""
        chosen, every = self.texts.read(rows), torch.arange(len(rows))
        texts = chosen.take(every)
        hidden = self.texts.masking.hide(texts, chosen.first, epoch=epoch)
        shapes = self.batches.shapes
        shape = shapes[0] if shapes is not None and whole else None
        read = Rows.of(hidden.tokens, texts.lengths, shape=shape)
        total, follows = len(read.tokens), chosen.follows(every)
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
            slots=self._slots if shape is not None else slots_of(self._most[texts.lengths]),
        )


def held_out_batches(texts: MaskedRows) -> MaskedBatches:
    """All of few texts, in batches to be measured."""
    lengths = texts.sizes(torch.arange(texts.count))[:, 0]
    short = lengths[lengths <= texts.longest]
    texts = replace(texts, longest=int(short.max()) if len(short) else 0)
    budget = max(BUDGET, texts.longest)
    return MaskedBatches(texts, ChapteredBatches(texts, Batches.of_lengths, budget=budget, seed=0))


def slots_of(most: Int[Tensor, " B"]) -> int:
    """Room for the hidden words of texts that have so many at most."""
    return -(-int(most.sum()) // ROUND) * ROUND
