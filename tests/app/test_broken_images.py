"""D2 and D3 end to end: training on a folder of odd and broken images, as a user starts it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from saccade.app.cli import main
from saccade.data.files import journalled_files
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.train.recipe import Recipe, save_recipe
from saccade.train.settings import TrainSettings
from tests.data.images_made import picture, rows
from tests.data.images_odd import broken, odd

SIDE = 32
GOOD = {f"good {n}.png": picture(n, side=24) for n in range(6)}
Train = Callable[..., tuple[int, str]]


def row(name: str, *said: str) -> dict[str, object]:
    return {"file_name": name, "captions": said or ("A dog .", f"It is {name} .")}


def write_data(folder: Path, files: dict[str, bytes], *further: object) -> Path:
    """A folder of images that `train.jsonl` tells of, after a few good ones."""
    folder.mkdir()
    for name, raw in {**GOOD, **files}.items():
        (folder / name).write_bytes(raw)
    said = [row(name) for name in (*GOOD, *files)]
    (folder / "train.jsonl").write_bytes(rows(*said, *further))
    (folder / "valid.jsonl").write_bytes(rows(*said[:3]))
    return folder


def tiny(folder: Path) -> Path:
    path = folder / "tiny.toml"
    train = TrainSettings(steps=2, batch_tokens=200, validate_every=2, device="cpu")
    task = CaptioningSettings(image=SIDE)
    model = ShowAndTellConfig(width=16)
    made = Recipe(about="", system="", lecture="", model=model, task=task, train=train)
    path.write_text(save_recipe(made))
    return path


@pytest.fixture
def train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Train:
    """The command, as far as its exit code and what it printed."""
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "kept"))
    recipe = tiny(tmp_path)

    def command(data: Path, *options: str, out: str = "run") -> tuple[int, str]:
        arguments = ["train", str(recipe), "--data", str(data), "--out", str(tmp_path / out)]
        monkeypatch.setattr(sys, "argv", ["saccade", *arguments, *options])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        told = printed.out + printed.err
        assert "Traceback" not in told
        return int(end.value.code or 0), told

    return command


def test_odd_images_are_learnt_from(train: Train, tmp_path: Path) -> None:
    code, told = train(write_data(tmp_path / "data", odd()))
    assert code == 0, told
    assert f"{len(GOOD) + len(odd())} images" in told
    assert "bad" not in told


def test_images_are_kept_where_the_command_says(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_data(tmp_path / "data", {})
    code, told = train(data, "--cache", str(tmp_path / "trained"))
    assert code == 0, told
    arguments = ["eval", str(tmp_path / "run"), "--split", "valid", "--device", "cpu"]
    arguments += ["--cache", str(tmp_path / "scored")]
    monkeypatch.setattr(sys, "argv", ["saccade", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code
    assert len(list((tmp_path / "trained").glob("images-*/pixels"))) == 2
    assert len(list((tmp_path / "scored").glob("images-*/pixels"))) == 1
    assert not (tmp_path / "kept").exists()


def test_every_broken_image_is_named_with_its_row_and_training_stops(
    train: Train, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "data", {name: raw for name, (raw, _) in broken().items()})
    code, told = train(data)
    assert code == 2
    for line, (name, (_, begins)) in enumerate(broken().items(), start=len(GOOD) + 1):
        assert re.search(rf"train\.jsonl:{line}: {begins}[:;] ", told), name
    assert f"mend them, or pass --skip-bad {len(broken())} to leave them out" in told
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_as_many_as_are_allowed_are_left_out_and_counted(train: Train, tmp_path: Path) -> None:
    files = {name: raw for name, (raw, _) in broken().items()}
    data, many = write_data(tmp_path / "data", files, row("missing.png")), len(broken()) + 1
    code, told = train(data, "--skip-bad", str(many - 1))
    assert (code, "the first are:" in told) == (2, True)
    code, told = train(data, "--skip-bad", str(many), out="again")
    assert code == 0, told
    assert f"{len(GOOD)} images" in told
    assert f"{many} bad rows skipped (" in told
    assert "1 missing image" in told
    assert (tmp_path / "again" / "model.safetensors").exists()


D3: dict[str, tuple[object, str]] = {
    "climbs out": (row("../secret.png"), "outside the data"),
    "absolute": (row("/etc/passwd"), "outside the data"),
    "link out": (row("link.png"), "outside the data"),
    "no name": ({"captions": ["x"]}, "missing key"),
    "no caption": ({"file_name": "good 1.png"}, "missing key"),
    "twice": (row("good 0.png"), "duplicate file_name"),
    "a number": ({"file_name": 3, "captions": ["x"]}, "wrong type"),
    "captions of numbers": ({"file_name": "good 1.png", "captions": [1]}, "wrong type"),
    "nothing said": ({"file_name": "good 1.png", "captions": []}, "empty"),
    "not there": (row("nowhere.png"), "missing image"),
}


def test_every_fault_of_metadata_is_named_with_its_row(train: Train, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(picture(9))
    data = write_data(tmp_path / "data", {}, *(fault for fault, _ in D3.values()))
    (data / "link.png").symlink_to(tmp_path / "secret.png")
    code, told = train(data)
    assert code == 2
    for line, (name, (_, begins)) in enumerate(D3.items(), start=len(GOOD) + 1):
        assert re.search(rf"train\.jsonl:{line}: {begins}[:;] ", told), name
    code, told = train(data, "--skip-bad", str(len(D3)))
    assert code == 0, told
    assert f"{len(GOOD)} images" in told


def test_faults_of_coco_are_named_with_their_place(train: Train, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", {"cut.jpg": broken()["cut short.jpg"][0]})
    (data / "train.jsonl").unlink()
    names = [*GOOD, "cut.jpg", "nowhere.png", "../secret.png"]
    images = [{"id": n, "file_name": name} for n, name in enumerate(names)]
    said: list[dict[str, Any]] = [{"id": n, "image_id": n, "caption": "x"} for n in range(9)]
    said += [{"id": 3, "image_id": 0, "caption": "y"}, {"id": 10, "image_id": 77, "caption": "z"}]
    said += [{"id": 11, "image_id": float("nan"), "caption": "y"}, {"id": 12, "image_id": 1}]
    (data / "train.json").write_text(json.dumps({"images": images, "annotations": said}))
    code, told = train(data)
    assert code == 2
    assert "bad rows" in told
    code, told = train(data, "--skip-bad", "20")
    assert code == 0, told
    assert "6 images with 6 captions from train.json" in told


def test_a_folder_of_nothing_good_is_told_so(train: Train, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", {})
    for name in GOOD:
        (data / name).write_bytes(b"")
    code, told = train(data, "--skip-bad", "100")
    assert code == 2
    assert "not one row is good" in told


def moved_caption() -> list[dict[str, object]]:
    """The same captions in the same order, but one is said of the image before."""
    said = [row(name) for name in GOOD]
    said[2] = row("good 2.png", "A dog .")
    said[3] = row("good 3.png", "It is good 2.png .", "A dog .", "It is good 3.png .")
    return said


CHANGES: dict[str, tuple[bytes, list[dict[str, object]]]] = {
    "a pixel": (picture(99, side=24), [row(name) for name in GOOD]),
    "a caption": (GOOD["good 3.png"], [row(name, "A dog .", "It is here .") for name in GOOD]),
    "whose caption it is": (GOOD["good 3.png"], moved_caption()),
    "an image less": (GOOD["good 3.png"], [row(name) for name in GOOD][:-1]),
}


@pytest.mark.slow
def test_a_run_goes_on_with_the_same_images_only(train: Train, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", {})
    assert train(data)[0] == 0
    for name, raw in GOOD.items():  # written anew, with the same content: not a change
        (data / name).write_bytes(raw)
    code, told = train(data, "--train.steps", "3")
    assert code == 0, told
    assert "going on from step 2" in told
    for change, (third, said) in CHANGES.items():
        (data / "good 3.png").write_bytes(third)
        (data / "train.jsonl").write_bytes(rows(*said))
        code, told = train(data, "--train.steps", "4")
        assert code == 2, change
        assert f"the data of {tmp_path / 'run'} changed since step 3; bring the old back" in told


def test_a_full_disk_while_images_are_kept_is_one_line_and_leaves_nothing(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: Any) -> None:
        raise OSError(28, "No space left on device")

    data = write_data(tmp_path / "data", {})
    with monkeypatch.context() as patch:
        patch.setattr(journalled_files, "sync", full)
        code, told = train(data)
    assert code != 0
    need = len(GOOD) * 3 * SIDE**2
    assert f"No space left on device ({need:,} bytes needed" in told
    assert [path.suffix for path in (tmp_path / "kept").iterdir()] == [".lock"]
    assert train(data)[0] == 0


@pytest.mark.slow
def test_killed_while_images_are_kept_it_begins_again_to_the_same_numbers(
    train: Train, tmp_path: Path
) -> None:
    many = {f"{n}.png": picture(n, side=200) for n in range(150)}
    data = write_data(tmp_path / "data", many)
    kept, recipe = tmp_path / "kept", tmp_path / "tiny.toml"
    command = ["train", str(recipe), "--data", str(data), "--out", str(tmp_path / "run")]
    process = subprocess.Popen(
        [sys.executable, "-m", "saccade", *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", "SACCADE_CACHE": str(kept)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not list(kept.glob("*.tmp/journal.jsonl")):
            assert process.poll() is None
            time.sleep(0.005)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    left = list(kept.glob("*.tmp"))
    assert len(left) == 1
    code, told = train(data)
    assert code == 0, told
    assert not list(kept.glob("*.tmp"))
    shutil.rmtree(kept)
    assert train(data, out="never killed")[0] == 0
    weights = [tmp_path / name / "model.safetensors" for name in ("run", "never killed")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
