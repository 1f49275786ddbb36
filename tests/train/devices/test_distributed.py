"""Many processes compute what one does; if one dies, all end, and the run goes on from there."""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist

from saccade.errors import ConfigError, TrainingError
from saccade.train.devices import distributed
from saccade.train.devices.distributed import World, choose_device, join_world, lost_another, meet
from saccade.train.run import train
from tests.train.many import distance, launch
from tests.train.member import recipe_of
from tests.train.small import ignore, losses, same_run, small_recipe, train_noting, write_corpus

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "translation": ("translation", {"accumulate": 1}),
    "translation, accumulated": ("translation", {"accumulate": 2}),
    "translation, a row a batch": ("translation", {"accumulate": 1, "batch_tokens": 14}),
    "language": ("language", {"accumulate": 1}),
    "language, accumulated": ("language", {"accumulate": 2}),
}


def life(folder: Path, case: str, **more: Any) -> dict[str, Any]:
    kind, change = CASES[case]
    return {"folder": str(folder), "kind": kind, "change": change, **more}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many")


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    return write_corpus(folder / "data")


@pytest.fixture(scope="module")
def two(folder: Path, data: Path) -> Path:
    """Every case trained by two processes, and one case that counts its tokens wrongly."""
    plan = [life(folder / "two" / case, case) for case in CASES]
    plan.append(life(folder / "two" / "wrong", "translation", wrong=True))
    assert launch(data, plan) == 0
    return folder / "two"


@pytest.fixture(scope="module")
def one(folder: Path, data: Path) -> Path:
    for case, (kind, change) in CASES.items():
        train(recipe_of(data, kind, change), folder / "one" / case, ignore)
    return folder / "one"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one(case: str, one: Path, two: Path) -> None:
    apart = distance(one / case, two / case)
    assert apart.weights < 1e-12
    assert apart.key_biases < 1e-10
    ours, theirs = losses(one / case), losses(two / case)
    assert ours.keys() == theirs.keys()
    assert ours == pytest.approx(theirs, rel=1e-10)


@pytest.mark.slow
def test_a_mean_over_each_process_alone_is_found_out(one: Path, two: Path) -> None:
    assert distance(one / "translation", two / "wrong").weights > 1e-3


@pytest.mark.slow
def test_if_one_process_is_killed_all_end_and_the_run_goes_on_from_there(
    folder: Path, data: Path, two: Path
) -> None:
    run = folder / "broken"
    begun = time.monotonic()
    assert launch(data, [life(run, "translation", kill=10)]) != 0
    assert time.monotonic() - begun < 60
    assert max(step for step, _ in losses(run)) == 10
    assert launch(data, [life(run, "translation")]) == 0
    assert same_run(run, two / "translation") == []


@pytest.mark.slow
def test_torchrun_itself_brings_a_run_back_whose_worker_was_killed_between_checkpoints(
    folder: Path, data: Path, two: Path
) -> None:
    run = folder / "restarted"
    assert launch(data, [life(run, "translation", kills=[7])], restarts=1) == 0
    assert "going on from step 4 of 20" in Path(f"{run}.notes").read_text()
    assert same_run(run, two / "translation") == []


@pytest.mark.slow
def test_what_two_processes_began_one_may_finish(
    folder: Path, data: Path, one: Path, two: Path
) -> None:
    run = folder / "fewer"
    kind, change = CASES["translation"]
    assert launch(data, [life(run, "translation", kill=10)]) != 0
    _, notes = train_noting(recipe_of(data, kind, change), run)
    assert "going on from step 10 of 20" in notes
    assert "processes was 2, now 1: the last digits may differ" in notes
    apart = distance(run, one / "translation")
    assert apart.weights < 1e-12
    assert apart.key_biases < 1e-10


