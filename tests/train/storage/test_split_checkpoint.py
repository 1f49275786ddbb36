"""Checkpoints in parts are whole or not there, and nothing in them is believed unchecked."""

import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from saccade.errors import CheckpointError, WriteError
from saccade.train.devices.distributed import World, alone
from saccade.train.storage import split_checkpoint
from saccade.train.storage.checkpoint import Checkpoint, load_checkpoint, load_newest
from saccade.train.storage.manifest import MANIFEST
from saccade.train.storage.split_checkpoint import SplitSaver

PART = "shard-00001-model-00001-of-00001.safetensors"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with alone(torch.device("cpu")) as world:
        yield world


def some(step: int) -> Checkpoint:
    mesh = init_device_mesh("cpu", (1,))
    weight = distribute_tensor(torch.arange(6.0).view(3, 2) + step, mesh, [Shard(0)])
    tensors: dict[str, dict[str, Tensor]] = {
        "model": {"a.weight": weight, "mean": torch.ones(2)},
        "optimizer": {"0.step": torch.tensor(float(step)), "0.exp_avg": weight / 2},
    }
    return Checkpoint(step, tensors, {"stale": 0})


@pytest.fixture
def saved(tmp_path: Path, world: World) -> Path:
    saver = SplitSaver(tmp_path / "run", world, keep=2)
    for step in (1, 2, 3):
        saver.save(lambda step=step: some(step))
    saver.finish()
    return tmp_path / "run"


def test_what_is_read_is_what_was_written(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == ["step-00000002", "step-00000003"]
    found, troubles = load_newest(saved)
    assert found is not None
    assert (found.step, troubles, found.state["stale"]) == (3, [], 0)
    assert found.tensors["model"]["a.weight"].equal(torch.arange(6.0).view(3, 2) + 3)
    assert found.tensors["model"]["mean"].equal(torch.ones(2))
    assert found.tensors["optimizer"]["0.step"].equal(torch.tensor(3.0))
    names = sorted(path.name for path in (saved / "step-00000003").iterdir())
    assert names == [MANIFEST, PART, "state.json"]


def test_training_goes_on_while_it_is_written(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    hashed = split_checkpoint.sha256

    def slow(path: Path) -> str:
        assert go_on.wait(10)
        return hashed(path)

    monkeypatch.setattr(split_checkpoint, "sha256", slow)
    saver, checkpoint = SplitSaver(tmp_path, world, keep=1), some(1)
    saver.save(lambda: checkpoint)
    checkpoint.tensors["model"]["a.weight"].zero_()  # as the next update would change it
    assert [path.name for path in tmp_path.iterdir()] == [".tmp-step-00000001"]
    go_on.set()
    saver.finish()
    found, _ = load_newest(tmp_path)
    assert found is not None
    assert found.tensors["model"]["a.weight"].equal(torch.arange(6.0).view(3, 2) + 1)


def test_a_part_that_cannot_be_written_leaves_the_checkpoint_before(
    saved: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    saver = SplitSaver(saved, world, keep=2)
    monkeypatch.setattr(split_checkpoint.HuggingFaceStorageWriter, "write_data", full)
    saver.save(lambda: some(4))
    with pytest.raises(WriteError, match=r"cannot write .*No space left .*; earlier .* unharmed"):
        saver.finish()
    found, troubles = load_newest(saved)
    assert found is not None
    assert (found.step, troubles) == (3, [])


def test_a_flipped_byte_is_found(saved: Path) -> None:
    part = saved / "step-00000003" / PART
    content = bytearray(part.read_bytes())
    content[-1] ^= 1
    part.write_bytes(content)
    found, (trouble,) = load_newest(saved)
    assert found is not None
    assert found.step == 2
    assert "is damaged: its content is not what was written" in trouble


def test_a_file_that_is_not_listed_is_not_read(saved: Path) -> None:
    newest = saved / "step-00000003"
    save_file({"model/a.weight": torch.zeros(3, 2)}, newest / "shard-00009-x.safetensors")
    with pytest.raises(CheckpointError, match=r"shard-00009-x\.safetensors is not in manifest"):
        load_checkpoint(newest)


def test_nothing_in_it_is_unpickled(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, never)
    assert load_checkpoint(saved / "step-00000003").step == 3


def forge(folder: Path, offsets: dict[str, Any]) -> None:
    """Other places for the parts, with digests that are right."""
    part = folder / PART
    with safe_open(part, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        told = json.loads(file.metadata()["DCP_SHARDING_INFO"])
    for name, offset in offsets.items():
        told[name]["saved_offsets"] = offset
    save_file(tensors, part, {"DCP_SHARDING_INFO": json.dumps(told)})
    listed = json.loads((folder / MANIFEST).read_text())
    listed[PART] = split_checkpoint.sha256(part)
    (folder / MANIFEST).write_text(json.dumps(listed))


@pytest.mark.parametrize(
    "offset", [[1, 0], [1 << 60, 0], [0, 1 << 40], [-1, 0], [0], "x", None, [0.5, 0]]
)
def test_parts_that_leave_room_between_them_are_refused(offset: Any, saved: Path) -> None:
    forge(saved / "step-00000003", {"model/a.weight": offset})
    with pytest.raises(CheckpointError, match="step-00000003 does not hold all parts") as raised:
        load_checkpoint(saved / "step-00000003")
    assert "\n" not in str(raised.value)


def test_what_is_forged_as_it_was_is_read(saved: Path) -> None:
    forge(saved / "step-00000003", {"model/a.weight": [0, 0]})
    assert load_checkpoint(saved / "step-00000003").step == 3
