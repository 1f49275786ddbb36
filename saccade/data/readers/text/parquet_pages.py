"""What a Parquet file would unpack to, by the headers of its pages: before anything is unpacked.

The library unpacks a page into as much memory as its header asks for, and a cell is never cut. The
sums in the footer can lie, and the library dies of a footer that is damaged in certain ways, so
both are read here: they are structs in Thrift's compact protocol.
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from collections.abc import Collection, Iterator
from typing import Any, BinaryIO

# Numbers of fields, as parquet.thrift has them.
_ROWS, _GROUPS = 3, 4  # of the file
_COLUMNS = 1  # of a group of rows
_ABOUT = 3  # of a column
_PATH, _PACKED, _DATA, _DICTIONARY = 3, 7, 9, 11  # of what is known about it
_UNPACKED_PAGE, _PACKED_PAGE = 2, 3  # of the header of a page

Struct = dict[int, Any]


def declared_size(file: BinaryIO, size: int, columns: Collection[str]) -> tuple[int, int]:
    """Bytes that the pages of these columns unpack to, and rows; any exception if it is damaged."""
    file.seek(size - 8)
    length = int.from_bytes(file.read(4), "little")
    file.seek(size - 8 - length)
    footer = _struct(file)
    unpacked = 0
    for group in footer[_GROUPS]:
        for column in group[_COLUMNS]:
            about = column[_ABOUT]
            if about[_PATH][0].decode() in columns:
                unpacked += sum(_pages(file, about))
    return unpacked, footer[_ROWS]


def _pages(file: BinaryIO, about: Struct) -> Iterator[int]:
    first = min(at for at in (about.get(_DICTIONARY), about[_DATA]) if at)
    file.seek(first)
    while file.tell() < first + about[_PACKED]:
        header = _struct(file)
        if header[_PACKED_PAGE] < 0 or header[_UNPACKED_PAGE] < 0:
            raise ValueError("a page of less than no bytes")
        yield header[_UNPACKED_PAGE]
        file.seek(header[_PACKED_PAGE], 1)


def _struct(file: BinaryIO) -> Struct:
    found: Struct = {}
    field = 0
    while head := _byte(file):
        step, kind = head >> 4, head & 15
        field = field + step if step else _signed(file)
        found[field] = kind == 1 if kind in (1, 2) else _value(file, kind)
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    match kind:
        case 1 | 2 | 3:
            return _byte(file)
        case 4 | 5 | 6:
            return _signed(file)
        case 7:
            return file.read(8)
        case 8:
            return file.read(_varint(file))
        case 9 | 10:
            head = _byte(file)
            count = head >> 4 if head >> 4 < 15 else _varint(file)
            return [_value(file, head & 15) for _ in range(count)]
        case 12:
            return _struct(file)
        case _:
            raise ValueError(f"no kind of value: {kind}")


def _byte(file: BinaryIO) -> int:
    return file.read(1)[0]


def _signed(file: BinaryIO) -> int:
    number = _varint(file)
    return number >> 1 ^ -(number & 1)


def _varint(file: BinaryIO) -> int:
    number = 0
    for place in range(0, 70, 7):
        one = _byte(file)
        number |= (one & 127) << place
        if one < 128:
            return number
    raise ValueError("a number without an end")
