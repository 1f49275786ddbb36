"""Rows of a Parquet table. Needs pyarrow, which comes with `saccade[data]`."""

import io
from collections.abc import Iterator, Set
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO

from saccade.data.files.unpacking import ROW, refuse_bomb
from saccade.data.readers.features import (
    TableColumns,
    pyarrow_module,
    refuse_damaged,
    rows_of_batch,
)
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.lines import CHUNK, PACKED, chunks
from saccade.data.readers.text.parquet_pages import declared_size
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

_ROWS = 64  # read at a time: not even rows of the longest texts then take much memory
_WAY_OUT = "if it is meant, write it as .jsonl"


def parquet_columns(path: Path) -> TableColumns:
    """What columns there are."""
    library = pyarrow_module("parquet")
    regular_file(path, DataError)
    with refuse_damaged(path, "Parquet"), _file(path) as file:
        return TableColumns.of(library.read_schema(file))


def parquet_count(path: Path) -> int:
    """How many rows the file says that it has."""
    library = pyarrow_module("parquet")
    with refuse_damaged(path, "Parquet"), _file(path) as file:
        return library.read_metadata(file).num_rows


def parquet_rows(path: Path, wanted: Set[str]) -> Iterator[dict[str, Any] | None]:
    """Each row as a dict of those of the `wanted` columns that there are; None if not UTF-8."""
    library = _library()
    size = regular_file(path, DataError).st_size
    try:
        with _file(path) as file:
            table: Any = library.ParquetFile(file, buffer_size=CHUNK)
            columns = _columns(path, table.schema_arrow.names, wanted)
            unpacked, rows = declared_size(file, file.seek(0, io.SEEK_END), columns)
            bounded = partial(refuse_bomb, path, packed=size, way_out=_WAY_OUT)
            bounded(unpacked=max(unpacked, ROW * rows))
            unpacked = 0
            for batch in table.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False):
                unpacked += batch.nbytes + ROW * batch.num_rows
                bounded(unpacked=unpacked)
                yield from rows_of_batch(batch)
    except DataError:
        raise
    except Exception as error:  # a damaged file makes pyarrow raise errors of any kind
        reason = printable(str(error).partition("\n")[0][:200]) or type(error).__name__
        raise DataError(f"{path} is not a whole Parquet file ({reason}); fetch it again") from None


def _file(path: Path) -> BinaryIO:
    """Its bytes, in any order: what is packed as a whole must be unpacked first."""
    return io.BytesIO(b"".join(chunks(path))) if path.suffix in PACKED else path.open("rb")


def whole_row(row: dict[str, Any] | None) -> dict[str, Any]:
    """The row, if it could be read."""
    if row is None:
        raise BadRow("not UTF-8")
    return row


def _library() -> ModuleType:
    try:
        import pyarrow.parquet
    except ImportError:
        raise DataError(
            "reading Parquet needs pyarrow, which is not installed: pip install 'saccade[data]'"
        ) from None
    return pyarrow.parquet


def _columns(path: Path, names: list[str], wanted: Set[str]) -> list[str]:
    columns = [name for name in names if name in wanted]
    if not columns:
        held = ", ".join(repr(name[:40]) for name in names[:10]) or "none"
        sought = " or ".join(repr(name) for name in sorted(wanted))
        raise DataError(f"{path} has no column {sought}; its columns are: {held}")
    return columns
