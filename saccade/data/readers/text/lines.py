"""Bytes of a file, plain, gzip or Zstandard, as lines that never shift.

Only \\n and \\r\\n end a line. `str.splitlines` also cuts at U+2028, U+0085, form feeds and lone
carriage returns, any of which would move every later line of one file against its translation.
"""

import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

from saccade.data.files.unpacking import ROW, refuse_bomb
from saccade.data.readers.report import BadRow
from saccade.errors import DataError
from saccade.regular import regular_file

MAX_LINE = 1_000_000  # bytes: far above any sentence, far below what hurts
MAX_REST = 1_000_000_000  # bytes of a longer line that are passed over: no file of text has more
MAX_DOCUMENT = 2_000_000_000  # bytes that are held at once
BOM = b"\xef\xbb\xbf"
CHUNK = 1 << 16
PACKED = (".gz", ".zst")  # endings of files that are unpacked as they are read


@contextmanager
def opened(path: Path) -> Generator[io.BufferedReader]:
    """The bytes of a regular file, unpacked; whatever fails while reading is a DataError."""
    size = regular_file(path, DataError).st_size
    try:
        with _stream(path, size) as stream:
            yield stream
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"{path} is not a whole gzip file ({error}); fetch or pack it again"
        ) from None
    except OSError as error:
        if path.suffix == ".zst" and error.errno is None:
            raise DataError(
                f"{path} is not a whole zst file ({error}); fetch or pack it again"
            ) from None
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None


def _stream(path: Path, size: int) -> io.BufferedReader:
    if path.suffix in PACKED:
        return io.BufferedReader(_Unpacked(path, size), CHUNK)
    return path.open("rb")


def _zstandard(path: Path) -> Any:
    """Unpacked by pyarrow, which comes with `saccade[data]`; Python's own comes with 3.14."""
    try:
        library: Any = import_module("pyarrow")
    except ImportError:
        raise DataError(
            f"reading {path} needs pyarrow, which is not installed: pip install 'saccade[data]'"
        ) from None
    return library.CompressedInputStream(library.OSFile(str(path)), "zstd")


class _Unpacked(io.RawIOBase):
    """What is in a packed file, as far as it is honest."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size, self._total = path, size, 0
        self._inside = gzip.GzipFile(path) if path.suffix == ".gz" else _zstandard(path)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        piece = self._inside.read(len(buffer))
        self._total += len(piece) + ROW * piece.count(b"\n")
        way_out = "if it is meant, unpack it and give the plain file"
        refuse_bomb(self._path, packed=self._size, unpacked=self._total, way_out=way_out)
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._inside.close()
        super().close()


def lines(path: Path) -> Iterator[bytes | None]:
    """Each line without its ending; None for one over MAX_LINE bytes, which is never held whole."""
    with opened(path) as stream:
        yield from lines_in(stream, str(path))


def lines_in(stream: io.BufferedReader, name: str) -> Iterator[bytes | None]:
    """The same of bytes that come from elsewhere, such as out of an archive."""
    first = stream.readline(MAX_LINE + 2 + len(BOM)).removeprefix(BOM)
    if not first:
        raise DataError(f"{name} is empty: it holds no lines; fill it or take it away")
    for line in chain([first], iter(lambda: stream.readline(MAX_LINE + 2), b"")):
        yield _ended(line, stream, name)


def _ended(line: bytes, stream: io.BufferedReader, name: str) -> bytes | None:
    if line.endswith(b"\n"):
        line = line[:-2] if line.endswith(b"\r\n") else line[:-1]
    elif len(line) > MAX_LINE:
        rest, passed = line, 0
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(CHUNK)
            passed += len(rest)
            if passed > MAX_REST:
                raise DataError(f"{name} has a line of over {MAX_REST:,} bytes; it is no text")
    return line if len(line) <= MAX_LINE else None


def document(path: Path) -> bytes:
    """All bytes of a file but its byte order mark."""
    raw = b"".join(chunks(path)).removeprefix(BOM)
    if not raw:
        raise DataError(f"{path} is empty: it holds no text; fill it or take it away")
    return raw


def chunks(path: Path) -> Iterator[bytes]:
    """All bytes of a file, a piece at a time, up to MAX_DOCUMENT."""
    total = 0
    with opened(path) as stream:
        while piece := stream.read(CHUNK):
            total += len(piece)
            if total > MAX_DOCUMENT:
                raise DataError(f"{path} holds over {MAX_DOCUMENT:,} bytes; cut it into pieces")
            yield piece


def text_of(line: bytes | None) -> str:
    """A line as text; it may be empty."""
    if line is None:
        raise BadRow(f"too long: over {MAX_LINE:,} bytes")
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        at = error.start
        raise BadRow(f"not UTF-8: byte 0x{line[at]:02x} at offset {at} of the line") from None
    if "\0" in text:
        raise BadRow(f"NUL character: at offset {line.index(0)} of the line")
    if "\r" in text:
        raise BadRow("carriage return inside the line")
    return text


def filled(text: str) -> str:
    """A text with something to read in it."""
    if not text or text.isspace():
        raise BadRow("empty")
    return text


def filled_pair(source: str, target: str) -> tuple[str, str]:
    """A pair with something to read on both sides."""
    lacks = [not text or text.isspace() for text in (source, target)]
    if all(lacks):
        raise BadRow("empty")
    if any(lacks):
        side = lacks.index(True)
        raise BadRow(f"one side empty: the {('source', 'target')[side]}", side=side)
    return source, target
