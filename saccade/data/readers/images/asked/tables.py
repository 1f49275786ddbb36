"""Rows about images in JSON Lines, JSON, CSV, TSV and Parquet, as keys and values.

In a cell of CSV and TSV a list is JSON: ["red", "dark red"], [12, 30, 200, 180]. What is null, and
an empty cell for a list, is not there.
"""

from collections.abc import Callable
from typing import Any

from saccade.data.readers.columns import Table, comma_table, tab_table
from saccade.data.readers.images.asked.documents import document_table
from saccade.data.readers.images.asked.forms import ANSWERS, AskedForm
from saccade.data.readers.images.asked.images import FILES
from saccade.data.readers.images.asked.row import BOX, REGIONS, SIDES
from saccade.data.readers.images.classes.parquet import parquet_records
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.text.parquet import parquet_columns, whole_row
from saccade.data.readers.text.records import fields_of, json_line, json_value

_LISTS = {*ANSWERS, *BOX, *REGIONS, "sentences"}


def asked_table(source: TableSource, form: AskedForm[Any]) -> Table:
    """The rows of a file."""
    table = _READERS[source.entry.form](source, form)

    def record(raw: Any) -> dict[str, Any] | None:
        fields = table.record(raw)
        return fields and {key: value for key, value in fields.items() if value is not None}

    return table._replace(record=record)


def _jsonl(source: TableSource, _: AskedForm[Any]) -> Table:
    def record(raw: bytes | None) -> dict[str, Any]:
        return fields_of(json_line(raw))

    return Table([], source.lines(), record)


def _json(source: TableSource, _: AskedForm[Any]) -> Table:
    return document_table(source)


def _csv(source: TableSource, _: AskedForm[Any]) -> Table:
    return _with_lists(comma_table(source.lines(), source.file.name))


def _tsv(source: TableSource, _: AskedForm[Any]) -> Table:
    return _with_lists(tab_table(source.lines(), source.file.name))


def _with_lists(table: Table) -> Table:
    def record(raw: Any) -> dict[str, Any] | None:
        fields = table.record(raw)
        return fields and {key: _cell(key, cell) for key, cell in fields.items()}

    return table._replace(record=record)


def _cell(key: str, cell: str) -> object:
    if key not in _LISTS:
        return cell
    bare = cell.strip()
    return json_value(bare) if bare.startswith("[") else bare or None


def _parquet(source: TableSource, form: AskedForm[Any]) -> Table:
    path = source.plain_path()
    held = parquet_columns(path).names
    image = next((name for name in FILES if name in held), "")
    wanted = {image, *form.keys, *REGIONS, *SIDES} - {""}
    return Table([], parquet_records(path, wanted, image), whole_row)


_READERS: dict[str, Callable[[TableSource, AskedForm[Any]], Table]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "tsv": _tsv,
    "parquet": _parquet,
    "json": _json,
}
TABLES = tuple(_READERS)
