"""What was read, what was wrong with it, and when to stop.

Bad rows are counted before anyone is told: a person mends a file once, not once per row. But not
for ever: a file with thousands of them is not the one that was meant.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from saccade.data.batching.packed_rows import Repeats
from saccade.errors import ConfigError, DataError
from saccade.printable import printable

KEPT = 1_000  # problems held in memory; the rest are only counted
BEYOND = 10_000  # bad rows that are counted beyond those that may be skipped
SHOWN = 10

Raw = TypeVar("Raw")
Row = TypeVar("Row")
Read = TypeVar("Read")


@dataclass(frozen=True)
class Problem:
    """One bad row. The reason is "kind" or "kind: detail"."""

    file: str
    line: int
    reason: str

    @property
    def kind(self) -> str:
        return self.reason.partition(":")[0]

    def __str__(self) -> str:
        return f"{printable(self.file)}:{self.line}: {printable(self.reason)}"


class BadRow(Exception):  # noqa: N818 (a finding about one row, which its reader always catches)
    """Why a row cannot be used: "kind" or "kind: detail". `side` is 1 where the target is at fault.

    Reports count rows by kind, so a kind is spelt the same wherever it is found.
    """

    def __init__(self, reason: str, *, side: int = 0) -> None:
        super().__init__(reason)
        self.side = side


def parse_rows(
    rows: Iterable[Raw], file: str, parse: Callable[[Raw, int], Row | None], *, first: int = 1
) -> Iterator[Row | Problem]:
    """What `parse` makes of each row and its number: None is no row, a BadRow a problem."""
    for number, raw in enumerate(rows, start=first):
        try:
            row = parse(raw, number)
        except BadRow as bad:
            yield Problem(file, number, str(bad))
        else:
            if row is not None:
                yield row


@dataclass(frozen=True)
class RowsRead(ABC, Generic[Row]):
    """Rows in file order. `skipped` counts all bad rows by kind; `problems` holds the first."""

    rows: Sequence[Row]
    problems: list[Problem]
    duplicates: int
    files: list[str]
    skipped: dict[str, int] = field(default_factory=dict[str, int])

    @property
    @abstractmethod
    def size(self) -> str:
        """How much there is: 29,000 pairs."""

    def summary(self) -> str:
        """One line: how much came from where, what was left out and what was kept twice."""
        return summary(self.size, self.files, self.skipped, self.duplicates)


def summary(size: str, files: Iterable[str], skipped: dict[str, int], duplicates: int) -> str:
    """One line: how much came from where, what was left out and what was kept twice."""
    told = [f"{size} from {joined_names(files)}"]
    if skipped:
        bad = counted(sum(skipped.values()), "bad row")
        told.append(f"{bad} skipped ({count_by_kind(skipped)})")
    if duplicates:
        told.append(f"{counted(duplicates, 'duplicate')} kept")
    return "; ".join(told)


class PairsRead(RowsRead[tuple[str, str]]):
    """Sources with their targets."""

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        return self.rows

    @property
    def size(self) -> str:
        return counted(len(self.rows), "pair")


class TextsRead(RowsRead[str]):
    """Texts on their own."""

    @property
    def texts(self) -> Sequence[str]:
        return self.rows

    @property
    def size(self) -> str:
        return counted(len(self.rows), "text")


class GoodRows(Generic[Row]):
    """Good rows as they come, for one pass; at the end it stops if over `skip_bad` were bad.

    So it does if none is good. `untold` are bad rows that were counted before, and do not come.
    """

    def __init__(
        self,
        rows: Iterable[Row | Problem],
        files: Sequence[str],
        *,
        skip_bad: int,
        untold: Mapping[str, int] | None = None,
    ) -> None:
        if skip_bad < 0:
            raise ConfigError(
                f"skip_bad={skip_bad} is below 0; give the number of bad rows to allow"
            )
        self._rows, self._files, self._skip_bad = rows, files, skip_bad
        self.problems: list[Problem] = []
        self.skipped: Counter[str] = Counter(untold or {})
        self.count = 0  # of those that were good

    def __iter__(self) -> Iterator[Row]:
        most = self._skip_bad + BEYOND
        for row in self._rows:
            if not isinstance(row, Problem):
                self.count += 1
                yield row
                continue
            self.skipped[row.kind] += 1
            if len(self.problems) < KEPT:
                self.problems.append(row)
            if self.skipped.total() >= most:
                break
        bad = self.skipped.total()
        if bad > self._skip_bad or not self.count:
            names, good, stopped = joined_names(self._files), self.count > 0, bad >= most
            raise DataError(
                _complaint(names, self.problems, self.skipped, any_good=good, stopped=stopped)
            )


def collect(
    rows: Iterable[Row | Problem],
    files: Sequence[str],
    into: Callable[[Sequence[Row], list[Problem], int, list[str], dict[str, int]], Read],
    *,
    skip_bad: int,
    untold: Mapping[str, int] | None = None,
    keep: Callable[[Iterable[Row]], Sequence[Row]] = list,
) -> Read:
    """All good rows, parted from bad ones; `keep` says in what form they are held."""
    sifted = GoodRows(rows, files, skip_bad=skip_bad, untold=untold)
    repeats = Repeats[Row]()
    good = keep(repeats.watch(sifted))
    duplicates = repeats.among(good)
    return into(good, sifted.problems, duplicates, list(files), dict(sifted.skipped))


def _complaint(
    names: str, problems: Sequence[Problem], kinds: Counter[str], *, any_good: bool, stopped: bool
) -> str:
    bad = kinds.total()
    if not bad:
        return f"{names}: no rows at all; fill it or take it away"
    which = "the first are" if not stopped else "reading stopped there; the first are"
    told = [f"{names}: {counted(bad, 'bad row')} ({count_by_kind(kinds)}); {which}:"]
    told += [f"  {problem}" for problem in problems[:SHOWN]]
    if any_good and stopped:
        told.append("mend them, or pass --skip-bad with as many as you would leave out")
    elif any_good:
        told.append(f"mend them, or pass --skip-bad {bad} to leave them out")
    else:
        told.append("not one row is good: is this the data, and the form of it, that you meant?")
    return "\n".join(told)


def count_by_kind(kinds: dict[str, int]) -> str:
    """How many of each kind, the most frequent first."""
    often_first = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {kind}" for kind, count in often_first)


def counted(count: int, noun: str) -> str:
    """A number and its noun: 1 pair, 29,000 pairs."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def joined_names(files: Iterable[str]) -> str:
    """The files' names for a report: train.en + train.de."""
    return " + ".join(printable(Path(file).name) for file in files)


def listed(names: Sequence[str]) -> str:
    """The first ten."""
    shown = [printable(name) for name in names[:10]]
    return ", ".join(shown + [f"… ({len(names)} in all)"] * (len(names) > len(shown)))
