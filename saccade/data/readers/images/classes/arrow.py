"""Hugging Face `datasets` on disk: a stream of Arrow's record batches. Needs pyarrow.

What `save_to_disk` writes is not compressed, so the bytes of an image are a stretch of the file:
they become a plain Member, and are never held while reading.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saccade.data.images.members import Member
from saccade.data.readers.features import (
    TableColumns,
    pyarrow_module,
    refuse_damaged,
)
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

_ROWS = 1000  # whose labels are held at a time
# Fields by their numbers in Message.fbs: of Message, DictionaryBatch and RecordBatch.
_HEADER, _DATA, _COMPRESSION = 2, 1, 3


def arrow_columns(path: Path) -> TableColumns:
    """What columns there are."""
    library = pyarrow_module("ipc")
    regular_file(path, DataError)
    with refuse_damaged(path, "Arrow stream"), library.open_stream(str(path)) as stream:
        return TableColumns.of(stream.schema)


def arrow_records(path: Path, columns: set[str], image: str) -> Iterator[dict[str, Any] | None]:
    """Each row, with a Member in place of the bytes of an image."""
    library, about = pyarrow_module("ipc"), regular_file(path, DataError)
    if not about.st_size:
        raise DataError(f"{printable(path)} is empty: it holds no table; fetch it again")
    with refuse_damaged(path, "Arrow stream"):
        _require_plain(path)
        with pyarrow_module("lib").memory_map(str(path)) as file:
            base = file.read_buffer(about.st_size).address
            file.seek(0)
            number = 0
            with library.open_stream(file) as stream:
                kept = [name for name in stream.schema.names if name in columns]
                for whole in stream:
                    batch = whole.select(kept)
                    batch.validate(full=True)  # else a damaged one could make the process die
                    for start in range(0, batch.num_rows, _ROWS):
                        for row in _rows(batch.slice(start, _ROWS), image, base, about.st_size):
                            number += 1
                            yield _placed(row, image, path, about.st_mtime_ns, number)


def _placed(row: dict[str, Any], image: str, path: Path, stamp: int, number: int) -> dict[str, Any]:
    if isinstance(row[image], tuple):
        offset, size = row[image]
        row[image] = Member(path, printable(f"{path}#{number}"), size, stamp, offset)
    return row


def _rows(batch: Any, image: str, base: int, size: int) -> Iterator[dict[str, Any]]:
    """The rows of a batch, the bytes of images as offset and size."""
    others = batch.drop_columns([image]).to_pylist()
    column = batch.column(image)
    types = pyarrow_module("types")
    held, paths = column, [None] * batch.num_rows
    if types.is_struct(column.type):
        fields = [column.type.field(place).name for place in range(column.type.num_fields)]
        held = column.field("bytes") if "bytes" in fields else None
        paths = column.field("path").to_pylist() if "path" in fields else paths
    if held is not None and (types.is_binary(held.type) or types.is_large_binary(held.type)):
        stretches = _stretches(held, base, size)
    elif column is held:  # no bytes: a path, or nothing that can be an image
        stretches, paths = [None] * batch.num_rows, column.to_pylist()
    else:
        stretches = [None] * batch.num_rows
    there = column.is_valid().to_pylist()  # a struct that is null has fields that are not
    for row, valid, stretch, path in zip(others, there, stretches, paths, strict=True):
        yield {**row, image: (stretch or path) if valid else None}


def _stretches(column: Any, base: int, size: int) -> list[tuple[int, int] | None]:
    """Where in the file the values lie; None for one that is null."""
    large = pyarrow_module("types").is_large_binary(column.type)
    _, offsets, data = column.buffers()
    if not len(column) or data is None:
        return [None] * len(column)
    place = np.frombuffer(offsets, np.int64 if large else np.int32)
    place = place[column.offset : column.offset + len(column) + 1].astype(np.int64)
    sizes = np.diff(place)
    starts = np.where(sizes, place[:-1] + (data.address - base), 0)  # what is empty lies nowhere
    if starts.min() < 0 or (starts + sizes).max() > size:
        raise ValueError("bytes of an image lie outside the file")
    valid = column.is_valid().to_pylist()
    return [
        (start, length) if there else None
        for start, length, there in zip(starts.tolist(), sizes.tolist(), valid, strict=True)
    ]


def _require_plain(path: Path) -> None:
    """Stop at compressed batches before one is unpacked: they have no place, and could be bombs."""
    library = pyarrow_module("ipc")
    with pyarrow_module("lib").memory_map(str(path)) as file:
        for message in library.MessageReader.open_stream(file):
            raw = message.metadata.to_pybytes()
            batch = _field(raw, _table(raw, 0), _HEADER)
            if message.type == "dictionary" and batch is not None:
                batch = _field(raw, _table(raw, batch), _DATA)
            elif message.type != "record batch":
                continue
            if batch is not None and _field(raw, _table(raw, batch), _COMPRESSION) is not None:
                raise DataError(
                    f"{printable(path)} is compressed, so no image can be read where it lies; "
                    "write it as Parquet"
                )


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
