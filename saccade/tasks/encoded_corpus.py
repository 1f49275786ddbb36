"""A corpus as tokens, and the part of it that is learnt from or validated on."""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.kept_rows import kept_rows
from saccade.data.batching.ragged import Ragged, Sequences
from saccade.data.batching.row_choice import RowChoice
from saccade.tasks import chapters
from saccade.tasks.base import LengthBound, Preparation
from saccade.tasks.chapters import ChapteredBatches, Counts, EachCounted, LearntRows, anew
from saccade.tasks.images import cache_folder
from saccade.tasks.kept_or_told import kept_or_told

VERSION = 1  # of what is counted of chapters


class EncodedStream(NamedTuple):
    """All rows of a stream, a column of tokens for each text of a row.

    Those that are kept have a name and digests, which change when any token does.
    """

    columns: tuple[Ragged, ...]
    about: str
    kept_as: str = ""
    digests: tuple[str, ...] = ()


class EncodedPart(NamedTuple):
    """Some of these rows."""

    whole: EncodedStream
    chosen: RowChoice
    report: str

    @property
    def columns(self) -> tuple[Sequences, ...]:
        """The chosen rows alone, of which there may be a list."""
        return tuple(map(self.chosen.of, self.whole.columns))

    @property
    def stretch(self) -> tuple[Ragged, ...]:
        """Where the chosen rows lie, with others between them that `chosen.among` tells."""
        return tuple(map(self.chosen.stretch, self.whole.columns))

    def fingerprint(self, batches: ChapteredBatches | None = None) -> str:
        """Of the rows that are learnt from, all where there are no batches of them.

        Of a large corpus it is that of all there is, and how many are learnt from.
        """
        if self.is_large or (batches is not None and batches.chapters > 1):
            digests = self.whole.digests or [one.fingerprint() for one in self.whole.columns]
            learnt = len(self.stretch[0]) if batches is None else batches.rows
            return " ".join([*digests, f"{self.chosen} {learnt}"])
        if batches is None:
            return " ".join(column.fingerprint() for column in self.columns)
        rows, _, _ = batches.chapter(0)
        return " ".join(column.some(rows).fingerprint() for column in self.stretch)

    @property
    def is_large(self) -> bool:
        """Whether it has more rows or tokens than a start should look through."""
        rows, tokens = len(self.stretch[0]), sum(len(column.flat) for column in self.stretch)
        return rows >= 2 * chapters.CHAPTER_ROWS or tokens >= 2 * chapters.CHAPTER_TOKENS

    def batches(
        self, rows: LearntRows, how: Preparation, made_by: object, notes: list[str]
    ) -> ChapteredBatches:
        """Batches of these rows; what is counted of them is kept as their tokens are.

        It depends on `made_by`, beside the tokens; `notes` are lines for the user.
        """

        def counted(count: EachCounted) -> Counts:
            of = f"{self.whole.kept_as} {self.chosen} {made_by}"
            key, kept = f"{VERSION} {of} {how.batching} {how.budget}", None
            if self.whole.kept_as:
                folder = cache_folder()
                kept = kept_or_told(lambda: kept_rows(folder, "plan", key, count), "batches", notes)
            return anew(count) if kept is None else {name: kept.all(name) for name in kept.names}

        return ChapteredBatches(
            rows,
            how.make_batching,
            budget=how.budget,
            seed=how.seed,
            counted=counted,
            progress=how.progress,
        )


@dataclass(frozen=True, kw_only=True)
class BoundedRows(LearntRows):
    """Rows of which no text is longer than the bound; each text has a special token more."""

    columns: tuple[Ragged, ...]
    chosen: RowChoice
    bound: LengthBound

    @classmethod
    def of(cls, part: EncodedPart, bound: LengthBound) -> "BoundedRows":
        columns = part.stretch
        tokens = sum(len(column.flat) for column in columns)
        chosen, count = part.chosen, len(columns[0])
        return cls(columns=columns, chosen=chosen, bound=bound, count=count, tokens=tokens)

    def among(self, rows: Int[Tensor, " n"]) -> Bool[Tensor, " n"]:
        return self.chosen.among(rows)

    def sizes(self, rows: Int[Tensor, " n"]) -> Int[Tensor, "n columns"]:
        return torch.stack([column.lengths_of(rows) + 1 for column in self.columns], dim=1)

    def fits(self, rows: Int[Tensor, " n"], sizes: Int[Tensor, "n columns"]) -> Bool[Tensor, " n"]:
        return sizes.amax(dim=1) <= self.bound.tokens
