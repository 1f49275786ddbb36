"""Many processes compute what one does; if one dies, all end, and the run goes on from there."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from member import recipe_of
from safetensors.torch import load_file
from small import ignore, losses, same_run, train_noting, write_corpus

from saccade.errors import ConfigError
from saccade.train.distributed import World, choose_device, join_world
from saccade.train.run import train

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "translation": ("translation", {"accumulate": 1}),
    "translation, accumulated": ("translation", {"accumulate": 2}),
    "translation, a row a batch": ("translation", {"accumulate": 1, "batch_tokens": 14}),
    "language": ("language", {"accumulate": 1}),
    "language, accumulated": ("language", {"accumulate": 2}),
}


def launch(data: Path, plan: list[dict[str, Any]], *, timeout: float = 90) -> int:
    """Two processes, as torchrun starts them."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    member = [str(Path(__file__).with_name("member.py")), str(data), json.dumps(plan)]
    command = [*torchrun, "--nproc-per-node", "2", *member]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        return process.wait(timeout)
    finally:
        process.terminate()  # it takes its workers along, which a kill would not
        process.wait()


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


class Distance(NamedTuple):
    """The largest difference between the last weights (and averages) of two runs.

    The biases of keys stand apart. Softmax ignores what they add, so their gradient is zero but for
    rounding, and Adam divides that noise by its ε = 1e-8: they drift by about 1e-11, and nothing
    depends on it.
    """

    weights: float
    key_biases: float


def distance(first: Path, second: Path) -> Distance:
    found: dict[bool, list[float]] = {False: [], True: []}
    for part in ("model", "average"):
        name = f"checkpoints/step-00000020/{part}.safetensors"
        if (first / name).exists():
            ours, theirs = load_file(first / name), load_file(second / name)
            assert ours.keys() == theirs.keys()
            assert {tensor.dtype for tensor in ours.values()} == {torch.float64}
            for key in ours:
                gap = (ours[key] - theirs[key]).abs().max().item()
                found[key.endswith("to_k.bias")].append(gap)
    assert len(found[False]) > 10
    return Distance(max(found[False]), max(found[True]))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_two_processes_train_as_one(case: str, one: Path, two: Path) -> None:
    apart = distance(one / case, two / case)
    assert apart.weights < 1e-12
    assert apart.key_biases < 1e-10
    ours, theirs = losses(one / case), losses(two / case)
    assert ours.keys() == theirs.keys()
    assert ours == pytest.approx(theirs, rel=1e-6)


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
    reader = [str(Path(__file__).with_name("slow_reader.py")), "train", "rnn-lm"]
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
