"""Tab-separated pairs. Nothing is quoted or escaped: a tab parts columns, a newline parts rows."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from saccade.data.readers.report import Problem
from saccade.data.readers.text.lines import BadRow, filled, filled_pair, lines, text_of


def tsv_pairs(path: Path, names: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str] | Problem]:
    """Source and target of each row; a first row that holds both of any `names` is a header."""
    width, columns = 2, (0, 1)
    for number, raw in enumerate(lines(path), start=1):
        try:
            cells = filled(text_of(raw)).split("\t")
            if number == 1 and (header := _header(cells, names)):
                width, columns = len(cells), header
                continue
            if len(cells) != width:
                raise BadRow(f"not {width} columns: {len(cells)} found")
            yield filled_pair(cells[columns[0]], cells[columns[1]])
        except BadRow as bad:
            yield Problem(str(path), number, str(bad))


def _header(cells: list[str], names: Sequence[tuple[str, str]]) -> tuple[int, int] | None:
    for source, target in names:
        if source in cells and target in cells:
            return cells.index(source), cells.index(target)
    return None
