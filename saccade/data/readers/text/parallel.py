"""Parallel files: line i of one is the translation of line i of the other."""

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.text.lines import filled_pair, lines, text_of
from saccade.errors import DataError

_ENDED = "ended"  # lines are bytes or None, so a str marks the end of the shorter file


def parallel_pairs(source: Path, target: Path) -> Iterator[tuple[str, str] | Problem]:
    """Each pair of lines. Unequal files cannot be read: no one knows where they part ways."""
    source_lines = target_lines = 0
    for left, right in zip_longest(lines(source), lines(target), fillvalue=_ENDED):
        source_lines += not isinstance(left, str)
        target_lines += not isinstance(right, str)
        if not isinstance(left, str) and not isinstance(right, str):
            yield _pair((source, left), (target, right), source_lines)
    if source_lines != target_lines:
        raise DataError(
            f"{source} has {source_lines:,} lines but {target} has {target_lines:,}; "
            "line i of one must translate line i of the other: find where they part and mend it"
        )


def _pair(
    source: tuple[Path, bytes | None], target: tuple[Path, bytes | None], line: int
) -> tuple[str, str] | Problem:
    texts: list[str] = []
    for path, raw in (source, target):
        try:
            texts.append(text_of(raw))
        except BadRow as bad:
            return Problem(str(path), line, str(bad))
    try:
        return filled_pair(*texts)
    except BadRow as bad:
        return Problem(str((source, target)[bad.side][0]), line, str(bad))
