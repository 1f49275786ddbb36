"""Plain text: a text per line, or the whole file as one running text."""

from collections.abc import Iterator
from pathlib import Path

from saccade.data.readers.report import Problem, parse_rows
from saccade.data.readers.text.lines import document, filled, lines, text_of


def line_texts(path: Path) -> Iterator[str | Problem]:
    """Each line as a text of its own."""
    return parse_rows(lines(path), str(path), lambda raw, _: filled(text_of(raw)))


def whole_text(path: Path) -> Iterator[str | Problem]:
    """The file as one text: blank lines, carriage returns and the last newline are all kept."""
    raw = document(path)
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        where = f"byte 0x{raw[error.start]:02x} at offset {error.start} of the text"
        yield Problem(str(path), _line_at(raw, error.start), f"not UTF-8: {where}")
        return
    nul = raw.find(0)
    if nul >= 0:
        reason = f"NUL character: at offset {nul} of the text"
        yield Problem(str(path), _line_at(raw, nul), reason)
    else:
        yield text


def _line_at(raw: bytes, offset: int) -> int:
    return raw.count(b"\n", 0, offset) + 1
