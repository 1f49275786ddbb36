"""Tables of pairs: TSV, in which nothing is quoted, and CSV.

The first line may name the columns; without one TSV is source, tab, target. Two forms that are
given out with more columns are known: Tatoeba's exports (number, text, number, text), and those of
manythings.org (text, text, attribution).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from saccade.data.readers.columns import Table, by_number, comma_table, tab_table
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.languages import languages_among
from saccade.data.readers.text.lines import filled_pair, lines, text_of
from saccade.data.readers.text.records import (
    Names,
    order_hint,
    pair_names,
    refuse_unknown_order,
    shown_keys,
)
from saccade.data.readers.text.tmx import tmx_pairs
from saccade.errors import DataError
from saccade.printable import printable

_CREDIT = "CC-BY"  # how an attribution begins


def tab_pairs(path: Path, asked: Names) -> Iterator[tuple[str, str] | Problem]:
    """Pairs of TSV."""
    rows = _first_rows(path)
    found = _in_header(str(path), rows[0], asked)
    if found is not None:
        return _pairs(path, tab_table(lines(path), str(path)), found)
    columns, width = _by_number(str(path), rows[0], asked), len(rows[0])
    if columns is None:
        columns, width = _known(str(path), rows), max(2, _width(rows))
    return _pairs(path, tab_table(lines(path), str(path), by_number(width)), columns)


def comma_pairs(path: Path, asked: Names) -> Iterator[tuple[str, str] | Problem]:
    """Pairs of CSV, whose first line names the columns unless the user gives their numbers."""
    name = str(path)
    table = comma_table(lines(path), name)
    found = _in_header(name, table.names, asked)
    if found is None:
        found = _by_number(name, table.names, asked)
        if found is None:
            raise DataError(_unnamed(name, table.names))
        table = comma_table(lines(path), name, by_number(len(table.names)))
    return _pairs(path, table, found)


def _pairs(
    path: Path, table: Table, columns: tuple[str, str]
) -> Iterator[tuple[str, str] | Problem]:
    source, target = columns

    def parse(raw: Any, _: int) -> tuple[str, str] | None:
        fields = table.record(raw)
        return None if fields is None else filled_pair(fields[source], fields[target])

    return parse_rows(table.rows, str(path), parse, first=table.first)


def _in_header(name: str, cells: Sequence[str], asked: Names) -> tuple[str, str] | None:
    """The columns by their names in the first line; None where it names none."""
    cells = [cell.strip() for cell in cells]
    if (found := pair_names(cells, asked)) is not None:
        return found
    languages, usual = languages_among(cells), pair_names(cells, ())
    if not usual and (len(languages) < 2 or len(languages) < len(cells) == 2):
        return None
    refuse_unknown_order(f"{printable(name)}:1", languages, asked)
    source, target = asked[0]
    hint = "--source {} --target {}".format(*usual) if usual else order_hint(languages)
    raise DataError(
        f"{printable(name)}:1 has the columns {shown_keys(cells)}, and not both {source!r} and "
        f"{target!r}; {hint} would name two of them"
    )


def _by_number(name: str, cells: Sequence[str], asked: Names) -> tuple[str, str] | None:
    """Columns that the user gives by their numbers, for a table that does not name them."""
    if not asked or not all(one.isdecimal() for one in asked[0]):
        return None
    if not all(one in by_number(len(cells)) for one in asked[0]):
        raise DataError(
            f"{printable(name)} has {len(cells)} columns; --source and --target are their numbers, "
            f"from 1 to {len(cells)}"
        )
    return asked[0]


def _known(name: str, rows: Sequence[Sequence[str]]) -> tuple[str, str]:
    """The columns of forms that name none."""
    width = _width(rows)
    if width <= 2 or (width == 3 and all(row[2].startswith(_CREDIT) for row in rows)):
        return "1", "2"
    if width == 4 and all(row[0].isdecimal() and row[2].isdecimal() for row in rows):
        return "2", "4"
    raise DataError(_unnamed(name, rows[0]))


def _width(rows: Sequence[Sequence[str]]) -> int:
    """Of a table without names: what its first two rows have, else two."""
    return len(rows[0]) if len(rows) > 1 and len(rows[0]) == len(rows[1]) else 2


def _unnamed(name: str, cells: Sequence[str]) -> str:
    return (
        f"{printable(name)}:1 does not say which columns are source and target: it has "
        f"{shown_keys(cells)}; give their numbers, such as --source 1 --target 2, or their names "
        "in a first line"
    )


def _first_rows(path: Path) -> list[list[str]]:
    """The cells of the first two lines, as far as they are text."""
    rows = list[list[str]]()
    for raw in islice(lines(path), 2):
        with suppress(BadRow):
            rows.append(text_of(raw).split("\t"))
    return rows or [["", ""]]


PAIR_TABLES: dict[str, Callable[[Path, Names], Iterator[tuple[str, str] | Problem]]] = {
    "tsv": tab_pairs,
    "csv": comma_pairs,
    "tmx": tmx_pairs,
}
