"""The command line under signals, rivals and full disks: it says why it ended, and goes on."""

import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.train.recipe import save_recipe
from saccade.train.run import train
from saccade.train.storage.checkpoint import load_newest
from tests.train.small import (
    HaltError,
    halt_at,
    hashes,
    losses,
    same_run,
    small_recipe,
    write_corpus,
)

pytestmark = pytest.mark.slow

STEPS = 300
SIGNALS = {signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGHUP: 129}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signals")
    data = write_corpus(folder / "data")
    recipe = small_recipe(data, steps=STEPS, validate_every=50, save_every=0)
    (folder / "small.toml").write_text(save_recipe(recipe))
    return folder


def limits(file_size: int | None) -> None:
    """A shell may have started the tests with signals ignored; that must not count."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if file_size is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))


def start(folder: Path, run: Path, *options: str, file_size: int | None = None) -> Any:
    command = [sys.executable, "-m", "saccade", "train", str(folder / "small.toml")]
    return subprocess.Popen(
        [*command, "--out", str(run), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"},
        preexec_fn=lambda: limits(file_size),  # noqa: PLW1509 (no threads here)
    )


@contextmanager
def going(folder: Path, run: Path, *options: str) -> Iterator[Any]:
    """A command that has done some updates; it does not outlive the test."""
    before = size_of(run)
    process = start(folder, run, *options)
    try:
        deadline = time.monotonic() + 60
        while size_of(run) <= before:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.communicate()


def size_of(run: Path) -> int:
    path = run / "metrics.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def finish(process: Any) -> tuple[int, str]:
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors


def test_a_signal_saves_at_the_next_step_and_a_second_ends_at_once_without_damage(
    folder: Path,
) -> None:
    run, resumed = folder / "signalled", [0]
    for number, code in SIGNALS.items():
        with going(folder, run) as process:
            process.send_signal(number)
            ended, errors = finish(process)
        assert ended == code
        newest, troubles = load_newest(run / "checkpoints")
        assert newest is not None
        assert troubles == []
        assert f"stopped at step {newest.step:,}; the same command goes on" in errors
        assert max(step for step, _ in losses(run)) == newest.step
        assert STEPS > newest.step > resumed[-1]
        if resumed[-1]:
            assert f"going on from step {resumed[-1]:,} of" in errors
        resumed.append(newest.step)

    with going(folder, run) as process:
        process.send_signal(signal.SIGSTOP)  # so that both signals are there at once
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGCONT)
        ended, errors = finish(process)
    assert ended in (143, 130)
    assert "stopped at step" not in errors

    ended, errors = finish(start(folder, run))
    assert ended == 0, errors
    assert finish(start(folder, folder / "alone"))[0] == 0
    assert same_run(run, folder / "alone") == []


def test_a_rival_is_told_who_owns_the_run_and_a_killed_owner_leaves_no_lock(folder: Path) -> None:
    run = folder / "owned"
    with going(folder, run) as owner:
        owner.send_signal(signal.SIGSTOP)  # lest it finish before the rival has started
        ended, errors = finish(start(folder, run))
        assert ended == 2
        assert f"is being trained by pid {owner.pid} on {socket.gethostname()};" in errors
        assert errors.count("\n") == 1
        owner.kill()
        owner.communicate()
    with going(folder, run) as heir:
        heir.send_signal(signal.SIGTERM)
        assert finish(heir)[0] == 143


def test_a_file_that_may_not_grow_ends_with_1_and_the_run_goes_on_once_it_may(
    folder: Path, tmp_path: Path
) -> None:
    recipe = small_recipe(folder / "data", steps=24)
    (tmp_path / "small.toml").write_text(save_recipe(recipe))
    torch.set_num_threads(1)
    with pytest.raises(HaltError):
        train(recipe, tmp_path / "run", halt_at(17))
    shutil.copytree(tmp_path / "run", tmp_path / "before")
    ended, errors = finish(start(tmp_path, tmp_path / "run", file_size=40_000))
    assert ended == 1
    (line,) = [line for line in errors.splitlines() if line.startswith("saccade: ")]
    assert line == errors.splitlines()[-1]
    assert f"cannot write {tmp_path / 'run/checkpoints/.tmp-step-00000018'}" in line
    assert "File too large" in line
    assert "bytes needed" in line
    assert "free" in line
    assert not list((tmp_path / "run" / "checkpoints").glob(".tmp-*"))
    assert hashes(tmp_path / "run") == hashes(tmp_path / "before")
    assert finish(start(tmp_path, tmp_path / "run"))[0] == 0
    assert finish(start(tmp_path, tmp_path / "alone"))[0] == 0
    assert same_run(tmp_path / "run", tmp_path / "alone") == []


def test_a_run_without_a_good_checkpoint_ends_with_2(folder: Path, tmp_path: Path) -> None:
    recipe = small_recipe(folder / "data", steps=24)
    (tmp_path / "small.toml").write_text(save_recipe(recipe))
    with pytest.raises(HaltError):
        train(recipe, tmp_path / "run", halt_at(5))
    for path in (tmp_path / "run" / "checkpoints").glob("*/model.safetensors"):
        path.write_bytes(b"")
    ended, errors = finish(start(tmp_path, tmp_path / "run"))
    assert ended == 2
    assert errors.splitlines()[-1].startswith("saccade: no checkpoint under")
