"""Rows of any number in batches: only a chapter of them is looked through at a time.

Batches of similar length take a look at all lengths, and an order of rows a number for each. Here
a chapter is looked through when it is reached, and has so many rows and tokens at most, however
many there are. What a run must know of all chapters, how many batches they have and how large these
are, is counted once and kept beside the tokens.

A chapter is short stretches of rows from everywhere, so that each is like the whole. Chapters come
in another order in each epoch. Where there is only one, batches are those of all rows together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.rows import BatchShape
from saccade.tasks.base import Batching, MakeBatching, Progress, silent
from saccade.tasks.epochs import ChapterOrder

CHAPTER_ROWS, CHAPTER_TOKENS = 1 << 20, 1 << 26  # a chapter has less than twice as many
STRETCH = 1 << 12  # rows that follow each other
APART = 7_919  # between the seeds of two chapters

Counts = dict[str, Int[Tensor, "chapters ..."]]


@dataclass(frozen=True, kw_only=True)
class LearntRows(ABC):
    """Rows by number, as a plan of batches sees them.

    There are `count`, with so many tokens, whether they are learnt from or not.
    """

    count: int
    tokens: int

    @abstractmethod
    def sizes(self, rows: Int[Tensor, " n"]) -> Int[Tensor, "n columns"]:
        """How many tokens these have, special ones counted."""

    @abstractmethod
    def fits(self, rows: Int[Tensor, " n"], sizes: Int[Tensor, "n columns"]) -> Bool[Tensor, " n"]:
        """Whether these are short enough to be learnt from; what is not is counted."""

    def among(self, rows: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        """Whether these are learnt from if they are short enough."""
        return torch.ones(len(rows), dtype=torch.bool)

    def worth(self, rows: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        """Whether there is anything to learn from these, which are short enough."""
        return torch.ones(len(rows), dtype=torch.bool)

    def notes(self, chapter: "Chapter") -> Counts:
        """What else to count of a chapter."""
        return {}


class Chapter(NamedTuple):
    """The rows that are learnt from, in batches; None where there are no rows."""

    rows: Int[Tensor, " rows"]
    batches: Batching | None
    left_out: int

    def epoch(self, number: int) -> list[Int[Tensor, " batch"]]:
        """The rows of every batch, in order."""
        return [] if self.batches is None else [self.rows[x] for x in self.batches.epoch(number)]


EachCounted = Callable[[], Iterator[Counts]]


def anew(count: EachCounted) -> Counts:
    """What is counted of each chapter, of all together."""
    every = list(count())
    return {name: torch.cat([part[name] for part in every]) for name in every[0]}


class ChapteredBatches:
    """Rows in batches within a budget, in an order that is a function of seed and position."""

    def __init__(
        self,
        rows: LearntRows,
        make: MakeBatching,
        *,
        budget: int,
        seed: int,
        counted: Callable[[EachCounted], Counts] = anew,
        progress: Progress = silent,
    ) -> None:
        self._rows, self._make, self._budget, self._seed = rows, make, budget, seed
        self._progress = progress
        self.chapters = chapters_of(rows.count, rows.tokens)
        self._chapter_at: tuple[int, Chapter | None] = (-1, None)
        self.counts = (counted if self.chapters > 1 else anew)(self._counted)
        self._order = ChapterOrder(
            self.counts["batches"].tolist(),
            lambda epoch, number: self.chapter(number).epoch(epoch),
            seed=seed,
        )
        self.shapes = common_shapes(self.counts["shapes"])

    def __len__(self) -> int:
        """How many batches an epoch has."""
        return len(self._order)

    @property
    def rows(self) -> int:
        """How many rows are learnt from."""
        return int(self.counts["rows"].sum())

    @property
    def left_out(self) -> int:
        """How many rows are too long."""
        return int(self.counts["left_out"].sum())

    @property
    def tokens(self) -> int:
        """How many tokens an epoch has, special ones counted."""
        return int(self.counts["tokens"].sum())

    @property
    def padding(self) -> float:
        """The share of padding among all positions computed."""
        shapes, positions = self.shapes, int(self.counts["positions"].sum())
        if shapes is not None:
            positions = len(self) * sum(shape.tokens for shape in shapes)
        return 1 - self.tokens / positions

    def at(self, position: int, shard: int = 0, shards: int = 1) -> tuple[Tensor, bool, int]:
        """Batch number `position` since the start: the rows of one process of many, whether they
        count, and the epoch.
        """
        return self._order.at(position, shard, shards)

    def chapter(self, number: int) -> Chapter:
        """One of the chapters; the last that was asked for is kept."""
        kept, chapter = self._chapter_at
        if chapter is None or kept != number:
            chapter = self._looked_through(number)
            self._chapter_at = number, chapter
        return chapter

    def _looked_through(self, number: int) -> Chapter:
        rows = rows_of_chapter(self._rows.count, number, self.chapters)
        rows = rows[self._rows.among(rows)]
        sizes = self._rows.sizes(rows)
        fits = self._rows.fits(rows, sizes)
        rows, left_out, sizes = rows[fits], int((~fits).sum()), sizes[fits]
        worth = self._rows.worth(rows)
        rows, sizes = rows[worth], sizes[worth]
        if not len(rows):
            return Chapter(rows, None, left_out)
        seed = self._seed + APART * number
        return Chapter(rows, self._make(sizes, budget=self._budget, seed=seed), left_out)

    def _counted(self) -> Iterator[Counts]:
        for number in range(self.chapters):
            chapter = self.chapter(number)
            rows, batches, left_out = chapter
            sizes = self._rows.sizes(rows)
            found: dict[str, Any] = {
                "batches": 0 if batches is None else len(batches),
                "rows": len(rows),
                "left_out": left_out,
                "tokens": int(sizes.sum()),
                "positions": 0 if batches is None else batches.positions,
                "shapes": [[0, 0, 0]] * sizes.shape[1],
            }
            if batches is not None and batches.shapes is not None:
                found["shapes"] = [list(shape) for shape in batches.shapes]
            counts = {name: torch.tensor([value]) for name, value in found.items()}
            yield counts | self._rows.notes(chapter)
            if self.chapters > 1:
                self._progress(number + 1, self.chapters)


def chapters_of(rows: int, tokens: int = 0) -> int:
    """How many chapters there are of so many rows."""
    wanted = max(rows // CHAPTER_ROWS, tokens // CHAPTER_TOKENS)
    return max(1, min(wanted, rows // STRETCH))


def count_of_chapter(count: int, number: int, chapters: int) -> int:
    """How many rows it has."""
    whole, rest = divmod(count, chapters * STRETCH)
    return whole * STRETCH + min(max(rest - number * STRETCH, 0), STRETCH)


def rows_of_chapter(count: int, number: int, chapters: int) -> Int[Tensor, " rows"]:
    """The numbers of its rows, rising: every so-and-so-many-th stretch is of it."""
    if chapters == 1:
        return torch.arange(count)
    begins = torch.arange(min(number * STRETCH, count), count, chapters * STRETCH)
    rows = (begins[:, None] + torch.arange(STRETCH)).flatten()
    return rows[rows < count]


def common_shapes(each: Int[Tensor, "chapters columns 3"]) -> tuple[BatchShape, ...] | None:
    """What batches of all chapters fit into, of each column; None where batches have no shape.

    What is missing to a chapter's batches may need more sequences: pieces as long as allowed.
    """
    tokens, sequences, longest = each.unbind(dim=-1)
    if not tokens.any():
        return None
    most, longest = tokens.amax(dim=0), longest.amax(dim=0)
    pieces = (-(-(most - tokens) // longest)).amax(dim=1)  # (chapters,)
    room = int((sequences.amax(dim=1) + pieces)[tokens.any(dim=1)].max())
    return tuple(BatchShape(int(size), room, int(reach)) for size, reach in zip(most, longest))
