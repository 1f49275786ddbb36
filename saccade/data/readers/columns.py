"""Tables with named columns: CSV, TSV and JSON Lines as rows and what to make of each.

The first line of CSV (with `,`, `;`, tabs or `|`) and TSV names the columns. In TSV nothing is
quoted; a cell of CSV may go on over several lines, of which the first gives the row its number.
"""

import csv
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.lines import MAX_LINE, filled, text_of
from saccade.data.readers.text.records import fields_of, json_row, shown_keys
from saccade.errors import DataError

MAX_LINES = 1_000  # of one row of CSV: a quotation mark that is never closed ends somewhere
Lines = Iterator[bytes | None]


class ShortRow(BadRow):
    """A row with fewer columns than it should have, or none."""


class Table(NamedTuple):
    """Rows, the first of which has the number `first`, and what they hold by name of column.

    `record` gives None for what is no row of its own.
    """

    names: list[str]
    rows: Iterable[Any]
    record: Callable[[Any], Any]
    first: int = 1


def tab_table(lines: Lines, name: str, names: Sequence[str] = ()) -> Table:
    """TSV; where `names` are given, its first line is a row like any other."""
    first = 1 if names else 2
    if not names:
        try:
            names = _named(filled(text_of(next(lines))).split("\t"))
        except BadRow as bad:
            raise DataError(f"{name}:1: {bad}; the first line must name the columns") from None

    def record(raw: bytes | None) -> dict[str, Any]:
        text = text_of(raw)
        if not text or text.isspace():
            raise ShortRow("empty")
        return _by_name(text.split("\t"), names)

    return Table(list(names), lines, record, first)


def comma_table(lines: Lines, name: str, names: Sequence[str] = ()) -> Table:
    """CSV; where `names` are given, its first line is a row like any other."""
    try:
        raw = next(lines)
        header = filled(text_of(raw))
        mark = next((mark for mark in ",;\t|" if mark in header), ",")
        if names:
            lines = chain([raw], lines)
        first, names = (1, names) if names else (2, _cells(header, mark))
    except (BadRow, csv.Error) as bad:
        reason = bad if isinstance(bad, BadRow) else f"not CSV: {bad}"
        raise DataError(f"{name}:1: {reason}; the first line must name the columns") from None

    def record(row: list[str] | BadRow | None) -> dict[str, Any] | None:
        if isinstance(row, BadRow):
            raise row
        return None if row is None else _by_name(row, names)

    return Table(list(names), _comma_rows(lines, mark), record, first)


def json_table(read: Callable[[], Iterator[Any]], name: str) -> Table:
    """JSON Lines, or a list of objects; the columns are the keys of the first object."""

    def record(raw: Any) -> dict[str, Any]:
        return fields_of(json_row(raw))

    good = parse_rows(read(), "", lambda raw, _: record(raw))
    first = next((row for row in good if not isinstance(row, Problem)), None)
    if first is None:
        raise DataError(f"{name} is not JSON Lines: no line of it is an object")
    return Table(list(first), read(), record)


def find_column(names: Sequence[str], usual: Sequence[str]) -> str:
    """The first of the usual names that there is, in any case; "" if there is none."""
    small = {name.strip().lower(): name for name in reversed(names)}
    for name in usual:
        if name in names or name.lower() in small:
            return name if name in names else small[name.lower()]
    return ""


def require_column(
    where: str,
    names: Sequence[str],
    given: str,
    usual: Sequence[str],
    what: str,
    option: str = "--{}-column",
    more: str = "",
) -> str:
    """The column that was named, or the first usual one.

    `what` it is for names the `option`, and `more` says what else one can do.
    """
    if found := find_column(names, [given] if given else usual):
        if (held := list(names).count(found)) > 1:
            raise DataError(f"{where} has {held} columns {found!r}; give each a name of its own")
        return found
    sought = repr(given) if given else f"for the {what}"
    raise DataError(
        f"{where} has no column {sought}; it has {shown_keys(names)}; name yours with "
        f"{option.format(what.partition(' ')[0])}{more}"
    )


def by_number(columns: int) -> list[str]:
    """What columns are called that have no names: 1, 2, 3 …"""
    return [str(number) for number in range(1, columns + 1)]


def _named(cells: list[str]) -> list[str]:
    return [cell.strip() for cell in cells]


def _cells(line: str, mark: str) -> list[str]:
    return _named(next(csv.reader([line], delimiter=mark, strict=True)))


def _by_name(cells: list[str], names: Sequence[str]) -> dict[str, Any]:
    if len(cells) != len(names):
        kind = ShortRow if len(cells) < len(names) else BadRow
        raise kind(f"not {len(names)} columns: {len(cells)} found")
    return dict(zip(names, cells))


def _comma_rows(lines: Lines, mark: str) -> Iterator[list[str] | BadRow | None]:
    """The cells of each row, or why there are none.

    None stands for a line that belongs to the row before, so that no number shifts. Of a row that
    never ends only the first line is lost.
    """
    ahead: deque[bytes | None] = deque()
    while ahead or _read_on(ahead, lines):
        reader, used = csv.reader(_texts(ahead, lines), delimiter=mark, strict=True), 1
        try:
            yield next(reader)
            used = reader.line_num
        except BadRow as bad:
            yield bad if not reader.line_num else BadRow("not CSV: a quotation mark is not closed")
        except csv.Error as error:
            yield BadRow(f"not CSV: {error}")
        ahead.popleft()
        for _ in range(used - 1):
            ahead.popleft()
            yield None


def _texts(ahead: deque[bytes | None], lines: Lines) -> Iterator[str]:
    """The lines that a row may take up, each kept until it is known whether it does."""
    size = 0
    for place in range(MAX_LINES):
        if place == len(ahead) and not _read_on(ahead, lines):
            return
        text = text_of(ahead[place])
        size += len(text)
        if size > MAX_LINE:
            return
        yield (text if place else filled(text)) + "\n"


def _read_on(ahead: deque[bytes | None], lines: Lines) -> bool:
    for line in lines:
        ahead.append(line)
        return True
    return False
