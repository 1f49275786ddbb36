"""Files that grow shard by shard, with a journal of the shards that are whole.

A shard is appended to the files and then noted. One that writes and is killed loses the shard that
it was at; the next goes on after the last that is noted and whole. How far each file then goes, and
a sum over the bytes of each shard, is all that there is to know of them.
"""

import json
import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple

from saccade.data.files.whole_folders import sync

JOURNAL = "journal.jsonl"
PIECE = 1 << 24  # bytes that are checked at a time


class ShardNote(NamedTuple):
    """How far the files go after a shard: rows, and bytes with the sum over the new ones."""

    rows: int
    ends: dict[str, int]
    sums: dict[str, int]


class FileShard(NamedTuple):
    """So many rows, and what is appended to each file for them."""

    rows: int
    files: Mapping[str, bytes | bytearray]


Notes = Sequence[ShardNote]


def write_shards(
    folder: Path, shards: Callable[[Notes], Iterator[FileShard]]
) -> tuple[list[ShardNote], list[ShardNote]]:
    """Fill a folder with what `shards` gives after the ones that are there, or all.

    What is there and is not whole is taken away. Gives the notes of all, and of those that were
    there. Written and not mapped: on a full disk a write fails, and a mapped page kills the
    process.
    """
    before = whole_shards(folder, _noted(folder))
    _cut_back(folder, before)
    notes = list(before)
    with ExitStack() as stack:
        files = dict[str, BinaryIO]()
        journal = stack.enter_context((folder / JOURNAL).open("ab"))
        for shard in shards(before):
            rows, ends, _ = notes[-1] if notes else ShardNote(0, {}, {})
            ends, sums = dict(ends), dict[str, int]()
            for name, raw in shard.files.items():
                if name not in files:
                    files[name] = stack.enter_context((folder / name).open("ab"))
                files[name].write(raw)
                ends[name], sums[name] = ends.get(name, 0) + len(raw), zlib.crc32(raw)
            for file in files.values():
                sync(file)
            notes.append(ShardNote(rows + shard.rows, ends, sums))
            journal.write(_sealed(notes[-1]))
            sync(journal)
    return notes, before


def whole_shards(folder: Path, notes: Notes, *, only: Collection[str] = ()) -> list[ShardNote]:
    """The shards up to the first whose bytes are not those that were written.

    With `only`, the bytes of these files are looked at, and no more than the size of the others.
    """
    before, whole = dict[str, int](), list[ShardNote]()
    for note in notes:
        for name, end in note.ends.items():
            if only and name not in only:
                if (folder / name).stat().st_size < end:
                    return whole
            elif _checksum(folder / name, before.get(name, 0), end) != note.sums[name]:
                return whole
        before = note.ends
        whole.append(note)
    return whole


def _sealed(note: ShardNote) -> bytes:
    raw = json.dumps(note).encode()
    return b"%08x %s\n" % (zlib.crc32(raw), raw)


def _noted(folder: Path) -> list[ShardNote]:
    """What the journal says, up to a line that was cut short or is damaged."""
    notes = list[ShardNote]()
    try:
        lines = (folder / JOURNAL).read_bytes().splitlines()
    except FileNotFoundError:
        return notes
    for line in lines:
        seal, _, raw = line.partition(b" ")
        if seal != b"%08x" % zlib.crc32(raw):
            break
        notes.append(ShardNote(*json.loads(raw)))
    return notes


def _cut_back(folder: Path, notes: Notes) -> None:
    """Take away what lies beyond the last whole shard."""
    ends = notes[-1].ends if notes else {}
    for path in folder.iterdir():
        if path.name in ends:
            os.truncate(path, ends[path.name])
        else:
            path.unlink()
    with (folder / JOURNAL).open("wb") as journal:
        journal.writelines(map(_sealed, notes))


def _checksum(path: Path, start: int, end: int) -> int | None:
    """Over the bytes from `start` to `end`; None if they are not there."""
    total = 0
    try:
        with path.open("rb") as file:
            file.seek(start)
            while start < end and (piece := file.read(min(PIECE, end - start))):
                total, start = zlib.crc32(piece, total), start + len(piece)
    except FileNotFoundError:
        return None
    return total if start == end else None
