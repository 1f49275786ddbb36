"""Classifiers exported for timm: it loads the folder and gives the same scores."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.app.export.make import export_run
from saccade.models import preset
from tests.app.export.classifier_runs import FAMILIES, epsilons, write_run

PUBLISHED = (
    *("resnet-50", "mobilenet-v2", "vit-s-16", "vit-b-32", "deit3-s-16", "swin-t", "swin-s"),
    *("mvitv2-t", "mvitv2-s", "convnext-t", "convnext-s"),
)
SIZES: dict[str, tuple[Any, int]] = {
    **{name: one for name, one in FAMILIES.items() if name != "resnet-50"},
    **{f"published {name}": (replace(preset(name), classes=5), 224) for name in PUBLISHED},  # type: ignore[call-arg]
}
timm = pytest.importorskip("timm")


@pytest.mark.parametrize("name", SIZES)
@torch.no_grad()
def test_timm_loads_the_folder_and_gives_the_same_scores(name: str, tmp_path: Path) -> None:
    config, side = SIZES[name]
    run, ours = write_run(tmp_path / "run", config, side)
    folder, _ = export_run(run, "timm")
    theirs = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
    image = torch.randn(2, 3, side, side)
    torch.testing.assert_close(theirs(image), ours(image), atol=1e-5, rtol=1e-5)
    assert epsilons(theirs) == epsilons(ours)
    assert timm.data.resolve_model_data_config(theirs)["input_size"] == [3, side, side]
