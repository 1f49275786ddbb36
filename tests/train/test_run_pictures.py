"""Runs that learn from pictures: published weights to start from, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from saccade.errors import ConfigError
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.vision.resnet import PRESETS
from saccade.tasks.captioning import data as captioned
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import HaltError, halt_at, hashes, ignore, train_noting


@pytest.fixture(autouse=True)
def _few_to_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captioned, "HELD_BACK", 5)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    torch.manual_seed(7)
    weights = replace(PRESETS["resnet-nano"], classes=0).build().state_dict()
    path = tmp_path / "published.safetensors"
    save_file({name: x.contiguous() for name, x in weights.items()}, path)
    return path


def recipe(weights: Path) -> Recipe:
    config = {"encoder": "resnet-nano", "stage": 2, "weights": str(weights), "frozen": True}
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=ShowAndTellConfig(**config, width=8),
        task=CaptioningSettings(scenes=12, image=32),
        train=TrainSettings(
            steps=4, batch_tokens=200, ema=0.9, validate_every=2, save_every=1, device="cpu"
        ),
    )


def test_shapes_are_not_mirrored_for_their_captions_say_left_and_right(tmp_path: Path) -> None:
    for name in ("show-and-tell-photos", "vit-captioner-photos"):
        with pytest.raises(ConfigError, match=r"^augment=flip mirrors images.*--augment none$"):
            train(RECIPES[name], tmp_path / name, ignore)


def test_covering_is_refused_where_looks_are_not_shown_before_anything_is_drawn(
    tmp_path: Path,
) -> None:
    told: list[object] = []
    asked = replace(RECIPES["cnn-transformer"], task=CaptioningSettings(cover=1.0))
    with pytest.raises(ConfigError, match=r"^cover=1\.0 needs a model that shows.*leave it at 0$"):
        train(asked, tmp_path / "run", told.append)
    assert told == []


def test_a_frozen_encoder_is_kept_as_it_was_published(published: Path, tmp_path: Path) -> None:
    _, notes = train_noting(recipe(published), tmp_path / "run")
    kept = load_file(tmp_path / "run" / "model.safetensors")
    theirs = load_file(published)
    mine = {
        name.removeprefix("image_encoder.encoder."): x
        for name, x in kept.items()
        if "encoder" in name
    }
    mine = {name: x for name, x in mine.items() if "num_batches_tracked" not in name}
    assert len(mine) > 20
    for name, tensor in mine.items():
        assert tensor.equal(theirs[name]), name
    assert any(f"{len(mine)} of {len(mine)} tensors loaded" in note for note in notes)


def test_a_run_that_goes_on_needs_the_published_file_no_more(
    published: Path, tmp_path: Path
) -> None:
    train(recipe(published), tmp_path / "whole", ignore)
    with pytest.raises(HaltError):
        train(recipe(published), tmp_path / "halted", halt_at(3))
    published.unlink()
    train(recipe(published), tmp_path / "halted", ignore)
    assert hashes(tmp_path / "halted") == hashes(tmp_path / "whole")
