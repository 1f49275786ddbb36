"""Tab-separated pairs. Nothing is quoted or escaped: a tab parts columns, a newline parts rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.lines import filled, filled_pair, lines, text_of


def tsv_pairs(path: Path, names: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str] | Problem]:
    """Source and target of each row; a first row that holds both of any `names` is a header."""
    width, columns = 2, (0, 1)

    def parse(raw: bytes | None, number: int) -> tuple[str, str] | None:
        nonlocal width, columns
        cells = filled(text_of(raw)).split("\t")
        if number == 1 and (header := _header(cells, names)):
            width, columns = len(cells), header
            return None
        if len(cells) != width:
            raise BadRow(f"not {width} columns: {len(cells)} found")
        return filled_pair(cells[columns[0]], cells[columns[1]])

    return parse_rows(lines(path), str(path), parse)


def _header(cells: list[str], names: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
    for source, target in names:
        if source in cells and target in cells:
            return cells.index(source), cells.index(target)
    return None
