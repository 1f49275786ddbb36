"""Running text of any length, a file each: read some characters at a time, and never held whole."""

from codecs import getincrementaldecoder
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from saccade.data.readers.report import Problem
from saccade.data.readers.text.lines import BOM, opened
from saccade.errors import DataError

CHUNK = 1 << 18  # bytes that are read at a time


def character_count(path: Path) -> int | Problem:
    """How many characters a file of UTF-8 has, or why it has none that can be read.

    What is wrong is told as `whole_text` tells it.
    """
    decoder, nul = getincrementaldecoder("utf-8")(), None
    count, lines, before = 0, 0, 0
    for chunk in chain(_chunks(path), [b""]):
        try:
            text = decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            at = error.start - (len(error.object) - len(chunk))  # from the start of this chunk
            line = lines + chunk.count(b"\n", 0, max(0, at)) + 1
            where = f"byte 0x{error.object[error.start]:02x} at offset {before + at} of the text"
            return Problem(str(path), line, f"not UTF-8: {where}")
        if nul is None and (at := chunk.find(0)) >= 0:
            reason = f"NUL character: at offset {before + at} of the text"
            nul = Problem(str(path), lines + chunk.count(b"\n", 0, at) + 1, reason)
        count, lines, before = count + len(text), lines + chunk.count(b"\n"), before + len(chunk)
    return count if nul is None else nul


def characters(path: Path, start: int, end: int) -> Iterator[str]:
    """Those from number `start` up to `end`, some at a time."""
    decoder, before = getincrementaldecoder("utf-8")(), 0
    for chunk in _chunks(path):
        text = decoder.decode(chunk)
        piece = text[max(0, start - before) : max(0, end - before)]
        before += len(text)
        if piece:
            yield piece
        if before >= end:
            return


def _chunks(path: Path) -> Iterator[bytes]:
    """All bytes of a file but its byte order mark."""
    with opened(path) as stream:
        first = stream.read(CHUNK).removeprefix(BOM)
        if not first:
            raise DataError(f"{path} is empty: it holds no text; fill it or take it away")
        yield first
        while chunk := stream.read(CHUNK):
            yield chunk
