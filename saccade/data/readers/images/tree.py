"""Files of a data set by name, in a folder or in an archive alike. Nothing outside is reached.

An archive is indexed once and never unpacked: a member is a stretch of it.
"""

import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Protocol

from saccade.data.images.members import Member, ZipMember
from saccade.data.readers.report import BadRow
from saccade.data.readers.stems import SPLITS
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import file_status, regular_file

ARCHIVES = (".tar", ".zip")
_SPLITS = {name for names in SPLITS.values() for name in names}
_HIDDEN = (".", "__MACOSX")
_DOS, _UTF8 = 0, 0x800  # in a zip: the system that packed it, the flag of a name in UTF-8
_PACKED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")


class Tree(Protocol):
    """Names go down from the root with "/" between them; the root's own is ""."""

    @property
    def path(self) -> Path: ...

    def member(self, name: str) -> Member | None:
        """What has this name; None if nothing has, a BadRow if it may not be read."""
        ...

    def files(self, folder: str) -> list[str]:
        """The names of files right in a folder, sorted, hidden ones left out."""
        ...

    def folders(self, folder: str) -> list[str]:
        """The names of folders right in a folder."""
        ...


def tree_of(data: Path) -> tuple[Tree, str]:
    """A folder or an archive, and the name of the folder within it where the data begin."""
    status = file_status(data, DataError)
    if stat.S_ISDIR(status.st_mode):
        return Folder(data), ""
    if data.name.lower().endswith(_PACKED):
        raise DataError(
            f"{data} is compressed as a whole, so no image can be read without all before it; "
            "unpack it to a plain .tar (images gain nothing from compression) or to a folder"
        )
    if data.suffix.lower() not in ARCHIVES:
        raise DataError(
            f"{data}: images are read from a folder, .tar, .zip, .jsonl or COCO .json; give one"
        )
    regular_file(data, DataError)
    archive = _indexed(data, status.st_size, status.st_mtime_ns)
    return archive, archive.top


def join(*parts: str) -> str:
    """A name put together, without the empty parts."""
    return "/".join(part for part in parts if part)


def inner(name: str) -> str:
    """A name that a file gave, made plain; a BadRow if it leads out of the data."""
    foreign = PureWindowsPath(name)  # it parts names at / and \ and knows drives
    if not name or "\0" in name or foreign.anchor or ".." in foreign.parts:
        raise BadRow(
            f"outside the data: {name[:200]!r} is not a plain name below the data's folder"
        )
    return str(PurePosixPath(name))


