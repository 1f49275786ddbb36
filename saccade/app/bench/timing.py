"""How long things take beside one another: the median of many rounds, each run waited for."""

import gc
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from saccade.data.readers.report import counted
from saccade.errors import ConfigError

Work = Callable[[], object]
Clock = Callable[[Work, torch.device], float]
MOST_ROUNDS = 200


@dataclass(frozen=True)
class Timing:
    """Seconds of the middle run, and the most memory held beside what was there before."""

    seconds: float
    peak_bytes: int | None  # None where the device does not count

    @property
    def milliseconds(self) -> float:
        return 1000 * self.seconds

    @property
    def peak_mib(self) -> float | None:
        return None if self.peak_bytes is None else self.peak_bytes / 2**20


def check_measuring(seconds: float, seed: int) -> None:
    """Refuse times that never end, and seeds that no generator takes."""
    if not 0 <= seconds < float("inf"):
        raise ConfigError(f"seconds={seconds} must be 0 or more, and finite")
    if not 0 <= seed < 2**63:
        raise ConfigError(f"seed={seed} must be from 0 to {2**63 - 1}")


def on_the_device(work: Work, device: torch.device) -> float:
    """Seconds from the first kernel to the last; the waiting does not drown what is short."""
    if device.type != "cuda":
        return by_the_wall(work, device)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    work()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1000


def by_the_wall(work: Work, device: torch.device) -> float:
    """Seconds until the result is there, what the host does before and after included."""
    wait_for(device)
    begun = time.perf_counter()
    work()
    wait_for(device)
    return time.perf_counter() - begun


def measure(
    works: dict[str, Work],
    device: torch.device,
    *,
    least_seconds: float = 2.0,
    least: int = 5,
    clock: Clock = on_the_device,
) -> dict[str, Timing]:
    """Run all once to warm up, once for memory, then in turn until there are enough rounds.

    In turn, because machines grow slower and faster while one measures.
    """
    for work in works.values():
        work()
    peaks = {name: _peak(work, device) for name, work in works.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    begun, rounds = time.perf_counter(), 0
    while rounds < least or (time.perf_counter() - begun < least_seconds and rounds < MOST_ROUNDS):
        rounds += 1
        for name, work in works.items():
            seconds[name].append(clock(work, device))
    return {name: Timing(statistics.median(seconds[name]), peaks[name]) for name in works}


def wait_for(device: torch.device) -> None:
    """Until the device has done all it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def held_bytes(device: torch.device) -> int | None:
    """Memory in use now, where the device counts."""
    if device.type != "cuda":
        return None
    gc.collect()  # what is only waiting to be freed is not in use
    return torch.cuda.memory_allocated()


def _peak(work: Work, device: torch.device) -> int | None:
    before = held_bytes(device)
    if before is None:
        return None
    wait_for(device)
    torch.cuda.reset_peak_memory_stats()
    work()
    wait_for(device)
    return torch.cuda.max_memory_allocated() - before


def machine_name(device: torch.device) -> str:
    """What was measured on, in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name()
    return f"CPU, {counted(torch.get_num_threads(), 'thread')}"
