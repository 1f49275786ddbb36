"""Tokens of a corpus in files that all processes map, written shard by shard.

A kill costs the shard that was being written (`journalled_files.py`). The folder gets its name when
all are there.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from saccade.data.batching.ragged import Ragged
from saccade.data.files.file_state import recalled
from saccade.data.files.journalled_files import (
    FileShard,
    Notes,
    ShardNote,
    whole_shards,
    write_shards,
)
from saccade.data.files.whole_folders import sealed_index, whole_folder

MARKS = "marks"
CHECKED = "checked.json"
STARTS = np.dtype(np.int64)


class Shard(NamedTuple):
    """Some rows: the tokens of each column, and a number for each row, equal where rows are."""

    columns: tuple[Ragged, ...]
    marks: Tensor


class TokenShards:
    """The columns of a corpus, mapped.

    All is read once, to check that it is whole, and again when somebody has written to the files.
    `digests` are the columns' fingerprints.
    """

    def __init__(self, folder: Path) -> None:
        index = sealed_index(folder)
        notes = [ShardNote(*note) for note in index["shards"]]
        if not notes or not _are_whole(folder, notes):
            raise ValueError(f"{folder} is not what was written there")
        self.columns = _columns(folder, np.dtype(index["kind"]), notes)
        self.digests: tuple[str, ...] = tuple(index.get("digests", ()))  # of earlier ones none
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
        notes, _ = write_shards(folder, lambda before: _in_files(shards, before))
        marks = np.fromfile(folder / MARKS, np.int64) if notes else np.empty(0)
        duplicates = len(marks) - len(np.unique(marks))
        digests = [column.fingerprint() for column in _columns(folder, kind, notes)]
        told = {
            "kind": kind.str,
            "duplicates": duplicates,
            "digests": digests,
            "about": about(),
        }
        return {"shards": notes, **told}

    return whole_folder(home, TokenShards, fill, goes_on=True)


def _in_files(shards: Callable[[int], Iterator[Shard]], before: Notes) -> Iterator[FileShard]:
    """What is appended to each file; boundaries go on from the last, and the first is 0."""
    rows, ends, _ = before[-1] if before else ShardNote(0, {}, {})
    ends = dict(ends)  # how far the tokens go, in bytes
    for shard in shards(rows):
        files = dict[str, bytes]()
        for column, ragged in enumerate(shard.columns):
            tokens, starts = _names(column)
            flat, boundaries = ragged.flat.numpy(), ragged.starts.numpy()
            first = ends.get(tokens)
            files[tokens] = flat.tobytes()
            boundaries = boundaries[0 if first is None else 1 :] + (first or 0) // flat.itemsize
            files[starts] = boundaries.tobytes()
            ends[tokens] = (first or 0) + len(files[tokens])
        files[MARKS] = shard.marks.numpy().tobytes()
        yield FileShard(len(shard.marks), files)


def _are_whole(folder: Path, notes: Notes) -> bool:
    paths = [folder / name for name in notes[-1].ends]
    check = recalled(
        folder / CHECKED, paths, lambda: len(whole_shards(folder, notes)) == len(notes) or None
    )
    return bool(check)


def _columns(folder: Path, kind: np.dtype[Any], notes: Notes) -> tuple[Ragged, ...]:
    ends = notes[-1].ends if notes else {}
    return tuple(
        Ragged(_mapped(folder / tokens, kind, ends), _mapped(folder / starts, STARTS, ends))
        for tokens, starts in map(_names, range(len(ends) // 2))
    )


def _names(column: int) -> tuple[str, str]:
    return f"tokens-{column}", f"starts-{column}"


def _mapped(path: Path, kind: np.dtype[Any], ends: dict[str, int]) -> Tensor:
    """Pages are read when they are touched; nobody's change of them would reach the file."""
    size = ends[path.name] // kind.itemsize
    if not size:  # nothing cannot be mapped
        return torch.from_numpy(np.empty(0, kind))
    return torch.from_numpy(np.memmap(path, kind, "c", shape=(size,)))
