"""Hugging Face `datasets` on disk: a stream of Arrow's record batches. Needs pyarrow.

What `save_to_disk` writes is not compressed, so the bytes of an image are a stretch of the file:
they become a plain Member, and are never held while reading.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from saccade.data.images.members import Member
from saccade.data.readers.arrow_streams import opened_stream
from saccade.data.readers.features import pyarrow_module
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

_ROWS = 1000  # whose labels are held at a time


def arrow_records(path: Path, columns: set[str], image: str) -> Iterator[dict[str, Any] | None]:
    """Each row, with a Member in place of the bytes of an image."""
    about, number = regular_file(path, DataError), 0
    with opened_stream(path, columns) as (batches, base):
        for batch in batches:
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
