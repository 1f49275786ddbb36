"""Runs in processes of their own: the same bits as alone, in an order that serves, none left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch

from saccade.app.figures import side_by_side
from saccade.app.figures.planned_run import PlannedRun, planned_run
from saccade.app.figures.side_by_side import fitting_jobs, train_side_by_side
from saccade.errors import RunError
from tests.app.figures.test_workshop import OPTIONS

SMALL = tuple(map(str, OPTIONS))


def nothing(done: int, total: int) -> None: ...


@pytest.mark.slow
def test_runs_beside_one_another_have_the_bits_of_runs_alone(tmp_path: Path) -> None:
    together = [planned_run(tmp_path, "rnn-lm", SMALL, seed) for seed in (0, 1)]
    seen: list[tuple[int, int]] = []
    train_side_by_side(
        together, jobs=2, device="cpu", watch=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (8, 8)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    for seed, one in enumerate(together):
        assert one.finished
        alone = planned_run(tmp_path / "alone", "rnn-lm", SMALL, seed)
        alone.train("cpu")
        weights = "model.safetensors"
        assert (one.out / weights).read_bytes() == (alone.out / weights).read_bytes()


class FakeProcess:
    """A command that ends as it is told, when it is asked for the second time."""

    def __init__(self, code: int) -> None:
        self.code, self.asked, self.returncode = code, 0, code
        self.stopped = False

    def poll(self) -> int | None:
        self.asked += 1
        return self.code if self.asked > 1 else None

    def terminate(self) -> None:
        self.stopped = True

    def wait(self) -> int:
        return self.code


def started(monkeypatch: pytest.MonkeyPatch, codes: dict[str, int]) -> dict[str, FakeProcess]:
    """Processes by the names of their runs, in the order in which they were begun."""
    begun: dict[str, FakeProcess] = {}

    def start(one: PlannedRun, device: str, threads: int) -> FakeProcess:
        one.out.with_name(f"{one.out.name}.log").write_text("saccade: out of luck\n\n")
        return begun.setdefault(one.out.name, FakeProcess(codes.get(one.out.name, 0)))

    monkeypatch.setattr(side_by_side, "_start", start)
    monkeypatch.setattr(side_by_side, "POLLED", 0.0)
    return begun


def named(folder: Path, name: str, *options: str) -> PlannedRun:
    return PlannedRun("rnn-lm", ("--train.steps", "3", *options), folder / name)


def test_whoever_begins_with_weights_of_another_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = started(monkeypatch, {})
    first = named(tmp_path, "first")
    later = named(tmp_path, "later", "--init", str(first.out))
    train_side_by_side(
        [later, first, named(tmp_path, "other")], jobs=2, device="cpu", watch=nothing
    )
    assert list(begun) == ["first", "other", "later"]


def test_one_that_fails_is_told_with_its_last_line_and_the_others_are_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = started(monkeypatch, {"bad": 2})
    runs = [named(tmp_path, "bad"), named(tmp_path, "good"), named(tmp_path, "waits")]
    begun_later = FakeProcess(0)
    begun_later.asked = -(10**6)
    begun["good"] = begun_later
    with pytest.raises(RunError, match=r"bad ended with 2: out of luck \(all of it is in .*bad.lo"):
        train_side_by_side(runs, jobs=2, device="cpu", watch=nothing)
    assert begun_later.stopped
    assert "waits" not in begun


def stopped_by_ctrl_c(script: str, ready: Callable[[], bool]) -> tuple[int, list[psutil.Process]]:
    """How a command that is this script ends, and its children that are left."""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(600):
        if ready():
            break
        time.sleep(0.1)
    children = psutil.Process(parent.pid).children(recursive=True)
    assert len(children) >= 2
    os.kill(parent.pid, signal.SIGINT)
    code = parent.wait(60)
    return code, [child for child in children if child.is_running()]


SCRIPT = """
import subprocess, sys
from pathlib import Path
from saccade.app.figures import side_by_side
from saccade.app.figures.planned_run import planned_run
from saccade.train.stopping import obey_within_a_second

options = "--sentences", "40", "--model.width", "8", "--train.steps", "1000000"
runs = [planned_run(Path({folder!r}), "rnn-lm", options, seed) for seed in (0, 1)]
{change}
with obey_within_a_second():
    side_by_side.train_side_by_side(runs, jobs=2, device="cpu", watch=lambda done, total: None)
"""


@pytest.mark.slow
def test_ctrl_c_ends_all_of_them_and_they_keep_what_they_have(tmp_path: Path) -> None:
    def learning() -> bool:
        logs = [log for log in tmp_path.glob("*/metrics.jsonl") if log.stat().st_size]
        return len(logs) == 2

    code, left = stopped_by_ctrl_c(SCRIPT.format(folder=str(tmp_path), change=""), learning)
    assert (code != 0, left) == (True, [])
    assert len([*tmp_path.glob("*/checkpoints/*")]) >= 2


SLOW = """
SAVING = "import signal, sys, time, pathlib"
SAVING += "; signal.signal(signal.SIGTERM, lambda *a: (time.sleep(2), sys.exit()))"
SAVING += "; pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"

def start(one, device, threads):
    return subprocess.Popen([sys.executable, "-c", SAVING, f"{one.out}.on"], process_group=0)

side_by_side._start = start
"""


def test_whoever_takes_long_to_save_is_waited_for(tmp_path: Path) -> None:
    script = SCRIPT.format(folder=str(tmp_path), change=SLOW)
    code, left = stopped_by_ctrl_c(script, lambda: len([*tmp_path.glob("*.on")]) == 2)
    assert (code != 0, left) == (True, [])


def test_as_many_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, jobs in ((1, 1), (2, 2), (64, 12)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        assert fitting_jobs(torch.device("cpu")) == jobs
