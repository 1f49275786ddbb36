"""A checkpoint is whole or it is not there; damage is named, and never loaded."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from saccade.errors import CheckpointError, WriteError
from saccade.train.storage import checkpoint as module
from saccade.train.storage.checkpoint import (
    Checkpoint,
    load_checkpoint,
    load_newest,
    save_checkpoint,
)

FILES = ("model.safetensors", "optimizer.safetensors", "state.json", "manifest.json")


def some(step: int, *, width: int = 4) -> Checkpoint:
    weight = torch.randn(3, width, generator=torch.Generator().manual_seed(step))
    tensors = {"model": {"weight": weight}, "optimizer": {"0.step": torch.tensor(float(step))}}
    return Checkpoint(step, tensors, {"best": {}, "stale": step})


def steps(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in folder.glob("step-*"))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    for step in (10, 20):
        save_checkpoint(tmp_path, some(step), keep=2)
    return tmp_path


def test_save_then_load_is_the_identity(tmp_path: Path) -> None:
    saved = some(7)
    loaded = load_checkpoint(save_checkpoint(tmp_path, saved, keep=1))
    assert loaded.step == 7
    assert loaded.state == {**saved.state, "step": 7}
    assert loaded.tensors.keys() == saved.tensors.keys()
    for part, tensors in saved.tensors.items():
        for name, tensor in tensors.items():
            assert loaded.tensors[part][name].equal(tensor)
            assert loaded.tensors[part][name].dtype == tensor.dtype


@pytest.mark.slow
@settings(max_examples=15)
@given(keep=st.integers(1, 5), count=st.integers(1, 7))
def test_the_newest_are_kept(keep: int, count: int, tmp_path_factory: Any) -> None:
    folder = tmp_path_factory.mktemp("kept")
    for step in range(1, count + 1):
        save_checkpoint(folder, some(step), keep=keep)
    assert steps(folder) == list(range(max(1, count - keep + 1), count + 1))


def test_nothing_saved_yet_is_no_error(tmp_path: Path) -> None:
    assert load_newest(tmp_path / "checkpoints") == (None, [])


def test_what_a_kill_left_half_written_is_no_checkpoint_and_goes_with_the_next(two: Path) -> None:
    shutil.copytree(two / "step-00000020", two / ".tmp-step-00000030")
    found, troubles = load_newest(two)
    assert (found and found.step, troubles) == (20, [])
    save_checkpoint(two, some(40), keep=2)
    assert not list(two.glob(".tmp-*"))


@pytest.mark.parametrize("keep", [1, 2])
def test_at_every_instant_there_is_a_good_checkpoint(
    keep: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def spied(act: Callable[..., Any]) -> Callable[..., Any]:
        def act_between_looks(*arguments: Any, **options: Any) -> Any:
            seen.append(newest())
            done = act(*arguments, **options)
            seen.append(newest())
            return done

        return act_between_looks

    def newest() -> int:
        found, _ = load_newest(tmp_path)
        return found.step if found else 0

    save_checkpoint(tmp_path, some(1), keep=keep)
    remove = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", spied(remove))
    monkeypatch.setattr(module, "write_synced", spied(module.write_synced))
    monkeypatch.setattr(module, "sync_folder", spied(module.sync_folder))
    for step in (2, 3, 4):
        save_checkpoint(tmp_path, some(step), keep=keep)
    assert set(seen) == {1, 2, 3, 4}
    assert seen == sorted(seen)


@pytest.mark.parametrize("keep", [1, 2])
def test_a_damaged_newest_does_not_crowd_out_what_is_saved_after_it(keep: int, two: Path) -> None:
    (two / "step-00000020" / "state.json").unlink()
    save_checkpoint(two, some(15), keep=keep)
    found, troubles = load_newest(two)
    assert (found and found.step, troubles) == (15, [])
    save_checkpoint(two, some(20), keep=keep)
    assert load_checkpoint(two / "step-00000020").state["stale"] == 20


def cut(share: float) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        os.truncate(path, int(path.stat().st_size * share))

    return damage


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_a_cut_file_is_named_and_the_one_before_is_taken(
    name: str, share: float, two: Path
) -> None:
    cut(share)(two / "step-00000020" / name)
    found, (trouble,) = load_newest(two)
    assert found is not None
    assert found.step == 10
    assert str(two / "step-00000020" / name) in trouble


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named_and_the_one_before_is_taken(name: str, two: Path) -> None:
    (two / "step-00000020" / name).unlink()
    found, (trouble,) = load_newest(two)
    assert found is not None
    assert found.step == 10
    assert f"{two / 'step-00000020' / name} is missing" in trouble


def test_an_empty_folder_is_passed_over(two: Path) -> None:
    (two / "step-00000030").mkdir()
    found, (trouble,) = load_newest(two)
    assert (found and found.step) == 20
    assert "step-00000030/manifest.json is missing" in trouble


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(name=st.sampled_from(FILES), where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_no_flipped_bit_goes_unnoticed(name: str, where: float, bit: int, two: Path) -> None:
    path = two / "step-00000020" / name
    sound = path.read_bytes()
    damaged = bytearray(sound)
    damaged[int(len(sound) * where)] ^= 1 << bit
    path.write_bytes(damaged)
    try:
        found, (trouble,) = load_newest(two)
    finally:
        path.write_bytes(sound)
    assert found is not None
    assert found.step == 10
    assert "step-00000020" in trouble


def test_if_none_is_good_all_are_named_and_nothing_starts_anew(two: Path) -> None:
    for path in two.glob("step-*/model.safetensors"):
        cut(0.5)(path)
    with pytest.raises(CheckpointError, match="no checkpoint under") as raised:
        load_newest(two)
    for step in (10, 20):
        assert f"step-000000{step}/model.safetensors is damaged" in str(raised.value)
    assert "--out" in str(raised.value)


@pytest.mark.parametrize("name", ["../../outside.json", "/etc/passwd", "..", ""])
def test_a_manifest_cannot_point_out_of_its_folder(name: str, two: Path) -> None:
    (two.parent / "outside.json").write_text("{}")
    path = two / "step-00000020" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: "0"}))
    with pytest.raises(CheckpointError, match="is missing"):
        load_checkpoint(path.parent)


@pytest.mark.parametrize("content", ["[]", "{}", '{"step": "20"}', '{"step": null}', "20"])
def test_a_state_without_a_step_is_refused_even_if_its_digest_is_right(
    content: str, two: Path
) -> None:
    folder = two / "step-00000020"
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "state.json").write_text(content)
    manifest["state.json"] = hashlib.sha256(content.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"state\.json does not say which step"):
        load_checkpoint(folder)


FORGED: list[tuple[str, Any]] = [
    *[("step", wrong) for wrong in (-20, 21, 20.0, True, 10**400, "20")],
    *[
        (name, wrong)
        for name in ("best_step", "stale", "skipped")
        for wrong in (-1, 21, 2.5, True, "3", None, 10**400, [], {})
    ],
    *[("best", wrong) for wrong in ([], 3, "x", {"loss": "low"}, {"loss": [1]}, {"loss": 10**400})],
    *[("best_loss", wrong) for wrong in ("low", [], 10**400)],
    *[("seen", wrong) for wrong in (-1, 2.5, True, "3", 10**400)],
    *[("deciding", wrong) for wrong in ("top1", {"figure": "top1"}, {"figure": 1, "label": 2})],
]


@pytest.mark.parametrize(("name", "value"), FORGED)
def test_a_forged_field_is_refused_even_if_its_digest_is_right(
    name: str, value: Any, two: Path
) -> None:
    folder = two / "step-00000020"
    content = json.dumps({**json.loads((folder / "state.json").read_text()), name: value})
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "state.json").write_text(content)
    manifest["state.json"] = hashlib.sha256(content.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    found, (trouble,) = load_newest(two)
    assert (found and found.step) == 10
    assert "step-00000020/state.json" in trouble


@pytest.mark.parametrize("failing", range(4))
def test_a_full_disk_leaves_the_earlier_checkpoints_as_they_were(
    failing: int, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = module.write_synced, [0]

    def full(path: Path, content: bytes) -> None:
        written[0] += 1
        if written[0] > failing:
            write(path, content[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)

    monkeypatch.setattr(module, "write_synced", full)
    with pytest.raises(WriteError) as raised:
        save_checkpoint(two, some(30), keep=1)
    message = str(raised.value)
    assert "\n" not in message
    assert str(two / ".tmp-step-00000030") in message
    assert "No space left on device" in message
    assert "bytes needed" in message
    assert "free" in message
    assert raised.value.exit_code == 1
    assert not list(two.glob(".tmp-*"))
    assert steps(two) == [10, 20]
    assert load_checkpoint(two / "step-00000020").step == 20


@pytest.fixture
def little_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a quarter of a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"may not mount a disk here: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full_leaves_the_earlier_checkpoint_whole(little_disk: Path) -> None:
    save_checkpoint(little_disk, some(1, width=8000), keep=1)  # 96 kB, and 96 more do fit
    save_checkpoint(little_disk, some(2, width=8000), keep=1)
    with pytest.raises(WriteError, match=r"No space left.*\([\d,]+ bytes needed, [\d,]+ free\)"):
        save_checkpoint(little_disk, some(3, width=20_000), keep=1)
    assert steps(little_disk) == [2]
    assert not list(little_disk.glob(".tmp-*"))
    assert load_checkpoint(little_disk / "step-00000002").step == 2