class Folder:
    """A folder on disk. Links are followed as long as they stay inside."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._real = os.path.realpath(path)
        self._inside: dict[str, bool] = {}  # folders, by whether they lie below the root

    def member(self, name: str) -> Member | None:
        path = self.path / name
        try:
            link = stat.S_ISLNK(path.lstat().st_mode)
            if not self._holds(path if link else path.parent):
                raise BadRow(
                    f"outside the data: {name[:200]!r} is a link that leads out of it; copy the "
                    "file into it"
                )
            status = path.stat()
        except (OSError, ValueError):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise BadRow(f"not a file: {name[:200]!r} is a folder or a device")
        return Member(path, printable(path), status.st_size, status.st_mtime_ns)

    def files(self, folder: str) -> list[str]:
        return [entry.name for entry in self._entries(folder) if not entry.is_dir()]

    def folders(self, folder: str) -> list[str]:
        return [entry.name for entry in self._entries(folder) if entry.is_dir()]

    def _holds(self, path: Path) -> bool:
        key = str(path)
        if key not in self._inside:
            real = os.path.realpath(path)
            self._inside[key] = Path(real).is_relative_to(self._real)
        return self._inside[key]

    def _entries(self, folder: str) -> list[os.DirEntry[str]]:
        path = self.path / folder
        try:
            with os.scandir(path) as found:
                shown = [entry for entry in found if not entry.name.startswith(_HIDDEN)]
        except OSError as error:
            raise DataError(f"{path} cannot be listed: {error.strerror}") from None
        return sorted(shown, key=lambda entry: entry.name)


class Archive:
    """A tar or zip archive. Links, devices and names that lead out of it are not members."""

    def __init__(self, path: Path, members: dict[str, Member | str]) -> None:
        self.path = path
        self._members = members
        self._files: dict[str, list[str]] = {}
        self._folders: dict[str, set[str]] = {}
        for name in members:
            folder, _, last = name.rpartition("/")
            self._files.setdefault(folder, []).append(last)
            while folder:
                above, _, last = folder.rpartition("/")
                self._folders.setdefault(above, set()).add(last)
                folder = above

    @property
    def top(self) -> str:
        """The folder that holds everything, where there is one and it is not a split."""
        folders = self.folders("")
        alone = len(folders) == 1 and not self.files("")
        deep = alone and (self.folders(folders[0]) or self.files(folders[0]))
        return folders[0] if deep and folders[0] not in _SPLITS else ""

    def member(self, name: str) -> Member | None:
        found = self._members.get(name)
        if isinstance(found, str):
            raise BadRow(f"not a file: {name[:200]!r} is {found}")
        return found

    def files(self, folder: str) -> list[str]:
        return sorted(name for name in self._files.get(folder, []) if not name.startswith("."))

    def folders(self, folder: str) -> list[str]:
        return sorted(n for n in self._folders.get(folder, ()) if not n.startswith(_HIDDEN))


@lru_cache(maxsize=4)
def _indexed(path: Path, size: int, stamp: int) -> Archive:
    """The archive as it is now: another size or stamp is another archive."""
    found = _zipped if path.suffix.lower() == ".zip" else _tarred
    try:
        members = dict(found(path, size, stamp))
    except DataError:
        raise
    except Exception as error:  # damaged archives make both libraries raise errors of any kind
        why = (str(error) or type(error).__name__).partition("\n")[0][:200]
        raise DataError(
            f"{path} is not a whole {path.suffix[1:]} archive ({why}); fetch it again"
        ) from None
    if not members:
        raise DataError(f"{path} is empty: it holds no files; pack it again")
    return Archive(path, members)


def _tarred(path: Path, _: int, stamp: int) -> Iterator[tuple[str, Member | str]]:
    with tarfile.open(path, "r:") as archive:
        before = -1
        while (info := archive.next()) is not None:
            if info.offset <= before or info.size < 0:  # a crafted header could send us in circles
                raise DataError(f"{path} has headers that lead backwards; pack it again")
            before = info.offset
            name = _named(info.name)
            if name is None or info.isdir():
                continue
            if not info.isreg() or info.issparse():
                yield name, "a link or a device in the archive"
                continue
            yield (
                name,
                Member(path, printable(f"{path}/{name}"), info.size, stamp, info.offset_data),
            )


def _zipped(path: Path, size: int, stamp: int) -> Iterator[tuple[str, Member | str]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            spelt = _spelt(info)
            name = _named(spelt)
            if name is None or spelt.endswith("/"):
                continue
            kind = info.external_attr >> 16
            if stat.S_IFMT(kind) not in (0, stat.S_IFREG):
                yield name, "a link or a device in the archive"
            elif info.flag_bits & 1 or info.compress_type not in (0, 8):
                yield name, "encrypted, or packed in a way other than deflate"
            else:
                yield (
                    name,
                    ZipMember(
                        path,
                        printable(f"{path}/{name}"),
                        info.file_size,
                        stamp,
                        info.header_offset,
                        packed=min(info.compress_size, size),
                        deflated=info.compress_type == 8,
                        checksum=info.CRC,
                    ),
                )


def _spelt(info: zipfile.ZipInfo) -> str:
    """A name in a zip as its packer meant it.

    Without a flag for UTF-8 names are said to be in the code page of DOS, but macOS and Info-ZIP
    write UTF-8 all the same; PowerShell parts folders as Windows does.
    """
    name = info.filename.replace("\\", "/") if info.create_system == _DOS else info.filename
    if info.flag_bits & _UTF8:
        return name
    try:
        return name.encode("cp437").decode()
    except UnicodeError:
        return name


def _named(name: str) -> str | None:
    try:
        # Names may be any bytes; what is looked for is text.
        return inner(name.encode(errors="surrogateescape").decode(errors="replace"))
    except BadRow:
        return None
