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
CHOSEN_BY = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # whoever sets one of these has chosen
GLANCE, SURE = 0.3, 1.5  # seconds that show that nobody computes, and that somebody does


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


def cores_taken(since: CpuUse, *, window: float) -> float:
    """How many of our cores other processes have kept busy since then, on average.

    Waits until that is so many seconds ago.
    """
    time.sleep(max(0.0, since.at + window - time.monotonic()))
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


def settle_threads(before: int | None, since: CpuUse | None) -> list[str]:
    """Take as many threads as the run had `before`, or as others leave a new one; and say so.

    With another number of threads sums have another order, and a run other last digits.
    """
    most = torch.get_num_threads()
    if any(name in os.environ for name in CHOSEN_BY):
        return []
    if before is not None:
        if before >= most:
            return []
        torch.set_num_threads(before)
        return [
            f"{before} of {most} threads, as so far; OMP_NUM_THREADS={most} takes all, and the "
            "last digits may differ"
        ]
    if most == 1 or since is None:
        return []
    every = min(most, since.cores)
    for window in (GLANCE, SURE):
        taken = cores_taken(since, window=window)
        left = threads_beside(taken, most=most, cores=since.cores)
        if left == every:
            return []
        since = cpu_use() or since  # whoever was busy while we prepared may have ended
    torch.set_num_threads(left)
    return [
        f"{left} of {most} threads: others keep {taken:.1f} of {since.cores} cores busy, and a "
        f"thread that shares a core holds up the rest (OMP_NUM_THREADS={most} takes all)"
    ]


@contextmanager
def restored_threads() -> Generator[None]:
    """Torch has as many threads afterwards as before."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
