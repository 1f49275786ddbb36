"""Beside other processes fewer threads compute; a run goes on with as many as it began with."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.train.devices import threads
from saccade.train.devices.threads import (
    CpuUse,
    cores_taken,
    cpu_use,
    settle_threads,
    threads_beside,
)
from saccade.train.events import Note, Update
from saccade.train.run import train
from tests.train.small import HaltError, halt_at, same_run, small_recipe, write_corpus


@given(taken=st.floats(0, 100), most=st.integers(1, 64), cores=st.integers(1, 64))
def test_there_is_always_a_thread_and_never_one_more(taken: float, most: int, cores: int) -> None:
    assert 1 <= threads_beside(taken, most=most, cores=cores) <= most
    assert threads_beside(0.4, most=min(most, cores), cores=cores) == min(most, cores)
    assert threads_beside(0.5, most=cores, cores=cores) == max(1, cores - 1)


def test_threads_that_share_no_core_stay() -> None:
    assert threads_beside(3.0, most=8, cores=16) == 8  # torch takes one for two hardware threads
    assert threads_beside(11.0, most=8, cores=16) == 5


def test_another_process_is_seen() -> None:
    spin = "import time; end = time.time() + 20\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", spin]) as other:
        since = cpu_use()
        assert since is not None
        beside = cores_taken(since, window=0.6)
        other.kill()
    assert 0.3 < beside <= since.cores + 0.2


def test_what_we_compute_ourselves_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores were busy for a second, one of them with us and with our children that ended."""
    monkeypatch.setattr(threads, "cpu_use", lambda: CpuUse(at=1.0, everyone=9.0, ours=4.0, cores=8))
    since = CpuUse(at=0.0, everyone=7.0, ours=3.0, cores=8)
    assert cores_taken(since, window=0.0) == 1.0
    times = os.times_result((1.0, 0.5, 0.25, 0.25, 99.0))
    monkeypatch.undo()
    monkeypatch.setattr("os.times", lambda: times)
    use = cpu_use()
    assert use is not None
    assert use.ours == 2.0


def test_a_system_that_does_not_say_is_a_quiet_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "STAT", Path("/nowhere"))
    assert cpu_use() is None
    assert settle_threads(None, None) == []


def test_what_the_system_says_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """User, nice, system, idle, waiting, interrupts twice, and what other guests take."""
    monkeypatch.setattr(threads, "STAT", tmp_path / "stat")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 12}, raising=False)
    monkeypatch.setattr("os.sysconf", lambda _: 100)
    rows = ["cpu 9 9 9 9 9 9 9 9", "cpu1 100 20 3 7777 8888 400 50 9999", "cpu2 1 1 1 1 1 1 1 1"]
    (tmp_path / "stat").write_text("\n".join([*rows, "cpu12 100 0 0 1 1 0 0 1", "intr 4 4", ""]))
    use = cpu_use()
    assert use is not None
    assert use.cores == 2
    assert use.everyone == pytest.approx((100 + 20 + 3 + 400 + 50 + 100) / 100)


@pytest.fixture
def two_threads(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("saccade.train.run.cpu_use", lambda: CpuUse(0.0, 0.0, 0.0, 2))
    torch.set_num_threads(2)
    yield
    assert torch.get_num_threads() == 2, "it is put back"
    torch.set_num_threads(1)


def busy(monkeypatch: pytest.MonkeyPatch, *cores: float) -> None:
    """So many cores are taken by others at each look."""
    looks = iter(cores)
    monkeypatch.setattr(threads, "cores_taken", lambda _, window: next(looks))


def trained(corpus: Path, run: Path, steps: int) -> tuple[set[int], list[str]]:
    """With how many threads updates were made, and what was said."""
    recipe = small_recipe(corpus, save_every=5)
    counts, said = set[int](), list[str]()

    def watch(event: object) -> None:
        if isinstance(event, Update):
            counts.add(torch.get_num_threads())
        if isinstance(event, Note):
            said.append(event.text)

    train(replace(recipe, train=replace(recipe.train, steps=steps)), run, watch)
    return counts, [line for line in said if "threads" in line]


@pytest.mark.usefixtures("two_threads")
def test_a_run_that_began_beside_others_goes_on_with_as_few(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, run = write_corpus(tmp_path / "data"), tmp_path / "run"
    busy(monkeypatch, 1.2, 1.04)
    assert trained(corpus, run, 5) == (
        {1},
        [
            "1 of 2 threads: others keep 1.0 of 2 cores busy, and a thread that shares a core "
            "holds up the rest (OMP_NUM_THREADS=2 takes all)"
        ],
    )
    counts, said = trained(corpus, run, 10)
    assert counts == {1}
    assert said == [
        "1 of 2 threads, as so far; OMP_NUM_THREADS=2 takes all, and the last digits may differ"
    ]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    counts, said = trained(corpus, run, 15)
    assert counts == {2}
    assert said == ["threads was 1, now 2: the last digits may differ"]


@pytest.mark.usefixtures("two_threads")
def test_a_run_that_one_thread_began_has_the_same_bits_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the one thread came to be: it was asked for, and is not when the run goes on."""
    corpus, whole, broken = write_corpus(tmp_path / "data"), tmp_path / "whole", tmp_path / "broken"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    torch.set_num_threads(1)
    trained(corpus, whole, 15)
    with pytest.raises(HaltError):
        train(small_recipe(corpus, steps=15), broken, halt_at(8))
    monkeypatch.delenv("OMP_NUM_THREADS")
    torch.set_num_threads(2)
    counts, _ = trained(corpus, broken, 15)
    assert counts == {1}
    assert same_run(whole, broken) == []


@pytest.mark.usefixtures("two_threads")
def test_a_run_that_began_with_all_goes_on_with_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, run = write_corpus(tmp_path / "data"), tmp_path / "run"
    busy(monkeypatch, 1.2, 0.2)
    assert trained(corpus, run, 5) == ({2}, [])
    assert trained(corpus, run, 10) == ({2}, [])


def test_a_machine_with_fewer_cores_than_threads_is_not_busy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("torch.get_num_threads", lambda: 4)
    busy(monkeypatch, 0.0)
    assert settle_threads(None, CpuUse(0.0, 0.0, 0.0, 2)) == []


def test_others_who_have_ended_while_a_run_prepared_take_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)
    monkeypatch.setattr(threads, "cpu_use", lambda: CpuUse(60.0, 31.0, 0.0, 2))
    looks = {0.0: 0.5, 60.0: 0.0}  # by when they begin
    monkeypatch.setattr(threads, "cores_taken", lambda since, window: looks[since.at])
    assert settle_threads(None, CpuUse(0.0, 0.0, 0.0, 2)) == []


def test_fewer_threads_than_a_run_began_with_are_taken_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What differs is told where the checkpoint is read."""
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert torch.get_num_threads() == 1
    assert settle_threads(4, None) == []
    assert torch.get_num_threads() == 1
