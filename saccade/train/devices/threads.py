"""How many threads an update on a CPU computes with: one for each core that others leave free.

The threads of an operation wait for one another. One whose core is shared with another process is
waited for by all, at each of thousands of small operations, so that one thread fewer is faster.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch

STAT = Path("/proc/stat")  # where it is not, all threads are taken
BUSY = slice(1, 4), slice(6, 8)  # user, nice, system; interrupts: neither idle nor another guest's
ASKED_FOR = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # whoever sets one of these has chosen
LEAST = 0.3  # seconds that tell how busy others are


class CpuUse(NamedTuple):
    """Seconds of computing so far on the cores that are ours to use: of all, and of us alone."""

    at: float
    everyone: float
    ours: float
    cores: int


def cpu_use() -> CpuUse | None:
    """As of now; None where the system does not say."""
    try:
        lines = [line.split() for line in STAT.read_text().splitlines()]
        own = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        busy = [
            int(x) for row in lines if row[:1] and row[0] in own for at in BUSY for x in row[at]
        ]
    except (OSError, ValueError, AttributeError):
        return None
    ours = sum(os.times()[:4])  # with processes of ours that have ended
    return CpuUse(time.monotonic(), sum(busy) / os.sysconf("SC_CLK_TCK"), ours, len(own))


def cores_taken(since: CpuUse | None) -> float:
    """How many of our cores other processes have kept busy since then, on average."""
    if since is None:
        return 0.0
    time.sleep(max(0.0, since.at + LEAST - time.monotonic()))
    now = cpu_use()
    if now is None:
        return 0.0
    others = (now.everyone - since.everyone) - (now.ours - since.ours)
    return max(0.0, others / (now.at - since.at))


def threads_beside(taken: float, *, most: int, cores: int) -> int:
    """As many as there are cores that others leave free.

    threads = max(1, min(most, cores − ⌊taken + ½⌋))
    """
    return max(1, min(most, cores - int(taken + 0.5)))


def settle_threads(kept: int | None, since: CpuUse | None) -> tuple[int, list[str]]:
    """Take as many threads as others leave; how many a run keeps (0: all), and what to say of it.

    A run that goes on has `kept` a number: with another one its last digits would be others.
    """
    most = torch.get_num_threads()
    if most == 1 or since is None or any(name in os.environ for name in ASKED_FOR):
        return kept or 0, []
    if kept:
        torch.set_num_threads(min(kept, most))
        return kept, [
            f"{kept} of {most} threads, as this run began beside others; OMP_NUM_THREADS={most} "
            "takes all, and the last digits may differ"
        ]
    taken = cores_taken(since)
    left = threads_beside(taken, most=most, cores=since.cores)
    if left == most:
        return 0, []
    busy = f"others keep {taken:.1f} of {since.cores} cores busy, and threads would wait for theirs"
    if kept is not None:
        return 0, [
            f"{busy}: OMP_NUM_THREADS={left} would be faster than the {most} that this run began "
            "with, and the last digits may differ"
        ]
    torch.set_num_threads(left)
    return left, [f"{left} of {most} threads: {busy} (OMP_NUM_THREADS={most} takes all)"]


@contextmanager
def threads_put_back() -> Generator[None]:
    """Leave torch with as many threads as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
