"""Rows of a Parquet table. Needs pyarrow, which comes with `saccade[data]`."""

from collections.abc import Iterator, Set
from pathlib import Path
from types import ModuleType
from typing import Any

from saccade.data.readers.report import BadRow
from saccade.data.readers.text.lines import opened
from saccade.errors import DataError

_ROWS = 1_024  # read at a time


def parquet_rows(path: Path, wanted: Set[str]) -> Iterator[dict[str, Any] | None]:
    """Each row as a dict of those of the `wanted` columns that there are; None if not UTF-8."""
    library = _library()
    try:
        with opened(path) as file:
            table: Any = library.ParquetFile(file)
            columns = _columns(path, table.schema_arrow.names, wanted)
            batches = table.iter_batches(batch_size=_ROWS, columns=columns, use_threads=False)
            for batch in batches:
                yield from _rows(batch)
    except DataError:
        raise
    except Exception as error:  # a damaged file makes pyarrow raise errors of any kind
        reason = str(error).partition("\n")[0][:200]
        raise DataError(f"{path} is not a whole Parquet file ({reason}); fetch it again") from None


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


def _rows(batch: Any) -> Iterator[dict[str, Any] | None]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except UnicodeDecodeError:
                yield None
