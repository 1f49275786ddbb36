"""The same work done by Saccade and by what a user would pick instead, in one process, in turn."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch

from saccade.app.bench.kernels import time_by_group
from saccade.app.bench.timing import Timing, Work, by_the_wall, held_bytes, measure
from saccade.errors import ConfigError

SACCADE = "saccade"
DASH = "–"
GAPS = "gaps"  # between kernels
Tell = Callable[[str], None]


class CheckedWork(NamedTuple):
    """Work that can be run again and again, and how far its result agrees with ours.

    `share` is how much of the job a run does, where all of it would take too long; its times are
    those of all.
    """

    work: Work
    agreement: float | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Contender:
    """Someone who can do the work; its models are made when its turn comes.

    `needs` is a package that must be there; `padding` the share of positions computed for nothing.
    """

    name: str
    make: Callable[[], CheckedWork]
    needs: str = ""
    padding: float | None = None

    @property
    def ours(self) -> bool:
        return self.name.startswith(SACCADE)


@dataclass(frozen=True)
class Workload:
    """What all do, `repeats` times in a run.

    `against` is the peer that ratios are to, the fastest if empty; `agreement` is what that is
    of; `unit` is what `tokens` counts.
    """

    title: str
    tokens: int  # that count: no padding
    floor_seconds: float
    against: str
    agreement: str = ""
    repeats: int = 1
    unit: str = "tokens"


@dataclass(frozen=True)
class Measurement:
    """How one did. `ratio` is how many times as fast it is as the peer named in the job."""

    name: str
    milliseconds: float
    tokens_per_second: float
    ratio: float | None
    floor_share: float  # of the time, what the floor would take
    padding: float | None
    memory_mib: float | None
    first_seconds: float
    agreement: float | None
    share: float = 1.0  # of the job that was run; times are those of all


@dataclass(frozen=True)
class Race:
    """A job, how all did it, and why some did not; if asked for, where the time went."""

    job: Workload
    rows: tuple[Measurement, ...]
    absent: dict[str, str]
    spent: dict[str, dict[str, float]] = field(default_factory=dict[str, dict[str, float]])

    def heading(self) -> str:
        job, floor = self.job, f"floor {1000 * self.job.floor_seconds:.3g} ms"
        real = "real tokens" if job.unit == "tokens" else job.unit
        compared = any(row.ratio is not None for row in self.rows)
        ratio = f"; × is to {job.against}" if compared else ""
        return f"{job.title}: {job.tokens:,} {real}, {floor}{ratio}"

    def columns(self) -> dict[str, list[str]]:
        """Those in which anything stands."""
        rows, agreement = self.rows, self.job.agreement
        same = ".1%" if agreement == "same text" else ".0e"
        every = {
            "": [row.name for row in rows],
            "ms": [f"{row.milliseconds:,.4g}" for row in rows],
            f"{self.job.unit}/s": [f"{row.tokens_per_second:,.0f}" for row in rows],
            "×": [or_dash(row.ratio, ".2f") for row in rows],
            "floor": [f"{row.floor_share:.1%}" for row in rows],
            "padding": [or_dash(row.padding, ".1%") for row in rows],
            "MiB": [or_dash(row.memory_mib, ",.0f") for row in rows],
            "first s": [f"{row.first_seconds:.1f}" for row in rows],
        }
        if agreement:
            every[agreement] = [or_dash(row.agreement, same) for row in rows]
        return {name: texts for name, texts in every.items() if set(texts) != {DASH}}

    def remarks(self) -> list[str]:
        spent = (
            f"{name} spends, ms: " + ", ".join(f"{what} {ms:.2f}" for what, ms in groups.items())
            for name, groups in self.spent.items()
        )
        parts = (
            f"{row.name} did {row.share:.2%} of it, from which its time is that of all"
            for row in self.rows
            if row.share < 1
        )
        absent = (f"not measured: {peer} ({reason})" for peer, reason in self.absent.items())
        return [*parts, *spent, *absent]

    def table(self) -> dict[str, Any]:
        return asdict(self)


def or_dash(value: float | None, form: str = ",.1f") -> str:
    """A number, or a dash where there is none."""
    return DASH if value is None else f"{value:{form}}"


class _Started(NamedTuple):
    """A contender after its first run: how long that took, and what it holds since.

    `peak` is the most that it held until then: a captured step goes on using memory that it took
    when it was captured, and takes none when it is measured.
    """

    contender: Contender
    ready: CheckedWork
    first_seconds: float
    held: int | None
    peak: int | None


def run_race(
    job: Workload,
    contenders: Sequence[Contender],
    *,
    device: torch.device,
    seconds: float,
    tell: Tell,
    profiled: bool = False,
) -> Race:
    """Start all, time them in turn, compare. A peer that cannot run is named; it stops nobody."""
    started: dict[str, _Started] = {}
    absent: dict[str, str] = {}
    for one in contenders:
        if one.needs and find_spec(one.needs) is None:
            absent[one.name] = f"{one.needs} is not installed"
            continue
        try:
            started[one.name] = _start(one, device)
        except Exception as error:
            if one.ours:
                raise
            absent[one.name] = why_absent(error)
            continue
        tell(f"{one.name} ready: its first run took {started[one.name].first_seconds:.1f} s")
    works = {name: one.ready.work for name, one in started.items()}
    times = measure(works, device, least_seconds=seconds, clock=by_the_wall)
    others = [one.contender.name for one in started.values() if not one.contender.ours]
    if not job.against and others:
        job = replace(job, against=min(others, key=lambda name: _seconds(started[name], times)))
    rival = started.get(job.against)
    rows = tuple(_row(job, one, times, rival) for one in started.values())
    spent = {row.name: _spent(job, row, works[row.name], device) for row in rows if profiled}
    return Race(job, rows, absent, spent)


def why_absent(error: Exception) -> str:
    """What a peer failed by, in one line."""
    kind, lines = type(error).__name__, str(error).strip().splitlines()
    return f"{kind}: {lines[0]}" if lines else kind


def check_peers(peers: str, known: Sequence[str]) -> None:
    """Refuse a peer that nobody knows."""
    for name in _names(peers):
        if name not in known:
            raise ConfigError(f"peers={name} is not one of {', '.join(known)}")


def choose(contenders: Iterable[Contender], peers: str) -> list[Contender]:
    """Ours, and those of the others that are named, by commas; all where none is."""
    names = _names(peers)
    return [one for one in contenders if one.ours or not names or one.name in names]


def _names(peers: str) -> list[str]:
    return [name.strip() for name in peers.split(",") if name.strip()]


def _start(one: Contender, device: torch.device) -> _Started:
    before = held_bytes(device)
    if before is not None:
        torch.cuda.reset_peak_memory_stats()
    ready = one.make()
    seconds = by_the_wall(ready.work, device)
    after = held_bytes(device)
    if before is None or after is None:
        return _Started(one, ready, seconds, None, None)
    peak = torch.cuda.max_memory_allocated() - before
    return _Started(one, ready, seconds, after - before, peak)


def _spent(job: Workload, row: Measurement, work: Work, device: torch.device) -> dict[str, float]:
    """Milliseconds in each kind of kernel and between them, the most first."""
    runs = job.repeats * row.share
    groups = {what: ms / runs for what, ms in time_by_group(work, device).items()}
    groups[GAPS] = max(0.0, row.milliseconds - sum(groups.values()))
    return dict(sorted(groups.items(), key=lambda pair: -pair[1]))


def _seconds(one: _Started, times: dict[str, Timing]) -> float:
    """Of the whole job, as often as a run does it."""
    return times[one.contender.name].seconds / one.ready.share


def _row(
    job: Workload, one: _Started, times: dict[str, Timing], rival: _Started | None
) -> Measurement:
    time, seconds = times[one.contender.name], _seconds(one, times) / job.repeats
    peak = one.peak
    if one.held is not None and one.peak is not None and time.peak_bytes is not None:
        peak = max(one.peak, one.held + time.peak_bytes)
    return Measurement(
        name=one.contender.name,
        milliseconds=1000 * seconds,
        tokens_per_second=job.tokens / seconds,
        ratio=None if rival is None else _seconds(rival, times) / _seconds(one, times),
        floor_share=job.floor_seconds / seconds,
        padding=one.contender.padding,
        memory_mib=None if peak is None else peak / 2**20,
        first_seconds=one.first_seconds,
        agreement=one.ready.agreement,
        share=one.ready.share,
    )
