"""Tokens of a corpus in files that all processes map, written shard by shard.

A shard is appended to the files and then noted in a journal. One that writes and is killed loses
the shard that it was at; the next goes on after the last that is noted and whole. The folder gets
its name when all are there.
"""

import json
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.ragged import Ragged
from saccade.data.whole_folders import sealed_index, sync, whole_folder

JOURNAL = "journal.jsonl"
PIECE = 1 << 24  # bytes that are checked at a time
MARKS = "marks"
STARTS = np.dtype(np.int64)


class Shard(NamedTuple):
    """Some rows: the tokens of each column, and a number for each row, equal where rows are."""

    columns: tuple[Ragged, ...]
    marks: Tensor


class ShardNote(NamedTuple):
    """How far the files go after a shard: rows, and bytes with the sum over the new ones."""

    rows: int
    ends: dict[str, int]
    sums: dict[str, int]


class TokenShards:
    """The columns of a corpus, mapped; opening them reads all, to check that they are whole."""

    def __init__(self, folder: Path) -> None:
        index = sealed_index(folder)
        notes = [ShardNote(*note) for note in index["shards"]]
        if not notes or len(_whole_shards(folder, notes)) < len(notes):
            raise ValueError(f"{folder} is not what was written there")
        kind, ends = np.dtype(index["kind"]), notes[-1].ends
        self.columns = tuple(
            Ragged(_mapped(folder / tokens, kind, ends), _mapped(folder / starts, STARTS, ends))
            for tokens, starts in map(_names, range(len(ends) // 2))
        )
        self.duplicates: int = index["duplicates"]
        self.about: dict[str, Any] = index["about"]


def token_shards(
    home: Path,
    kind: np.dtype[Any],
    shards: Callable[[int], Iterator[Shard]],
    about: Callable[[], dict[str, Any]],
) -> TokenShards:
    """What `shards` gives from a row on, or gave when it was last asked for this folder.

    It is asked from the first row on that is not there yet, for tokens of one `kind` of integers.
    `about` is asked at the end, for what else is to be kept. An OSError is the caller's.
    """

    def fill(folder: Path) -> dict[str, Any]:
        notes = _whole_shards(folder, _noted(folder))
        _cut_back(folder, notes)
        _append(folder, notes, shards(notes[-1].rows if notes else 0))
        marks = np.fromfile(folder / MARKS, np.int64) if notes else np.empty(0)
        duplicates = len(marks) - len(np.unique(marks))
        told = {"kind": kind.str, "duplicates": duplicates, "about": about()}
        return {"shards": notes, **told}

    return whole_folder(home, TokenShards, fill, goes_on=True)


def _append(folder: Path, notes: list[ShardNote], shards: Iterator[Shard]) -> None:
    """Written and not mapped: on a full disk a write fails, and a mapped page kills the process."""
    with ExitStack() as stack:
        files = dict[str, BinaryIO]()
        journal = stack.enter_context((folder / JOURNAL).open("ab"))
        for shard in shards:
            rows, ends, _ = notes[-1] if notes else ShardNote(0, {}, {})
            ends, sums = dict(ends), dict[str, int]()
            for name, array in _arrays(shard, ends):
                if name not in files:
                    files[name] = stack.enter_context((folder / name).open("ab"))
                raw = array.tobytes()
                files[name].write(raw)
                ends[name], sums[name] = ends.get(name, 0) + len(raw), zlib.crc32(raw)
            for file in files.values():
                sync(file)
            notes.append(ShardNote(rows + len(shard.marks), ends, sums))
            journal.write(_sealed(notes[-1]))
            sync(journal)


def _arrays(shard: Shard, ends: dict[str, int]) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """What is appended to each file; boundaries go on from the last, and the first is 0."""
    for column, ragged in enumerate(shard.columns):
        tokens, starts = _names(column)
        flat, boundaries = ragged.flat.numpy(), ragged.starts.numpy()
        before = ends.get(tokens, 0) // flat.itemsize
        yield tokens, flat
        yield starts, boundaries[1 if starts in ends else 0 :] + before
    yield MARKS, shard.marks.numpy()


def _names(column: int) -> tuple[str, str]:
    return f"tokens-{column}", f"starts-{column}"


def _mapped(path: Path, kind: np.dtype[Any], ends: dict[str, int]) -> Tensor:
    """Pages are read when they are touched; nobody's change of them would reach the file."""
    size = ends[path.name] // kind.itemsize
    if not size:  # nothing cannot be mapped
        return torch.from_numpy(np.empty(0, kind))
    return torch.from_numpy(np.memmap(path, kind, "c", shape=(size,)))


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


def _whole_shards(folder: Path, notes: list[ShardNote]) -> list[ShardNote]:
    """The shards up to the first whose bytes are not those that were written."""
    before, whole = dict[str, int](), list[ShardNote]()
    for note in notes:
        for name, end in note.ends.items():
            if _checksum(folder / name, before.get(name, 0), end) != note.sums[name]:
                return whole
        before = note.ends
        whole.append(note)
    return whole


def _cut_back(folder: Path, notes: list[ShardNote]) -> None:
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
