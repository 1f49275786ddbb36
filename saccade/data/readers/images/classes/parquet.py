"""Tables in Parquet with labels, and paths of images or their bytes. Needs pyarrow."""

import os
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO

from saccade.data.images.members import Member
from saccade.data.readers.features import (
    bytes_in,
    pyarrow_module,
    refuse_damaged,
)
from saccade.data.readers.text.lines import CHUNK
from saccade.data.readers.text.parquet import parquet_rows
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

_ROWS = 16  # of images read at a time
_KEPT = 8  # times as many are kept, for threads that ask in a slightly other order


@dataclass(frozen=True)
class RowMember(Member):
    """The bytes under `column` in row `offset` of a Parquet table, from 0.

    They are fetched again when asked for. In the order of the rows this is fast; else the group of
    rows is read from its start.
    """

    column: str = ""

    def _bytes(self, file: BinaryIO) -> bytes:
        if os.fstat(file.fileno()).st_mtime_ns != self.stamp:
            raise DataError(f"{self.name} was written to; leave the data alone while it is in use")
        with refuse_damaged(self.path, "Parquet"):
            return _window(os.getpid(), self.path, self.stamp, self.column).row(self.offset)


def parquet_records(path: Path, columns: set[str], image: str) -> Iterator[dict[str, Any] | None]:
    """Each row, with a Member in place of the bytes of an image; None if it is not UTF-8."""
    stamp = regular_file(path, DataError).st_mtime_ns
    for number, row in enumerate(parquet_rows(path, columns)):
        if row is not None and (raw := bytes_in(row.get(image))) is not None:
            name = printable(f"{path}#{number + 1}")
            row[image] = RowMember(path, name, len(raw), stamp, number, column=image)
        yield row


class _Window:
    """The last rows that were read of a column, and those to come."""

    def __init__(self, path: Path, column: str) -> None:
        self._table: Any = pyarrow_module("parquet").ParquetFile(str(path), buffer_size=CHUNK)
        self._column = column
        about = self._table.metadata
        sizes = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
        self._starts = list(accumulate(sizes, initial=0))
        self._recent: deque[tuple[int, list[Any]]] = deque(maxlen=_KEPT)
        self._next, self._batches = 0, self._from(0)
        self._lock = Lock()

    def row(self, number: int) -> bytes:
        with self._lock:
            group = bisect_right(self._starts, number) - 1
            first = self._recent[0][0] if self._recent else self._next
            if number < first or self._next < self._starts[group]:
                self._recent.clear()
                self._next, self._batches = self._starts[group], self._from(group)
            while self._next <= number:
                values = next(self._batches).column(0).to_pylist()
                self._recent.append((self._next, values))
                self._next += len(values)
            start, values = next(found for found in reversed(self._recent) if found[0] <= number)
            return bytes_in(values[number - start]) or b""

    def _from(self, group: int) -> Iterator[Any]:
        groups = range(group, len(self._starts) - 1)
        return self._table.iter_batches(
            batch_size=_ROWS, row_groups=groups, columns=[self._column], use_threads=False
        )


@lru_cache(maxsize=4)
def _window(_: int, path: Path, __: int, column: str) -> _Window:
    """One for each process, for two may not share an open file; and for each state of the file."""
    return _Window(path, column)
