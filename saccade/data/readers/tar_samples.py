"""Samples in tar files, in WebDataset's form: members that share a name up to its first dot.

    000.jpg  000.txt  000.json        an image, what is said of it, and other keys
    001.en   001.de                   a pair

They must lie one after another, so that a tar of any size is read as a stream. A sample is a record
as a line of JSON Lines is: the keys of its .json, its texts under their endings, and its image.
"""

import tarfile
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from saccade.data.images.members import Member
from saccade.data.readers.images.rows import ENDINGS
from saccade.data.readers.images.tree import inner
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.lines import MAX_LINE, opened
from saccade.data.readers.text.records import fields_of, json_value
from saccade.errors import DataError
from saccade.printable import printable
from saccade.regular import regular_file

IMAGE = "image"
LABEL = "label"
_TEXTS = {"txt": "text", "text": "text", "caption": "caption", "cls": LABEL, "label": LABEL}
_JSON = "json"
_IMAGES = tuple(ending.removeprefix(".") for ending in ENDINGS)
_LOOKED_AT = 20  # samples that tell what the others are like
_COUNTED = 1000  # samples from which their number is guessed

TarRecord = dict[str, Any] | BadRow


class TarPart(NamedTuple):
    """A member of a sample: its bytes, where they lie if it is an image, or why it is bad."""

    sample: str
    ending: str
    content: bytes | Member | BadRow | None
    place: int


def tar_records(path: Path, texts: Collection[str] = ()) -> Iterator[TarRecord]:
    """Each sample as keys and values, or why there is none.

    `texts` are endings that hold text beside the usual ones, such as those of two languages. An
    image becomes a Member; where the tar is packed there is none, for it would have no place.
    """
    for _, parts in groupby(_parts(path, texts), key=lambda part: part.sample):
        try:
            yield _record(parts)
        except BadRow as bad:
            yield bad


def whole_record(record: TarRecord) -> dict[str, Any]:
    """The sample, if it could be read."""
    if isinstance(record, BadRow):
        raise record
    return record


def tar_keys(path: Path) -> list[str]:
    """What the first samples hold, each key once."""
    return list(dict.fromkeys(key for keys in first_keys(path) for key in keys))


def first_keys(path: Path) -> list[list[str]]:
    """The keys of each of the first samples that can be read."""
    first = islice(tar_records(path), _LOOKED_AT)
    return [list(record) for record in first if not isinstance(record, BadRow)]


def tar_count(path: Path) -> int:
    """About how many samples there are: all of a packed tar are counted, of others the first."""
    count, place, last = 0, 0, ""
    for part in _parts(path, (), content=False):
        if part.sample != last:
            count, place, last = count + 1, part.place, part.sample
        if count > _COUNTED and path.suffix == ".tar":
            return (count - 1) * regular_file(path, DataError).st_size // place
    return max(1, count)


def _record(parts: Iterator[TarPart]) -> dict[str, Any]:
    said, fields, seen = dict[str, Any](), dict[str, Any](), set[str]()
    for part in parts:
        if part.ending in seen:
            name = f"{part.sample}.{part.ending}"
            raise BadRow(f"duplicate member: {name[:200]!r} is there twice")
        seen.add(part.ending)
        if isinstance(part.content, BadRow):
            raise part.content
        if isinstance(part.content, Member):
            fields.setdefault(IMAGE, part.content)
        elif part.content is not None and part.ending == _JSON:
            said = fields_of(json_value(_text(part)))
        elif part.content is not None:
            fields[_TEXTS.get(part.ending, part.ending)] = _text(part)
    return {**said, **fields}


def _text(part: TarPart) -> str:
    """What a member says, without the newline at its end."""
    assert isinstance(part.content, bytes)
    try:
        text = part.content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = error.start
        raise BadRow(
            f"not UTF-8: byte 0x{part.content[at]:02x} at offset {at} of .{part.ending}"
        ) from None
    if "\0" in text:
        raise BadRow(f"NUL character: in .{part.ending}")
    return text.removesuffix("\n").removesuffix("\r")


def _parts(path: Path, texts: Collection[str], *, content: bool = True) -> Iterator[TarPart]:
    """Every file of a tar that belongs to a sample; hidden ones do not."""
    stamp = regular_file(path, DataError).st_mtime_ns
    with _opened(path) as archive:
        before = -1
        while (info := archive.next()) is not None:
            vars(archive)["members"].clear()  # else it keeps them all
            if info.offset <= before or info.size < 0:  # a crafted header could lead in circles
                raise DataError(f"{path} has headers that lead backwards; pack it again")
            before = info.offset
            folder, slash, name = info.name.removeprefix("./").rpartition("/")
            stem, _, ending = name.partition(".")
            if info.isdir() or not stem or folder.startswith("__MACOSX"):
                continue
            sample, ending = folder + slash + stem, ending.lower()
            held = _content(archive, info, path, stamp, ending, texts) if content else None
            yield TarPart(sample, ending, held, info.offset)


def _content(
    archive: tarfile.TarFile,
    info: tarfile.TarInfo,
    path: Path,
    stamp: int,
    ending: str,
    texts: Collection[str],
) -> bytes | Member | BadRow | None:
    image, text = ending in _IMAGES, ending == _JSON or ending in _TEXTS or ending in texts
    if not image and not text:
        return None
    try:
        name = inner(info.name.encode(errors="surrogateescape").decode(errors="replace"))
    except BadRow as bad:
        return bad
    if not info.isreg() or info.issparse():
        return BadRow(f"not a file: {name[:200]!r} is a link or a device in the archive")
    if image:
        whole = printable(f"{path}/{name}")
        plain = path.suffix.lower() == ".tar"
        return Member(path, whole, info.size, stamp, info.offset_data) if plain else None
    if info.size > MAX_LINE:
        return BadRow(f"too long: .{ending} has over {MAX_LINE:,} bytes")
    file = archive.extractfile(info)
    return b"" if file is None else file.read()


@contextmanager
def _opened(path: Path) -> Generator[tarfile.TarFile]:
    """A tar, packed or not; whatever fails while it is read is a DataError."""
    try:
        if path.suffix.lower() == ".tar":
            with tarfile.open(path, "r:") as archive:
                yield archive
        else:
            with opened(path) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                yield archive
    except (DataError, GeneratorExit):
        raise
    except Exception as error:  # a damaged archive makes the library raise errors of any kind
        if isinstance(error, OSError) and error.errno is not None:
            raise DataError(f"{path} cannot be read: {error.strerror}") from None
        why = (str(error) or type(error).__name__).partition("\n")[0][:200]
        raise DataError(f"{path} is not a whole tar archive ({why}); fetch it again") from None
