"""Tables as streams of Arrow's record batches, as Hugging Face `datasets` keep them on disk.

Needs pyarrow. The file is mapped and one batch is looked at after another, so that it may be larger
than memory; compressed batches are refused before one is unpacked.
"""

import struct
from collections.abc import Generator, Iterator, Set
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from saccade.data.readers.features import (
    TableColumns,
    pyarrow_module,
    refuse_damaged,
    rows_of_batch,
)
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

_ROWS = 64  # read at a time: not even rows of the longest texts then take much memory
# Fields by their numbers in Message.fbs: of Message, DictionaryBatch and RecordBatch.
_HEADER, _DATA, _COMPRESSION, _LENGTH = 2, 1, 3, 0


def arrow_columns(path: Path) -> TableColumns:
    """What columns there are."""
    library = pyarrow_module("ipc")
    regular_file(path, DataError)
    with refuse_damaged(path, "Arrow stream"), library.open_stream(str(path)) as stream:
        return TableColumns.of(stream.schema)


def arrow_rows(path: Path, wanted: Set[str]) -> Iterator[dict[str, Any] | None]:
    """Each row as a dict of those of the `wanted` columns that there are; None if not UTF-8."""
    with opened_stream(path, wanted) as (batches, _):
        for batch in batches:
            for start in range(0, batch.num_rows, _ROWS):
                yield from rows_of_batch(batch.slice(start, _ROWS))


def arrow_count(path: Path) -> int:
    """How many rows the batches say that they have."""
    with refuse_damaged(path, "Arrow stream"):
        return sum(rows for rows, _ in _batch_headers(path))


@contextmanager
def opened_stream(path: Path, wanted: Set[str]) -> Generator[tuple[Iterator[Any], int]]:
    """The record batches of a file, and the address at which it is mapped."""
    library, about = pyarrow_module("ipc"), regular_file(path, DataError)
    if not about.st_size:
        raise DataError(f"{printable(path)} is empty: it holds no table; fetch it again")
    with refuse_damaged(path, "Arrow stream"):
        _require_plain(path)
        with pyarrow_module("lib").memory_map(str(path)) as file:
            base = file.read_buffer(about.st_size).address
            file.seek(0)
            with library.open_stream(file) as stream:
                kept = [name for name in stream.schema.names if name in wanted]
                if not kept:
                    held = ", ".join(repr(name[:40]) for name in stream.schema.names[:10]) or "none"
                    sought = " or ".join(repr(name) for name in sorted(wanted))
                    raise DataError(f"{path} has no column {sought}; its columns are: {held}")
                yield _valid(stream, kept), base


def _valid(stream: Any, kept: list[str]) -> Iterator[Any]:
    for whole in stream:
        batch = whole.select(kept)
        batch.validate(full=True)  # else a damaged one could make the process die
        yield batch


def _require_plain(path: Path) -> None:
    """Stop at compressed batches before one is unpacked: they have no place, and could be bombs."""
    for _, compressed in _batch_headers(path):
        if compressed:
            raise DataError(
                f"{printable(path)} is compressed, so no image can be read where it lies, nor be "
                "told how much it unpacks to; write it as Parquet"
            )


def _batch_headers(path: Path) -> Iterator[tuple[int, bool]]:
    """Of each batch how many rows it says it has, 0 for a dictionary, and if it is compressed."""
    library = pyarrow_module("ipc")
    with pyarrow_module("lib").memory_map(str(path)) as file:
        for message in library.MessageReader.open_stream(file):
            raw = message.metadata.to_pybytes()
            batch = _field(raw, _table(raw, 0), _HEADER)
            if message.type == "dictionary" and batch is not None:
                batch = _field(raw, _table(raw, batch), _DATA)
            elif message.type != "record batch":
                continue
            if batch is None:
                continue
            table = _table(raw, batch)
            place = _field(raw, table, _LENGTH) if message.type == "record batch" else None
            rows = 0 if place is None else struct.unpack_from("<q", raw, place)[0]
            yield rows, _field(raw, table, _COMPRESSION) is not None


def _table(raw: bytes, at: int) -> int:
    """Where the table lies to which the offset at a place leads (FlatBuffers)."""
    return at + struct.unpack_from("<I", raw, at)[0]


def _field(raw: bytes, table: int, number: int) -> int | None:
    """Where a field of a table lies; None if it is not there."""
    vtable = table - struct.unpack_from("<i", raw, table)[0]
    place = 4 + 2 * number
    if place >= struct.unpack_from("<H", raw, vtable)[0]:
        return None
    offset = struct.unpack_from("<H", raw, vtable + place)[0]
    return table + offset if offset else None
