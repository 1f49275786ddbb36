"""Data in many files: named by a pattern, or numbered as the parts of one are.

shards/train-{0000..0127}.tar    every number in between, as WebDataset's users write it
shards/{a,b}-*.parquet           either name, and any
"""

import os
import re
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path

from saccade.data.readers.report import listed
from saccade.data.readers.stems import SHARD, natural
from saccade.errors import DataError
from saccade.printable import printable

MOST = 1_000_000  # files that one pattern may name
_BRACES = re.compile(r"\{([^{}]*)\}")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")
_NUMBER = re.compile(r"[-_.]?\d+$")  # train-000017.tar


def matching_files(data: Path) -> list[Path]:
    """The files that a pattern names, in natural order; none if it is no pattern.

    A path that exists is what it says, whatever characters are in it.
    """
    pattern = str(data)
    if os.path.lexists(data) or not (has_magic(pattern) or _BRACES.search(pattern)):
        return []
    found, lacking = set[str](), list[str]()
    for one in _alternatives(pattern):
        here = glob(one) if has_magic(one) else [one] * Path(one).exists()
        found.update(here)
        lacking += [one] * (not here)
        if len(found) + len(lacking) > MOST:
            raise DataError(f"{printable(data)} names over {MOST:,} files; name fewer")
    if not found:
        raise DataError(f"{printable(data)} names no file that exists; check the pattern")
    if lacking:
        raise DataError(
            f"{printable(data)} names files that do not exist: {listed(lacking)}; name those that "
            "do"
        )
    return [Path(name) for name in sorted(found, key=natural)]


def split_of_part(stem: str) -> str:
    """What the parts of a split are named after: train of train-00000-of-00002 and train-0017."""
    return SHARD.sub("", stem) if SHARD.search(stem) else _NUMBER.sub("", stem)


def in_order(paths: Sequence[Path]) -> list[Path]:
    """Parts by their numbers: 9 before 10."""
    return sorted(paths, key=lambda path: natural(str(path)))


def shown_parts(names: Sequence[str]) -> list[str]:
    """The parts of one thing as the first and the last."""
    return list(names) if len(names) < 3 else [names[0], "…", names[-1]]


def _alternatives(pattern: str) -> Iterator[str]:
    """Every name that braces stand for, one after another."""
    braces = _BRACES.search(pattern)
    if braces is None:
        yield pattern
        return
    before, after = pattern[: braces.start()], pattern[braces.end() :]
    for one in _choices(braces[1]):
        yield from _alternatives(before + one + after)


def _choices(inside: str) -> Iterator[str]:
    numbers = _RANGE.fullmatch(inside)
    if numbers is None:
        yield from inside.split(",")
        return
    first, last = numbers[1], numbers[2]
    width = len(first) if first.startswith("0") or len(first) == len(last) else 0
    for number in range(int(first), min(int(last), int(first) + MOST) + 1):
        yield f"{number:0{width}d}"
