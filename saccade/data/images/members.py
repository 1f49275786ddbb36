"""A file of the data: on its own, or a stretch of a tar or zip archive, read without unpacking.

A member says where its bytes lie and nothing else. It may be sent to other processes, holds no
open file, and reading one of a million needs none of the others.
"""

import struct
import zlib
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from saccade.data.files.unpacking import refuse_bomb
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

MAX_BYTES = 256_000_000  # of one image: far above any photograph, far below what hurts
_ZIP_HEADER = struct.Struct("<4s22xHH")  # a local header: mark, …, lengths of name and extra field


@dataclass(frozen=True)
class Member:
    """Where bytes lie: `size` of them at `offset` of the file at `path`.

    `stamp` is when that file was last written (ns): with `size` it tells whether it has changed.
    """

    path: Path
    name: str  # within the data, as a message shows it
    size: int
    stamp: int
    offset: int = 0

    @classmethod
    def of(cls, path: Path, *, name: str = "") -> "Member":
        """A file on its own."""
        status = regular_file(path, DataError)
        return cls(path, name or printable(path), status.st_size, status.st_mtime_ns)

    @property
    def mark(self) -> int:
        """A number that no other file of any data has, by all likelihood."""
        where = f"{self.path}\0{self.name}".encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(where, digest_size=16).digest())

    def read(self, *, most: int = MAX_BYTES) -> bytes:
        """All its bytes, if there are no more than `most`."""
        if self.size > most:
            raise DataError(f"{self.name} has {self.size:,} bytes, over {most:,}; make it smaller")
        try:
            with self.path.open("rb") as file:
                raw = self._bytes(file)
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}") from None
        if len(raw) != self.size:
            raise DataError(
                f"{self.name} has {len(raw):,} bytes where there were {self.size:,}; "
                "leave the data alone while it is in use"
            )
        return raw

    def _bytes(self, file: BinaryIO) -> bytes:
        file.seek(self.offset)
        return file.read(self.size)


@dataclass(frozen=True)
class ZipMember(Member):
    """A stretch of a zip archive: `packed` bytes after the local header at `offset`."""

    packed: int = 0
    deflated: bool = False
    checksum: int = 0

    def _bytes(self, file: BinaryIO) -> bytes:
        refuse_bomb(
            self.name,
            packed=self.packed,
            unpacked=self.size,
            way_out="if it is meant, unpack the archive to a folder",
        )
        file.seek(self.offset)
        head = file.read(_ZIP_HEADER.size)
        if len(head) < _ZIP_HEADER.size or not head.startswith(b"PK\3\4"):
            raise DataError(f"{self.name} is not where {self.path} says; pack it again")
        _, name, extra = _ZIP_HEADER.unpack(head)
        file.seek(name + extra, 1)
        raw = file.read(self.packed)
        if self.deflated:
            raw = self._inflated(raw)
        if zlib.crc32(raw) != self.checksum:
            raise DataError(f"{self.name} is damaged in {self.path}: its checksum is another")
        return raw

    def _inflated(self, raw: bytes) -> bytes:
        try:  # no more than was declared, and one: a limit of 0 would be none, and a bomb burst
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, self.size + 1)
        except zlib.error as error:
            raise DataError(f"{self.name} is damaged in {self.path}: {error}") from None
