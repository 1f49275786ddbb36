"""Texts too long to be held: each file is one, and comes in pieces that a tokenizer may take alone.

Where a part of a single one is held out it is cut in two, as short ones are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from saccade.data.readers import Problem, TextStream
from saccade.data.readers.report import GoodRows
from saccade.data.readers.text.running import character_count, characters
from saccade.data.tokens.streamed_encoding import PIECE, streamed_pieces


class FileStretch(NamedTuple):
    """Characters of a file, from one number up to another."""

    path: Path
    start: int
    end: int


@dataclass(frozen=True)
class RunningTexts:
    """The texts of a stream of files; of a single one the last `held_out` is another text."""

    stream: TextStream[str]
    held_out: float = 0.0

    @cached_property
    def good(self) -> tuple[list[FileStretch], dict[str, int]]:
        """The files that can be read, and how many cannot, which are told of as bad rows are."""
        rows = (_whole_file(path) for path in self.stream.paths)
        good = GoodRows(rows, self.stream.names, skip_bad=self.stream.skip_bad)
        return list(good), dict(good.skipped)

    @cached_property
    def texts(self) -> list[FileStretch]:
        """Where each of the texts lies."""
        every, _ = self.good
        if len(every) > 1 or not self.held_out:
            return every
        (path, start, end), cut = every[0], int(every[0].end * (1 - self.held_out))
        return [FileStretch(path, start, cut), FileStretch(path, cut, end)]

    @property
    def count(self) -> int:
        """About how many pieces there are."""
        return sum(1 + (end - start) // PIECE for _, start, end in self.texts)

    def pieces(self) -> Iterator[tuple[int, str]]:
        """Every piece, with the number of its text."""
        for number, text in enumerate(self.texts):
            for piece in streamed_pieces(characters(*text)):
                yield number, piece


def _whole_file(path: Path) -> FileStretch | Problem:
    count = character_count(path)
    return count if isinstance(count, Problem) else FileStretch(path, 0, count)
