"""Runs whose regions a detector finds, and whose encoder stays as it is: both are asked once."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.data import shapes
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.tasks import KINDS
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.task import ASSET
from saccade.tasks.joint import detected
from saccade.tasks.joint.pretraining import JointPretrainingSettings
from saccade.train.recipe import Recipe
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.app.look.detectors import PLAIN_DETR
from tests.tasks.joint.made import TINY, user_captions
from tests.train.small import HaltError, halt_at, hashes, ignore, losses, train_noting

TRAIN = TrainSettings(
    steps=6, batch_tokens=20, warmup=0, ema=0.9, validate_every=3, save_every=1, device="cpu"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(KINDS, "joint", JointPretrainingSettings)
    return tmp_path / "cache"


@pytest.fixture
def detr(tmp_path: Path) -> Path:
    """A detector that is sure of something."""
    task = DetectionSettings(image=32)
    torch.manual_seed(0)
    network = PLAIN_DETR.build()
    with torch.no_grad():
        network.get_parameter("to_scores.weight").mul_(30)
    run = RunFolder(tmp_path / "runs" / "detr")
    run.path.mkdir(parents=True)
    run.save_recipe(
        Recipe(about="", system="", lecture="", model=PLAIN_DETR, task=task, train=TRAIN)
    )
    run.save_assets({ASSET: json.dumps({"names": shapes.KINDS}).encode()})
    run.save_weights(network)
    return run.path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """How often the detector was asked, and how often an encoder looked."""
    times, find, grid = {"detector": 0, "encoder": 0}, detected.find_regions, ImageEncoder.grid

    def counted(*given: Any) -> Any:
        times["detector"] += 1
        return find(*given)

    def looked(self: ImageEncoder, *given: Any) -> Any:
        times["encoder"] += 1
        return grid(self, *given)

    monkeypatch.setattr(detected, "find_regions", counted)
    monkeypatch.setattr(ImageEncoder, "grid", looked)
    return times  # type: ignore[return-value]


def recipe(tmp_path: Path, detr: Path) -> Recipe:
    data = tmp_path / "data"
    if not data.exists():
        user_captions(data)
    task = JointPretrainingSettings(data=str(data), image=32, detector=str(detr))
    model = replace(TINY, frozen=True, dropout=0.1)
    return Recipe(about="small", system="", lecture="", model=model, task=task, train=TRAIN)


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_and_asks_nobody_again(
    tmp_path: Path, detr: Path, asked: dict[str, int]
) -> None:
    whole = tmp_path / "runs" / "whole"
    _, notes = train_noting(recipe(tmp_path, detr), whole)
    once = dict(asked)
    assert once["detector"] == 4  # 22 and 2 images, 8 at a time
    assert "the image encoder stays as it is, and has looked at 24 images once" in notes
    halves = tmp_path / "runs" / "halves"
    with pytest.raises(HaltError):
        train(recipe(tmp_path, detr), halves, halt_at(4))
    train(recipe(tmp_path, detr), halves, ignore)
    assert asked == once
    assert hashes(halves) == hashes(whole)
    assert losses(halves) == losses(whole)


@pytest.mark.slow
def test_and_computes_the_same_where_all_that_was_kept_is_gone(
    tmp_path: Path, detr: Path, cache: Path
) -> None:
    whole, halves = tmp_path / "runs" / "whole", tmp_path / "runs" / "halves"
    train(recipe(tmp_path, detr), whole, ignore)
    with pytest.raises(HaltError):
        train(recipe(tmp_path, detr), halves, halt_at(4))
    shutil.rmtree(cache)
    train(recipe(tmp_path, detr), halves, ignore)
    assert hashes(halves) == hashes(whole)


@pytest.mark.slow
def test_detectors_that_are_none_are_refused_in_a_line(tmp_path: Path, detr: Path) -> None:
    nowhere = tmp_path / "nowhere"
    with pytest.raises(ConfigError) as raised:
        train(recipe(tmp_path, nowhere), tmp_path / "runs" / "a", ignore)
    assert str(raised.value).startswith(f"--detector: there is no run at {nowhere};")
    other = tmp_path / "runs" / "joint"
    train(recipe(tmp_path, detr), other, ignore)
    with pytest.raises(ConfigError) as raised:
        train(recipe(tmp_path, other), tmp_path / "runs" / "b", ignore)
    assert str(raised.value) == (
        f"--detector: {other} finds no objects; name a run that does, such as DETR's"
    )
