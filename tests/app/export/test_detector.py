"""Detectors in transformers: the same scores and boxes there, or one line that says why not."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForObjectDetection, DetrForObjectDetection

from saccade.app.export.detector import EXPORTS
from saccade.app.kinds.base import LoadedRun
from saccade.errors import ConfigError, RunError
from saccade.models.detection.detr import DetrConfig
from saccade.models.names.described import described
from saccade.models.names.pretrained import load_pretrained
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.detector import ObjectDetector
from saccade.tasks.detection.matching import Weights
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.marks import one_fast
from tests.models.detection.twins import SMALL, shaken

NAMES = ["élan", "b", "c\x1b[31m"]
TASK = DetectionSettings(image=96, weights=Weights(overlap=3.0))
MODELS: dict[str, DetrConfig] = {
    "plain": replace(SMALL, frozen_norms=False, dropout=0.1),
    "bottlenecks": replace(SMALL, encoder="resnet-50", frozen=2),
    "an earlier stage": replace(SMALL, stage=4),
    "groups": replace(SMALL, groups=3),
    "no encoder": replace(SMALL, encoder_depth=0),
}


def written(folder: Path, config: DetrConfig, names: list[str] = NAMES) -> LoadedRun:
    """A run as training would leave it, with random weights."""
    torch.manual_seed(1)
    model = shaken(config.build(), 1).eval()
    recipe = Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=config,
        task=TASK,
        train=TrainSettings(steps=1),
    )
    folder.mkdir()
    run = RunFolder(folder)
    run.save_recipe(recipe)
    run.save_assets({"classes.json": json.dumps({"names": names}).encode()})
    return LoadedRun(run, recipe, model)


def exported(tmp_path: Path, config: DetrConfig) -> tuple[Any, Path]:
    run, folder = written(tmp_path / "run", config), tmp_path / "export"
    folder.mkdir()
    exporter = EXPORTS["huggingface"]
    exporter.check(run.recipe)
    readme = exporter.fill(run, folder, "float32")
    assert "AutoModelForObjectDetection" in readme
    assert "96 × 96" in readme
    return run.network, folder


@pytest.mark.parametrize("name", one_fast(MODELS))
@torch.no_grad()
def test_transformers_load_the_folder_and_give_the_same(name: str, tmp_path: Path) -> None:
    ours, folder = exported(tmp_path, MODELS[name])
    kind: Any = DetrForObjectDetection
    theirs, how = kind.from_pretrained(folder, output_loading_info=True)
    assert not any(how.values())
    x = torch.randn(2, 3, 96, 96)
    found, expected = theirs.eval()(x), ours(x)
    torch.testing.assert_close(found.logits, expected.scores[-1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.pred_boxes, expected.boxes[-1], atol=1e-5, rtol=1e-5)
    assert expected.scores.std() > 0.01
    assert [theirs.config.id2label[number] for number in range(3)] == NAMES
    assert theirs.config.giou_loss_coefficient == theirs.config.giou_cost == 3


@torch.no_grad()
def test_out_and_in_again_is_the_same_model(tmp_path: Path) -> None:
    ours, folder = exported(tmp_path, replace(SMALL, frozen=2))
    config = described(folder)
    assert config == replace(SMALL, frozen=2)
    assert config is not None
    again = config.build().eval()
    assert load_pretrained(again, folder).complete
    x = torch.randn(1, 3, 96, 96)
    assert torch.equal(again(x).boxes, ours(x).boxes)


@torch.no_grad()
def test_the_processor_squeezes_as_we_do_and_tells_where_objects_are(tmp_path: Path) -> None:
    ours, folder = exported(tmp_path, SMALL)
    theirs = AutoModelForObjectDetection.from_pretrained(folder).eval()
    processor = AutoImageProcessor.from_pretrained(folder)
    y, x = np.mgrid[0:80, 0:200]
    waves = [127 + 120 * np.sin(x / (9 + 3 * c) + y / (14 - c)) for c in range(3)]
    image = Image.fromarray(np.stack(waves, -1).astype(np.uint8))
    given = processor(image, return_tensors="pt")
    tool = ObjectDetector(ours, NAMES, TASK)
    shown = tool.shown(tool.prepare(image)[None])
    assert given.pixel_values.shape == shown.shape
    assert (given.pixel_values - shown).abs().max() < 0.05  # of a range of four
    (best,) = processor.post_process_object_detection(
        theirs(**given), threshold=0.0, target_sizes=[(80, 200)]
    )
    (expected,) = tool.detect(tool.prepare(image)[None], threshold=0.0)
    first = int(best["scores"].argmax())
    box = best["boxes"][first] / torch.tensor([200.0, 80, 200, 80])
    torch.testing.assert_close(box.clamp(0, 1), torch.tensor(expected[0].box), atol=0.01, rtol=0.0)
    assert NAMES[int(best["labels"][first])] == expected[0].label


INSTEAD = "use the run itself, or train a plain one as detr-r50 is"
REFUSED: dict[str, tuple[DetrConfig, str]] = {
    "boxes": (
        replace(SMALL, anchored=True, no_object=False),
        f"detr with anchored=True (its queries are no boxes that each layer mends); {INSTEAD}",
    ),
    "scores": (
        replace(SMALL, no_object=False),
        f"detr with no_object=False (there nothing is a class of its own); {INSTEAD}",
    ),
    "two stages": (
        replace(SMALL, finer=4),
        f"detr with finer=4 (it reads one stage alone); {INSTEAD}",
    ),
    "the stem": (
        replace(SMALL, stage=1),
        f"detr with stage=1 (its first is our second); {INSTEAD}",
    ),
    "dilated": (
        replace(SMALL, encoder="resnet-50-dilated"),
        "detr with encoder=resnet-50-dilated (its own ResNets are not dilated); " + INSTEAD,
    ),
    "another": (
        replace(SMALL, encoder="convnext-t"),
        "detr with encoder=convnext-t (only a ResNet as published gives the same grid there); "
        + INSTEAD,
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_counterpart_is_refused_in_a_line(case: str, tmp_path: Path) -> None:
    config, says = REFUSED[case]
    with torch.device("meta"):
        run = written(tmp_path / "run", SMALL)
    with pytest.raises(ConfigError) as error:
        EXPORTS["huggingface"].check(replace(run.recipe, model=config))
    assert str(error.value) == f"transformers has no {says}"


def test_names_of_another_run_are_refused(tmp_path: Path) -> None:
    run = written(tmp_path / "run", SMALL, ["one", "two"])
    with pytest.raises(RunError, match=r"names 2 classes, and the model tells 3 apart"):
        EXPORTS["huggingface"].fill(run, tmp_path, "float32")
