"""Detectors that start from weights of others."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from saccade.models.detection.detr import DetrConfig
from saccade.tasks.detection import data
from saccade.tasks.detection.data import DetectionSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.starting.start import adopted
from tests.models.detection.twins import SMALL, DetrTwins
from tests.train.small import train_noting

FEW = TrainSettings(
    steps=1, batch_tokens=4, warmup=1, validate_every=1, device="cpu", log_every=1, save_every=1
)


@pytest.fixture(autouse=True)
def _few_to_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "HELD_BACK", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A DETR of Hugging Face's, for three classes."""
    path = tmp_path_factory.mktemp("theirs")
    DetrTwins.built(replace(SMALL, queries=16)).theirs.float().save_pretrained(path)
    return path


def recipe(model: DetrConfig, init: Path | str = "") -> Recipe:
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=model,
        task=DetectionSettings(image=64, scenes=4),
        train=FEW,
        init=str(init),
    )


def told(asked: Recipe, folder: Path) -> str:
    """What the user is told of a training."""
    return "\n".join(train_noting(asked, folder / "run")[1])


def test_a_run_takes_sizes_and_all_weights_but_the_class_head(folder: Path, tmp_path: Path) -> None:
    asked = adopted(recipe(DetrConfig(), folder), tmp_path / "run")
    assert asked.model == replace(SMALL, queries=16, frozen=2)
    notes = told(asked, tmp_path)
    assert "2 of a new head, random at first (to_scores.weight: 4×16, not 9×16" in notes
    assert "missing" not in notes
    assert "not in the model" not in notes
    assert "sizes as there" in notes


@pytest.mark.slow
def test_what_fits_queries_that_are_boxes_is_taken_and_the_rest_told(
    folder: Path, tmp_path: Path
) -> None:
    boxed = replace(
        SMALL, anchored=True, proposed=True, box_bias=True, no_object=False, queries=16, groups=2
    )
    notes = told(recipe(boxed, folder), tmp_path)
    assert "of a new head, random at first (to_scores.weight: 4×16, not 8×16" in notes
    assert "missing (queries.weight, to_boxes.layers.0.weight" in notes
    assert "in the file but not in the model (bbox_predictor.layers.0.bias" in notes
    assert "anchored True, there False" in notes


def test_an_image_encoder_alone_starts_from_its_own_file(tmp_path: Path) -> None:
    torch.manual_seed(4)
    image_encoder = SMALL.build().get_submodule("image_encoder.encoder")
    torch.save(image_encoder.state_dict(), tmp_path / "encoder.pth")
    model = replace(SMALL, weights=str(tmp_path / "encoder.pth"), queries=16)
    notes = told(recipe(model), tmp_path)
    assert "encoder.pth: " in notes
    assert "missing" not in notes
