"""Beside other processes fewer threads compute; a run goes on with as many as it began with."""

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ConfigError
from saccade.train.devices import threads
from saccade.train.devices.threads import CpuUse, cores_taken, cpu_use, threads_beside
from saccade.train.events import Note, Update
from saccade.train.recipe import from_table, to_table
from saccade.train.run import train
from tests.train.small import small_recipe, write_corpus


@given(taken=st.floats(0, 100), most=st.integers(1, 64), cores=st.integers(1, 64))
def test_there_is_always_a_thread_and_never_one_more(taken: float, most: int, cores: int) -> None:
    assert 1 <= threads_beside(taken, most=most, cores=cores) <= most
    assert threads_beside(0.4, most=min(most, cores), cores=cores) == min(most, cores)
    assert threads_beside(0.5, most=cores, cores=cores) == max(1, cores - 1)


def test_threads_that_share_no_core_stay() -> None:
    assert threads_beside(3.0, most=8, cores=16) == 8  # torch takes one for two hardware threads
    assert threads_beside(11.0, most=8, cores=16) == 5


def test_another_process_is_seen_and_we_ourselves_are_not() -> None:
    spin = "import time; end = time.time() + 20\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", spin]) as other:
        since = cpu_use()
        end = time.monotonic() + 0.6
        while time.monotonic() < end:
            pass  # so are we, and that does not count
        beside = cores_taken(since)
        other.kill()
    assert since is not None
    assert 0.3 < beside < since.cores


def test_a_system_that_does_not_say_is_a_quiet_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "STAT", Path("/nowhere"))
    assert cpu_use() is None
    assert cores_taken(None) == 0


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


def trained(corpus: Path, run: Path, steps: int) -> tuple[set[int], list[str]]:
    """With how many threads updates were made, and what was said."""
    recipe = small_recipe(corpus)
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
    monkeypatch.setattr(threads, "cores_taken", lambda _: 1.04)
    assert trained(corpus, run, 5) == (
        {1},
        [
            "1 of 2 threads: others keep 1.0 of 2 cores busy, and threads would wait for theirs "
            "(OMP_NUM_THREADS=2 takes all)"
        ],
    )
    assert json.loads((run / "config.json").read_text())["threads"] == 1
    monkeypatch.setattr(threads, "cores_taken", lambda _: 0.0)
    counts, said = trained(corpus, run, 10)
    assert counts == {1}
    assert said == [
        "1 of 2 threads, as this run began beside others; OMP_NUM_THREADS=2 takes all, and the "
        "last digits may differ"
    ]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    counts, said = trained(corpus, run, 15)
    assert counts == {2}
    assert said == ["threads was 1, now 2: the last digits may differ"]


@pytest.mark.usefixtures("two_threads")
def test_a_run_that_began_with_all_goes_on_with_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, run = write_corpus(tmp_path / "data"), tmp_path / "run"
    monkeypatch.setattr(threads, "cores_taken", lambda _: 0.2)
    assert trained(corpus, run, 5) == ({2}, [])
    assert "threads" not in json.loads((run / "config.json").read_text())
    monkeypatch.setattr(threads, "cores_taken", lambda _: 0.9)
    assert trained(corpus, run, 10) == (
        {2},
        [
            "others keep 0.9 of 2 cores busy, and threads would wait for theirs: "
            "OMP_NUM_THREADS=1 would be faster than the 2 that this run began with, and the last "
            "digits may differ"
        ],
    )


def test_threads_survive_their_table_and_odd_ones_are_refused() -> None:
    recipe = replace(small_recipe("data"), threads=3)
    table = to_table(recipe)
    assert from_table(table, where="here").threads == 3
    assert "threads" not in to_table(small_recipe("data"))
    for odd in (-1, "2", True):
        with pytest.raises(ConfigError, match=r"^here: threads must be a number of threads, or 0"):
            from_table({**table, "threads": odd}, where="here")
