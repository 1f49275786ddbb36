"""Many small objects as compressed blocks: what is read of a data set, without an object a row.

What is said of an image is some kilobyte as objects, and a tenth of that here. Rows come out
block by block, so that going through all of them, or through some in order, unpacks each once.
"""

import pickle
import zlib
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import eq
from typing import Any, Generic, TypeVar, overload

import numpy as np
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.blocks import blocks

BLOCK = 128  # rows that are packed together
FAST = 1  # of the levels of zlib

Row = TypeVar("Row")
Part = TypeVar("Part")


class LazyRows(Sequence[Row]):
    """Rows that are made when they are asked for."""

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> list[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | list[Row]:
        if isinstance(place, slice):
            return [self.row(number) for number in range(*place.indices(len(self)))]
        return self.row(range(len(self))[place])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def row(self, number: int) -> Row:
        """That of this number, which is there."""


class PackedRows(LazyRows[Row]):
    """Rows of any kind that can be pickled; each is a copy of its own."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._blocks, self._count = list[bytes](), 0
        self._last: tuple[int, list[Row]] = -1, []
        for block in blocks(rows, most=BLOCK, size=lambda row: 0, total=1):
            self._count += len(block)
            self._blocks.append(zlib.compress(pickle.dumps(block), FAST))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        for number in range(len(self._blocks)):
            yield from self._unpacked(number)

    def row(self, number: int) -> Row:
        block, place = divmod(number, BLOCK)
        last = self._last  # threads may ask at once, and each looks at one pair
        if last[0] != block:
            self._last = last = block, self._unpacked(block)
        return last[1][place]

    def _unpacked(self, number: int) -> list[Row]:
        return pickle.loads(zlib.decompress(self._blocks[number]))


@dataclass(frozen=True, eq=False)
class SomeRows(LazyRows[Row]):
    """A choice of other rows."""

    whole: Sequence[Row]
    numbers: Int[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.numbers)

    def row(self, number: int) -> Row:
        return self.whole[int(self.numbers[number])]


@dataclass(frozen=True, eq=False)
class RowParts(LazyRows[Part], Generic[Row, Part]):
    """What `take` makes of each row."""

    rows: Sequence[Row]
    take: Callable[[Row], Part]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Part]:
        return map(self.take, self.rows)

    def row(self, number: int) -> Part:
        return self.take(self.rows[number])


class Repeats(Generic[Row]):
    """Counts the rows that were there before, of those that pass; holds eight bytes of each."""

    def __init__(self) -> None:
        self._marks = array("q")

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self._marks.append(hash(row))
            yield row

    def among(self, rows: Sequence[Row]) -> int:
        """How many of these, which have passed, are equal to one before."""
        marks: np.ndarray[Any, Any] = np.frombuffer(self._marks, np.int64)
        _, first, counts = np.unique(marks, return_index=True, return_counts=True)
        if len(first) == len(marks):
            return 0
        again = np.isin(marks, marks[first[counts > 1]]).nonzero()[0].tolist()
        return len(again) - len({rows[number] for number in again})
