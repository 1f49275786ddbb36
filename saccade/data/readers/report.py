"""What was read, what was wrong with it, and when to stop.

Bad rows are all counted before anyone is told: a person mends a file once, not once per row.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from saccade.errors import ConfigError, DataError

KEPT = 1_000  # problems held in memory; the rest are only counted
SHOWN = 10


@dataclass(frozen=True)
class Problem:
    """One bad row. The reason is "kind" or "kind: detail"."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.reason}"


class Report(Protocol):
    """What every kind of reading can tell of itself."""

    @property
    def files(self) -> list[str]: ...

    @property
    def skipped(self) -> dict[str, int]: ...

    @property
    def duplicates(self) -> int: ...


@dataclass(frozen=True)
class PairsRead:
    """Pairs in file order. `skipped` counts all bad rows by kind; `problems` holds the first."""

    pairs: list[tuple[str, str]]
    problems: list[Problem]
    duplicates: int
    files: list[str]
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    def summary(self) -> str:
        """One line for a report."""
        return summed_up(counted(len(self.pairs), "pair"), self)


@dataclass(frozen=True)
class TextsRead:
    """Texts in file order. `skipped` counts all bad rows by kind; `problems` holds the first."""

    texts: list[str]
    problems: list[Problem]
    duplicates: int
    files: list[str]
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    def summary(self) -> str:
        """One line for a report."""
        return summed_up(counted(len(self.texts), "text"), self)


Row = TypeVar("Row")


@dataclass(frozen=True)
class Collected(Generic[Row]):
    """Good rows, and what is known of the bad ones."""

    rows: list[Row]
    problems: list[Problem]
    skipped: dict[str, int]
    duplicates: int


def collect(
    rows: Iterable[Row | Problem], files: Sequence[Path], *, skip_bad: int
) -> Collected[Row]:
    """Part good rows from bad; stop if over `skip_bad` are bad, or none is good."""
    if skip_bad < 0:
        raise ConfigError(f"skip_bad={skip_bad} is below 0; give the number of bad rows to allow")
    good: list[Row] = []
    problems: list[Problem] = []
    kinds: Counter[str] = Counter()
    for row in rows:
        if isinstance(row, Problem):
            kinds[row.reason.partition(":")[0]] += 1
            if len(problems) < KEPT:
                problems.append(row)
        else:
            good.append(row)
    if kinds.total() > skip_bad or not good:
        raise DataError(_complaint(joined_names(files), problems, kinds, any_good=bool(good)))
    return Collected(good, problems, dict(kinds), len(good) - len(set(good)))


def _complaint(
    names: str, problems: Sequence[Problem], kinds: Counter[str], *, any_good: bool
) -> str:
    bad = kinds.total()
    if not bad:
        return f"{names}: no rows at all; fill it or take it away"
    told = [f"{names}: {counted(bad, 'bad row')} ({_by_kind(kinds)}); the first are:"]
    told += [f"  {problem}" for problem in problems[:SHOWN]]
    if any_good:
        told.append(f"mend them, or pass --skip-bad {bad} to leave them out")
    else:
        told.append("not one row is good: is this the data, and the form of it, that you meant?")
    return "\n".join(told)


def summed_up(what: str, read: Report) -> str:
    """One line: how much came from where, what was left out and what was kept twice."""
    told = [f"{what} from {joined_names([Path(file) for file in read.files])}"]
    if read.skipped:
        bad = counted(sum(read.skipped.values()), "bad row")
        told.append(f"{bad} skipped ({_by_kind(read.skipped)})")
    if read.duplicates:
        told.append(f"{counted(read.duplicates, 'duplicate')} kept")
    return "; ".join(told)


def _by_kind(kinds: dict[str, int]) -> str:
    often_first = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in often_first)


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 pair, 29,000 pairs."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def joined_names(files: Iterable[Path]) -> str:
    """The files' names for a report: train.en + train.de."""
    return " + ".join(file.name for file in files)
