"""Read a split of pairs or of texts, whatever form the user has it in."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Generic

from saccade.data.readers.arrow_streams import arrow_count, arrow_rows
from saccade.data.readers.columns import Table, comma_table
from saccade.data.readers.many_files import shown_parts
from saccade.data.readers.report import (
    GoodRows,
    PairsRead,
    Problem,
    Row,
    TextsRead,
    collect,
    parse_rows,
)
from saccade.data.readers.tar_samples import tar_count, tar_records, whole_record
from saccade.data.readers.text.find import TextFiles, find_pairs, find_texts
from saccade.data.readers.text.lines import PACKED, lines, opened
from saccade.data.readers.text.pair_tables import PAIR_TABLES
from saccade.data.readers.text.parallel import parallel_pairs
from saccade.data.readers.text.parquet import parquet_count, parquet_rows, whole_row
from saccade.data.readers.text.plain import line_texts, whole_text
from saccade.data.readers.text.records import (
    HUGGING_FACE,
    USUAL_PAIRS,
    Names,
    json_line,
    json_row,
    json_rows,
    record_pair,
    record_text,
    shown_keys,
)
from saccade.errors import DataError
from saccade.printable import printable


@dataclass(frozen=True)
class TextStream(Generic[Row]):
    """Rows of a split, read anew in each pass; nothing of them is held.

    `form` is all beside the bytes of the files that decides what the rows are.
    """

    paths: tuple[Path, ...]
    form: tuple[str, ...]
    rows: Callable[[], Iterator[Row | Problem]]
    skip_bad: int
    count: Callable[[], int]  # of rows, about as many, for who waits for them
    running: bool = False  # every file is one text

    @property
    def names(self) -> list[str]:
        return shown_parts([str(path) for path in self.paths])

    def good(self) -> GoodRows[Row]:
        """One pass over those that are good."""
        return GoodRows(self.rows(), self.names, skip_bad=self.skip_bad)


def stream_pairs(
    data: Path, split: str, *, source: str = "", target: str = "", skip_bad: int = 0
) -> TextStream[tuple[str, str]]:
    """The pairs of a split, in order; `source` and `target` are endings, columns or keys.

    Over `skip_bad` bad rows stop the reading with a list of them; fewer are left out and counted.
    """
    found = find_pairs(data, split, source=source, target=target)
    asked = [(source, target)] if source else []
    form = (*_form(found), source, target)
    rows = lambda: _pairs(found, asked)  # noqa: E731
    return TextStream(found.paths, form, rows, skip_bad, lambda: _rows_about(found))


def stream_texts(
    data: Path, split: str, *, field: str = "text", whole: bool = False, skip_bad: int = 0
) -> TextStream[str]:
    """The texts of a split, in order: lines of plain text, or the `field` of each record.

    With `whole`, a file of plain text is one text with its newlines kept.
    """
    found = find_texts(data, split)
    form = (*_form(found), field, "whole" if whole else "lines")
    rows = lambda: _texts(found, field=field, whole=whole)  # noqa: E731
    running = whole and found.form == "txt"
    return TextStream(found.paths, form, rows, skip_bad, lambda: _rows_about(found), running)


def _form(found: TextFiles) -> tuple[str, ...]:
    return found.form, *(path.suffix if path.suffix in PACKED else "" for path in found.paths)


def _rows_about(found: TextFiles) -> int:
    """Ends of lines of a file of text, and not which of them are rows."""
    counts = {"parquet": parquet_count, "arrow": arrow_count, "tar": tar_count}
    if found.form in counts:
        return sum(map(counts[found.form], found.paths))
    return sum(map(_lines_about, found.paths[:1] if found.form == "parallel" else found.paths))


def _lines_about(path: Path) -> int:
    with opened(path) as stream:
        return sum(piece.count(b"\n") for piece in iter(lambda: stream.read(1 << 20), b"")) or 1


def read_pairs(
    data: Path, split: str, *, source: str = "", target: str = "", skip_bad: int = 0
) -> PairsRead:
    """The same, all at once."""
    stream = stream_pairs(data, split, source=source, target=target, skip_bad=skip_bad)
    return collect(stream.rows(), stream.names, PairsRead, skip_bad=skip_bad)


def read_texts(
    data: Path, split: str, *, field: str = "text", whole: bool = False, skip_bad: int = 0
) -> TextsRead:
    """The same, all at once."""
    stream = stream_texts(data, split, field=field, whole=whole, skip_bad=skip_bad)
    return collect(stream.rows(), stream.names, TextsRead, skip_bad=skip_bad)


def text_rows(path: Path, *, field: str = "text") -> Iterator[str | Problem]:
    """Each row of one file of texts, good or bad, for whoever keeps them in their places."""
    return _texts(find_texts(path, "train"), field=field, whole=False, option="")


def _pairs(found: TextFiles, asked: Names) -> Iterator[tuple[str, str] | Problem]:
    if found.form == "parallel":
        return parallel_pairs(*found.paths)
    if found.form in PAIR_TABLES:
        read = PAIR_TABLES[found.form]
        return chain.from_iterable(read(path, asked) for path in found.paths)
    wanted = {HUGGING_FACE, *(name for both in (*asked, *USUAL_PAIRS) for name in both)}
    return _records(found, wanted, lambda value, where: record_pair(value, asked, where))


def _texts(
    found: TextFiles, *, field: str, whole: bool, option: str = "--field"
) -> Iterator[str | Problem]:
    if found.form != "txt":
        return _records(found, {field}, lambda value, _: record_text(value, field, option), option)
    read = whole_text if whole else line_texts
    return chain.from_iterable(map(read, found.paths))


def _records(
    found: TextFiles, wanted: set[str], parse: Callable[[object, str], Row], option: str = ""
) -> Iterator[Row | Problem]:
    """What `parse` makes of each record of all files; it is told where it is, too."""
    for path in found.paths:
        table, name = _RECORDS[found.form](path, wanted), str(path)
        if table.names and not wanted & set(table.names):
            way_out = f"name yours with {option}" if option else "give one of them that name"
            raise DataError(
                f"{printable(name)}:1 names no column {' or '.join(map(repr, sorted(wanted)))}; it "
                f"has {shown_keys(table.names)}; {way_out}"
            )

        def row(raw: Any, n: int, table: Table = table, name: str = name) -> Row | None:
            record = table.record(raw)
            return None if record is None else parse(record, f"{name}:{n}")

        yield from parse_rows(table.rows, name, row, first=table.first)


# Rows of a file by its form, and what makes a record of each; columns are the wanted ones.
_RECORDS: dict[str, Callable[[Path, set[str]], Table]] = {
    "csv": lambda path, wanted: comma_table(lines(path), str(path)),
    "json": lambda path, wanted: Table([], json_rows(path), json_row),
    "jsonl": lambda path, wanted: Table([], lines(path), json_line),
    "parquet": lambda path, wanted: Table([], parquet_rows(path, wanted), whole_row),
    "arrow": lambda path, wanted: Table([], arrow_rows(path, wanted), whole_row),
    "tar": lambda path, wanted: Table([], tar_records(path, wanted), whole_record),
}
