"""Runs of claims: trained once, gone on with where they were stopped, by commands one can type."""

import json
import shlex
import signal
from pathlib import Path

import pytest

from saccade.app.cli.train import train_command
from saccade.app.figures.workshop import Workshop
from saccade.train.run import TrainingOutcome
from saccade.train.stopping import Stopped
from saccade.train.storage.checkpoint import Checkpoint, save_checkpoint
from saccade.train.storage.folder import RunFolder

OPTIONS = ("--sentences", 40, "--model.width", 8, "--train.steps", 4, "--train.validate-every", 2)


def small(work: Workshop, seed: int = 0) -> Path:
    return work.train("rnn-lm", *OPTIONS, seed=seed)


@pytest.mark.slow
def test_a_finished_run_is_not_trained_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Workshop(tmp_path, device="cpu")
    path = small(work)
    monkeypatch.setattr("saccade.app.figures.planned_run.run_training", None)
    assert small(work) == path
    assert work.ran[0] == work.ran[1]


@pytest.mark.slow
def test_a_stopped_training_is_resumed_and_not_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = RunFolder(small(Workshop(tmp_path / "whole", device="cpu")))
    work = Workshop(tmp_path / "stopped", device="cpu")
    real = stopped_after(monkeypatch, at=2)
    with pytest.raises(Stopped):
        small(work)
    (path,) = (tmp_path / "stopped" / "runs").iterdir()
    assert RunFolder(path).newest_state()["step"] == 3
    monkeypatch.setattr("saccade.app.figures.planned_run.run_training", real)
    assert small(work) == path
    assert RunFolder(path).newest_state()["step"] == 4
    assert path.joinpath("model.safetensors").read_bytes() == whole.weights.read_bytes()
    losses = [json.loads(line) for line in (path / "metrics.jsonl").read_text().splitlines()]
    assert [one["step"] for one in losses if "valid_loss" in one] == [2, 4]


def stopped_after(monkeypatch: pytest.MonkeyPatch, *, at: int) -> object:
    """Have a signal come at an update, which training obeys after the next."""
    import saccade.app.figures.planned_run as home

    real = home.run_training

    def stopped(chosen: object, out: Path) -> TrainingOutcome:
        def save(folder: Path, one: Checkpoint, *, keep: int) -> Path:
            written = save_checkpoint(folder, one, keep=keep)
            if one.step == at:
                signal.raise_signal(signal.SIGTERM)
            return written

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("saccade.train.storage.checkpoint.save_checkpoint", save)
            return real(chosen, out)  # type: ignore[arg-type]

    monkeypatch.setattr(home, "run_training", stopped)
    return real


@pytest.mark.slow
def test_the_command_that_is_told_trains_the_same_run(tmp_path: Path) -> None:
    work = Workshop(tmp_path, device="cpu")
    path = small(work)
    program, command, *arguments = shlex.split(work.ran[0])
    assert (program, command) == ("saccade", "train")
    other = str(tmp_path / "other")
    arguments[arguments.index("--out") + 1] = other
    assert train_command([*arguments, "--train.device", "cpu"]) == 0
    assert RunFolder(Path(other)).weights.read_bytes() == RunFolder(path).weights.read_bytes()


def test_other_settings_and_seeds_have_other_folders(tmp_path: Path) -> None:
    work = Workshop(tmp_path, carry_out=lambda planned, device: None)
    other = work.train("rnn-lm", *OPTIONS, "--train.ema", 0.5, seed=0)
    assert len({small(work), small(work, 1), other}) == 3


def test_a_budget_is_a_share_of_all_that_is_counted(tmp_path: Path) -> None:
    assert Workshop(tmp_path).share(1000) == 1000
    assert Workshop(tmp_path, budget=0.1).share(1000) == 100
    assert Workshop(tmp_path, budget=0.001).share(100) == 2
