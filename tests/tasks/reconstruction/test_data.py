"""Images of any form are read; without a validation split some are held out."""

from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.errors import ConfigError, DataError
from saccade.tasks.reconstruction import data as reconstruction
from saccade.tasks.reconstruction.data import ReconstructionSettings, read_plain
from tests.data.images_made import picture


def folder_of(folder: Path, names: list[str]) -> Path:
    for number, name in enumerate(names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture(number))
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))


def settings(data: Path, **more: Any) -> ReconstructionSettings:
    return ReconstructionSettings(data=str(data), image=8, **more)


def test_a_plain_folder_is_parted_into_what_is_learnt_and_what_is_held_out(tmp_path: Path) -> None:
    data = folder_of(tmp_path / "photos", [f"{i:02}.png" for i in range(12)])
    train, valid = (read_plain(settings(data, held_out=0.25), s) for s in ("train", "valid"))
    assert (len(train), len(valid)) == (9, 3)
    assert valid.report == "3 held out for validation"
    assert train.report == "9 of 12 images from photos"
    names = [Path(row.image.name).name for row in (*train.rows, *valid.rows)]
    assert sorted(names) == [f"{i:02}.png" for i in range(12)]
    every = read_plain(settings(data), None)
    assert len(every) == 12
    assert every.images[torch.arange(2)].shape == (2, 3, 8, 8)


def test_folders_of_splits_are_the_splits(tmp_path: Path) -> None:
    names = ["train/cat/a.png", "train/dog/b.png", "val/cat/c.png", "test/d.png"]
    data = folder_of(tmp_path / "pets", names)
    sizes = {s: len(read_plain(settings(data), s)) for s in ("train", "valid", "test")}
    assert sizes == {"train": 2, "valid": 1, "test": 1}


def test_what_cannot_be_held_out_is_told_in_one_line(tmp_path: Path) -> None:
    data = folder_of(tmp_path / "photos", ["a.png", "b.png"])
    with pytest.raises(DataError, match=r"too few to hold some out .* a larger --held-out"):
        read_plain(settings(data), "valid")
    with pytest.raises(DataError, match=r"held_out=0, .* give one, or --held-out 0\.05"):
        read_plain(settings(data, held_out=0.0), "valid")


def test_damaged_images_stop_unless_they_may_be_skipped(tmp_path: Path) -> None:
    data = folder_of(tmp_path / "photos", [f"{i}.png" for i in range(5)])
    (data / "2.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="--skip-bad 1 to leave them out"):
        read_plain(settings(data), None)
    assert len(read_plain(settings(data, skip_bad=1), None)) == 4


def test_shapes_have_their_splits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconstruction, "HELD_BACK", 3)
    some = ReconstructionSettings(scenes=5, image=32)
    assert [len(read_plain(some, s)) for s in ("train", "valid", "many")] == [5, 3, 3]
    assert read_plain(some, "valid").report == "3 scenes of shapes, split valid"
    with pytest.raises(DataError, match="shapes has no split 'tset'"):
        read_plain(some, "tset")


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "image": ({"image": 0}, "image=0 must be at least 1"),
    "beta": ({"beta": -1.0}, r"beta=-1\.0 must be 0 or more"),
    "rise": ({"beta_batches": -1}, "beta_batches=-1 must be 0 or more"),
    "fall": ({"cool_batches": -5}, "cool_batches=-5 must be 0 or more"),
    "cold": ({"temperature": 0.0}, r"temperature=0\.0 must be above 0 and at most 1"),
    "hot": ({"temperature": 2.0}, r"temperature=2\.0 must be above 0 and at most 1"),
    "no number": ({"beta": float("nan")}, "beta=nan must be 0 or more"),
    "held out": ({"held_out": 1.0}, r"held_out=1\.0 must be at least 0 and below 1"),
}


@pytest.mark.parametrize("which", WRONG)
def test_settings_that_cannot_be_are_refused_in_one_line(which: str) -> None:
    fields, message = WRONG[which]
    with pytest.raises(ConfigError, match=message) as raised:
        ReconstructionSettings(**fields)
    assert "\n" not in str(raised.value)
