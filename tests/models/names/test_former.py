"""Runs whose parameters had other names when they were trained: they go on, and are used."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import saccade
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.names.former import FORMER, name_today, names_today
from saccade.models.names.pretrained import read_weights
from saccade.tasks.captioning import data as captioned
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.train.recipe import Recipe
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import HaltError, halt_at, ignore, same_run

BEFORE = {now: once for once, now in FORMER.items()}


def test_a_name_of_before_becomes_that_of_today() -> None:
    assert name_today("eye.encoder.stem.weight") == "image_encoder.encoder.stem.weight"
    assert name_today("picture.weight") == "project.weight"
    assert names_today({"eye": 1, "eyes.weight": 2, "to_eye.weight": 3}) == {
        "eye": 1,
        "eyes.weight": 2,
        "to_eye.weight": 3,
    }


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setattr(captioned, "HELD_BACK", 5)
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=ShowAndTellConfig(encoder="resnet-nano", stage=2, width=8),
        task=CaptioningSettings(scenes=12, image=32),
        train=TrainSettings(
            steps=4, batch_tokens=200, ema=0.9, validate_every=2, save_every=1, device="cpu"
        ),
    )


def test_a_run_of_before_goes_on_and_is_used(small: Recipe, tmp_path: Path) -> None:
    whole, halted = tmp_path / "whole", tmp_path / "halted"
    train(small, whole, ignore)
    with pytest.raises(HaltError):
        train(small, halted, halt_at(3))
    renamed = [_of_before(path) for path in halted.rglob("*.safetensors")]
    assert sum(renamed) >= 3, "nothing had another name"
    assert set(read_weights(halted / "model.safetensors")) == set(small.model.build().state_dict())
    saccade.load(halted)
    train(small, halted, ignore)
    assert [one for one in same_run(whole, halted) if not one.startswith("kept")] == []
    kept, ours = (read_weights(run / "model.safetensors") for run in (whole, halted))
    assert all(torch.equal(kept[name], ours[name]) for name in {**kept, **ours})


def test_weights_of_before_are_known_in_every_form(tmp_path: Path) -> None:
    """Of a script of one's own, and wrapped for several processes, too."""
    weight = torch.ones(2)
    torch.save({"eye.encoder.stem.weight": weight}, tmp_path / "a.pth")
    save_file({"module.eye.encoder.stem.weight": weight}, tmp_path / "b.safetensors")
    for name in ("a.pth", "b.safetensors"):
        assert set(read_weights(tmp_path / name)) == {"image_encoder.encoder.stem.weight"}


def _of_before(path: Path) -> bool:
    """Give tensors, and what the optimizer numbers, their names of before, as if written so."""
    once = {_before(name): tensor for name, tensor in load_file(path).items()}
    save_file(once, path)
    manifest, state = path.with_name("manifest.json"), path.with_name("state.json")
    if state.is_file():
        values = json.loads(state.read_text())
        values["parameters"] = [_before(name) for name in values["parameters"]]
        state.write_text(json.dumps(values))
        files = json.loads(manifest.read_text())
        digests = {one: hashlib.sha256(path.with_name(one).read_bytes()) for one in files}
        manifest.write_text(json.dumps({one: x.hexdigest() for one, x in digests.items()}))
    else:  # a run without a manifest is one of an earlier version
        manifest.unlink()
    return any(name.startswith(tuple(FORMER)) for name in once)


def _before(name: str) -> str:
    module, dot, rest = name.partition(".")
    return BEFORE.get(module + dot, module + dot) + rest
