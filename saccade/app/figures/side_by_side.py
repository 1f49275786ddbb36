"""Runs trained beside one another, each by its own command in a process of its own.

Small models leave most of a GPU idle, and two cores learn two of them sooner than one of them
together: their operations are too short to be shared.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from saccade.app.figures.planned_run import PlannedRun
from saccade.errors import RunError, WriteError
from saccade.train.stopping import Stopped, StopRequest, stop_on_signals

Watch = Callable[[int, int], None]  # updates done, and all
Running = dict[PlannedRun, subprocess.Popen[bytes]]

POLLED = 0.5  # seconds
ROOM = 6 << 30  # bytes of a GPU for each process, its context included
MOST = 12


def fitting_jobs(device: torch.device) -> int:
    """How many processes a machine has cores for, and a GPU memory."""
    cores = torch.get_num_threads()  # what the user, or his batch system, leaves to this process
    if device.type != "cuda":
        return max(1, min(cores, MOST))
    free, _ = torch.cuda.mem_get_info(device)
    return max(1, min(cores - 1, free // ROOM, MOST))


def train_side_by_side(
    planned: Sequence[PlannedRun], *, jobs: int, device: str, watch: Watch
) -> None:
    """All of them, in this order; whoever begins with another's weights waits for them.

    What a process says goes into a file beside its run. Stopped by a signal, or where one fails, it
    leaves none behind: they save what they have, and the same runs go on from there.
    """
    with stop_on_signals() as stop:
        stop.saving = True  # the others do, and may take longer for it than a command that is alone
        _train_all(planned, jobs, device, watch, stop)
    if stop.signal:
        raise Stopped(stop.signal)


def _train_all(
    planned: Sequence[PlannedRun], jobs: int, device: str, watch: Watch, stop: StopRequest
) -> None:
    waiting, running = list(planned), Running()
    threads = max(1, torch.get_num_threads() // jobs)
    total = sum(one.updates for one in planned)
    try:
        while (waiting or running) and not stop.signal:
            unfinished = [*waiting, *running]
            ready = [one for one in waiting if not any(map(one.follows, unfinished))]
            for one in ready[: jobs - len(running)]:
                waiting.remove(one)
                running[one] = _start(one, device, threads)
            time.sleep(POLLED)
            for one in [one for one, process in running.items() if process.poll() is not None]:
                _check(one, running.pop(one).returncode)
            ended = [one for one in planned if one not in waiting and one not in running]
            so_far = sum(one.updates for one in ended) + sum(one.done for one in running)
            watch(min(so_far, total), total)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()


def _start(one: PlannedRun, device: str, threads: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "saccade", *one.arguments, "--train.device", device]
    try:
        one.out.parent.mkdir(parents=True, exist_ok=True)
        with _said(one).open("wb") as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": str(threads)},
                process_group=0,  # Ctrl-C comes to us, and we ask them to stop, once
            )
    except OSError as error:
        raise WriteError(f"cannot write {_said(one)}: {error.strerror}") from error


def _check(one: PlannedRun, code: int) -> None:
    if code == 0:
        return
    lines = _said(one).read_text(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
    raise RunError(
        f"{one.out.name} ended with {code}: {last.removeprefix('saccade: ')} (all of it is in "
        f"{_said(one)}; what is done is kept, and the same command goes on)"
    )


def _said(one: PlannedRun) -> Path:
    return one.out.with_name(f"{one.out.name}.log")