@pytest.mark.slow
def test_others_wait_as_long_as_one_reads_and_the_first_alone_speaks(tmp_path: Path) -> None:
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    reader = [str(Path(__file__).parents[1] / "slow_reader.py"), "train", "rnn-lm"]
    options = ["--sentences", "30", "--train.steps", "2", "--train.device", "cpu", "--out"]
    ended = subprocess.run(
        [*torchrun, "--nproc-per-node", "2", *reader, *options, str(tmp_path / "run")],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for once in ("making sentences", "batches to an epoch", "step      2", "trained: "):
        assert ended.stderr.count(once) == 1, ended.stderr


def met(store: Any, size: int, *, late: int = 0) -> set[str]:
    """The names that so many processes have agreed on; one of them comes late."""

    def come(rank: int) -> str:
        time.sleep(0.2 * (rank == late))
        return meet(store.clone(), rank, size)

    with ThreadPoolExecutor(size) as threads:
        return set(threads.map(come, range(size)))


def test_processes_meet_again_where_torchrun_has_kept_its_store() -> None:
    """With what those of before, of whom one may never have come, have left in it."""
    everyone: Any = dist
    store = everyone.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    (first,) = met(store, 3)
    store.set("saccade/hello/1", "one that died before it was answered")
    names = [met(store, 3, late=late) for late in (0, 1, 2)]
    assert all(len(name) == 1 for name in names)
    assert len({first, *(name.pop() for name in names)}) == 4


def test_a_restart_is_not_a_new_start(monkeypatch: pytest.MonkeyPatch) -> None:
    everyone: Any = dist
    cpu, launch = torch.device("cpu"), everyone.HashStore()
    assert not World(0, 1, cpu).restarted("runs/a")
    assert not World(0, 2, cpu, launch).restarted("runs/a")
    assert World(0, 2, cpu, launch).restarted("runs/a")  # though nobody here has counted it
    assert not World(0, 2, cpu, launch).restarted("runs/b")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    assert World(0, 1, cpu).restarted("runs/a")


@pytest.mark.slow
def test_a_restart_does_not_start_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, run = small_recipe(write_corpus(tmp_path / "data"), steps=2), tmp_path / "run"
    train(recipe, run, ignore, start_over=True)
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    train(recipe, run, ignore, start_over=True)
    assert not (tmp_path / "run.1").exists()
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT")
    train(recipe, run, ignore, start_over=True)
    assert (tmp_path / "run.1").exists()


def test_that_another_process_is_lost_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = RuntimeError("[/x/gloo/pair.cc:5] Connection closed by peer [::1]:2. Check\nGLHF")
    assert lost_another(gone)
    assert lost_another(dist.DistNetworkError("reset"))
    assert not lost_another(RuntimeError("shapes differ"))
    for name, value in {"RANK": "0", "WORLD_SIZE": "2"}.items():
        monkeypatch.setenv(name, value)
    everyone: Any = dist
    alone = everyone.HashStore(), 0, 2
    monkeypatch.setattr(distributed, "rendezvous", lambda *_, **__: iter([alone]))
    monkeypatch.setattr(distributed, "meet", lambda *_: "here")
    monkeypatch.setattr(dist, "init_process_group", lambda *_, **__: None)
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    said = r"process 0 of 2 lost another one \(Connection closed by peer \[::1\]:2\); the same"
    with pytest.raises(TrainingError, match=rf"{said} .*--max-restarts"), join_world("cpu"):
        raise gone
    with pytest.raises(RuntimeError, match="shapes differ"), join_world("cpu"):
        raise RuntimeError("shapes differ")


def test_alone_a_sum_is_the_value_itself() -> None:
    with join_world("cpu") as world:
        assert world == World(0, 1, torch.device("cpu"))
        assert world.first
        assert world.sum(2.5) == 2.5
        world.wait()


@pytest.mark.parametrize("name", ["cuda:99", "tpu", "", "mps"])
def test_a_device_that_is_not_here_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"device={name!r} cannot be used here .*; try cpu"):
        choose_device(name)


def test_the_device_is_found_without_being_named() -> None:
    torch.empty(0, device=choose_device("auto"))
