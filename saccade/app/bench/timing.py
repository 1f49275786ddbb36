"""How long things take beside one another: the median of many rounds, each run waited for."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Work = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Seconds of the middle run, and the most memory held beside what was there before."""

    seconds: float
    peak_bytes: int | None  # None where the device does not count

    @property
    def milliseconds(self) -> float:
        return 1000 * self.seconds


def measure(
    works: dict[str, Work], device: torch.device, *, least_seconds: float = 2.0, least: int = 5
) -> dict[str, Timing]:
    """Run all once to warm up, once for memory, then in turn until there are enough rounds.

    In turn, because machines grow slower and faster while one measures.
    """
    for work in works.values():
        work()
    peaks = {name: _peak(work, device) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    begun, rounds = time.perf_counter(), 0
    while rounds < least or (time.perf_counter() - begun < least_seconds and rounds < 200):
        rounds += 1
        for name, work in works.items():
            seconds[name].append(_once(work, device))
    return {name: Timing(statistics.median(seconds[name]), peaks[name]) for name in works}


def _once(work: Work, device: torch.device) -> float:
    if device.type != "cuda":
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000


def _peak(work: Work, device: torch.device) -> int | None:
    if device.type != "cuda":
        return None
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    work()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
