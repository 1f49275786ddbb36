"""What is written stays in the run folder, whatever lies in the way."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from saccade.errors import CheckpointError, SaccadeError, WriteError
from saccade.train.run import train
from saccade.train.stopping import locked
from saccade.train.storage.checkpoint import Checkpoint, load_newest, save_checkpoint
from saccade.train.storage.files import finite, read_json, replace_file
from saccade.train.storage.log import Log
from tests.train.small import ignore, small_recipe, write_corpus


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Somebody's file, outside of the run."""
    path = tmp_path / "outside" / "victim"
    path.parent.mkdir()
    path.write_bytes(b"precious")
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def lock(run: Path) -> None:
    with locked(run):
        pass


def save(run: Path) -> None:
    save_checkpoint(run / "checkpoints", Checkpoint(1, {}, {}), keep=1)


REFUSED: dict[str, tuple[str, Callable[[Path], None]]] = {
    "the lock": (".lock", lock),
    "the log": ("metrics.jsonl", lambda run: Log(run / "metrics.jsonl", after=0).write(1, {})),
    "the checkpoints": ("checkpoints", save),
    "tensorboard": (
        "tensorboard",
        lambda run: Log(run / "metrics.jsonl", after=0, tensorboard=True).close(),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("dangling", [True, False])
def test_nothing_is_written_through_a_link(
    what: str, dangling: bool, run: Path, victim: Path
) -> None:
    name, act = REFUSED[what]
    end = victim.with_name("new") if dangling else victim
    end = victim.parent if name in ("checkpoints", "tensorboard") and not dangling else end
    (run / name).symlink_to(end)
    with pytest.raises(WriteError, match=rf"{name} is a symbolic link.*; remove it, or link"):
        act(run)
    assert victim.read_bytes() == b"precious"
    assert os.listdir(victim.parent) == ["victim"]
    (run / name).unlink()  # the way out
    act(run)


@pytest.mark.parametrize("stray", ["link", "file", "folder", "link to a folder"])
@pytest.mark.parametrize("name", [".tmp-config.json", "config.json"])
def test_what_lies_in_the_way_of_a_file_goes_and_where_it_leads_stays(
    stray: str, name: str, run: Path, victim: Path
) -> None:
    if name == "config.json" and stray == "folder":
        pytest.skip("a folder in place of the file itself is the user's")
    lay(run / name, stray, victim)
    replace_file(run / "config.json", b"new")
    assert (run / "config.json").read_bytes() == b"new"
    assert not (run / "config.json").is_symlink()
    assert victim.read_bytes() == b"precious"
    assert os.listdir(run) == ["config.json"]


@pytest.mark.parametrize("stray", ["link", "file", "folder", "link to a folder"])
def test_a_stray_temporary_does_not_end_training(stray: str, run: Path, victim: Path) -> None:
    (run / "checkpoints").mkdir()
    lay(run / "checkpoints" / ".tmp-step-00000001", stray, victim)
    save(run)
    assert os.listdir(run / "checkpoints") == ["step-00000001"]
    assert victim.read_bytes() == b"precious"


def test_a_stray_that_cannot_be_removed_is_passed_over(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run / "checkpoints").mkdir()
    (run / "checkpoints" / ".tmp-theirs").write_text("")
    unlink = Path.unlink

    def refused(path: Path, **options: bool) -> None:
        if path.name == ".tmp-theirs":
            raise PermissionError(1, "Operation not permitted")
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refused)
    save(run)
    found, troubles = load_newest(run / "checkpoints")
    assert (found and found.step, troubles) == (1, [])


def lay(path: Path, stray: str, victim: Path) -> None:
    if stray == "file":
        path.write_text("stray")
    elif stray == "folder":
        (path / "deeper").mkdir(parents=True)
    else:
        path.symlink_to(victim if stray == "link" else victim.parent)


def test_a_run_folder_may_be_a_link_as_a_whole(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    data = write_corpus(tmp_path / "data")
    train(small_recipe(data, steps=5), tmp_path / "run", ignore)
    assert (tmp_path / "disk" / "model.safetensors").is_file()


@pytest.mark.parametrize("name", [".lock", "metrics.jsonl"])
def test_a_fifo_in_place_of_a_file_is_refused_and_not_waited_for(name: str, run: Path) -> None:
    os.mkfifo(run / name)
    with pytest.raises(SaccadeError, match=rf"{name} is not a regular file|cannot write"):
        {".lock": lock, "metrics.jsonl": REFUSED["the log"][1]}[name](run)


def test_json_is_not_waited_for_either(run: Path) -> None:
    os.mkfifo(run / "config.json")
    with pytest.raises(CheckpointError, match="is not a regular file"):
        read_json(run / "config.json")


def test_without_a_byte_free_the_lock_holds(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with locked(run), pytest.raises(SaccadeError, match="is being trained by"), locked(run):
        pass


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_one_line(run: Path) -> None:
    (run / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(WriteError):
        Log(run / "metrics.jsonl", after=0).write(1, {})


def test_the_log_is_json_whatever_the_numbers_are(run: Path) -> None:
    values = {"loss": math.nan, "a": math.inf, "b": -math.inf, "c": 1.5}
    Log(run / "metrics.jsonl", after=0).write(1, values)
    kept = json.loads((run / "metrics.jsonl").read_text(), parse_constant=pytest.fail)
    assert kept == {"step": 1, "loss": None, "a": None, "b": None, "c": 1.5}
    assert finite({"x": torch.tensor(1.0).item()}) == {"x": 1.0}
