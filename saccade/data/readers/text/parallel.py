"""Parallel files: line i of one is the translation of line i of the other.

Of test sets in SGML or XML, as WMT and IWSLT give them out, what counts is <seg id="…"> … </seg>;
of IWSLT's train.tags.…, the lines that are no tags.
"""

import re
from collections.abc import Iterator
from html import unescape
from itertools import zip_longest
from pathlib import Path

from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.text.lines import PACKED, filled_pair, lines, text_of
from saccade.errors import DataError

MARKED_UP = (".sgm", ".sgml", ".xml")
_TAGGED = "train.tags."
_SEGMENT = re.compile(rb"<seg[^>]*>(.*?)</seg>\s*$", re.IGNORECASE)
_ENDED = 0, "ended"  # lines are bytes or None, so a str marks the end of the shorter file
Numbered = tuple[int, bytes | str | None]


def parallel_pairs(source: Path, target: Path) -> Iterator[tuple[str, str] | Problem]:
    """Each pair of lines. Unequal files cannot be read: no one knows where they part ways."""
    counts = [0, 0]
    for left, right in zip_longest(_numbered(source), _numbered(target), fillvalue=_ENDED):
        ended = [line is _ENDED for line in (left, right)]
        counts = [count + (not over) for count, over in zip(counts, ended)]
        if not any(ended):
            yield _pair((source, left), (target, right))
    if counts[0] != counts[1]:
        raise DataError(
            f"{source} has {counts[0]:,} lines but {target} has {counts[1]:,}; "
            "line i of one must translate line i of the other: find where they part and mend it"
        )


def _numbered(path: Path) -> Iterator[Numbered]:
    """The lines that are text, with their numbers."""
    plain = path.name.removesuffix(path.suffix) if path.suffix in PACKED else path.name
    every = enumerate(lines(path), start=1)
    if plain.endswith(MARKED_UP):
        return ((number, _segment(line)) for number, line in every if b"<seg" in (line or b""))
    if plain.startswith(_TAGGED):
        return ((number, line) for number, line in every if not (line or b"").startswith(b"<"))
    return every


def _segment(line: bytes | None) -> bytes | str:
    """What is in a segment, its entities (&amp; …) made characters."""
    found = _SEGMENT.search(line or b"")
    if found is None:
        return "not one segment: a <seg> that does not end on its line"
    return (
        unescape(found[1].decode(errors="surrogateescape")).strip().encode(errors="surrogateescape")
    )


def _pair(
    source: tuple[Path, Numbered], target: tuple[Path, Numbered]
) -> tuple[str, str] | Problem:
    texts: list[str] = []
    for path, (number, raw) in (source, target):
        try:
            if isinstance(raw, str):
                raise BadRow(raw)
            texts.append(text_of(raw))
        except BadRow as bad:
            return Problem(str(path), number, str(bad))
    try:
        return filled_pair(*texts)
    except BadRow as bad:
        path, (number, _) = (source, target)[bad.side]
        return Problem(str(path), number, str(bad))
