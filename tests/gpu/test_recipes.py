"""Every recipe on the GPU: it trains, validates, is killed and goes on to the same bits, and is
used: eval, predict, look.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from saccade.app.cli import main
from saccade.data.shapes import ShapesSettings, render, scene
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.tasks.detection.data import DetectionSettings
from saccade.train.events import Update
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.storage.checkpoint import read_tensors
from tests.gpu.corpora import hurried

STEPS = 30
KILLED_AT = 17  # between two checkpoints


class KilledError(Exception):
    """Nothing after this update happens any more."""


def killed_at(step: int) -> Callable[[object], None]:
    def watch(event: object) -> None:
        if isinstance(event, Update) and event.step == step:
            raise KilledError

    return watch


def losses(run: Path) -> list[float]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row]


def trained(recipe: Recipe, run: Path) -> None:
    train(recipe, run, lambda event: None)


def command(*arguments: object) -> None:
    sys.argv = ["saccade", *map(str, arguments)]
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code, arguments


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_trains_resumes_and_is_used(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SACCADE_CACHE", str(tmp_path / "cache"))
    recipe = hurried(name, tmp_path / "data", steps=STEPS)
    if isinstance(recipe.task, DetectionSettings):
        pytest.importorskip("faster_coco_eval", reason="average precision needs it")
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    trained(recipe, whole)
    assert all(torch.tensor(losses(whole)).isfinite())
    with pytest.raises(KilledError):
        train(recipe, broken, killed_at(KILLED_AT))
    trained(recipe, broken)
    assert losses(broken) == losses(whole)
    ours, theirs = (read_tensors(run / "model.safetensors") for run in (whole, broken))
    assert all(torch.equal(ours[weight], theirs[weight]) for weight in ours)
    use(whole, recipe, tmp_path)
    assert "Traceback" not in capsys.readouterr().err


def use(run: Path, recipe: Recipe, folder: Path) -> None:
    split = "test" if recipe.task.data else "valid"
    command("eval", run, "--split", split, "--json")
    given = asked(run, recipe, folder)
    command("predict", run, *given, "--json")
    if not isinstance(recipe.model, DvaeConfig) and (
        looks(run) or recipe.task.budget_unit == "images"
    ):
        command("look", run, *given, "-o", folder / "look.html")
        assert (folder / "look.html").stat().st_size > 10_000


def asked(run: Path, recipe: Recipe, folder: Path) -> list[object]:
    """What a run of this recipe can be given."""
    text = "The ___ eats.\tIt eats." if reads_pairs(run) else "The ___ eats."
    if ".jpg" not in recipe.task.example:
        return [text]
    from PIL import Image

    image = folder / "given.png"
    Image.fromarray(render(scene("test", 3, ShapesSettings(size=64)), 64)).save(str(image))
    if recipe.task.budget_unit not in ("texts", "choices"):
        return [image]
    boxes = folder / "boxes.jsonl"
    boxes.write_text(json.dumps({"image": image.name, "boxes": [[4, 4, 30, 30]]}) + "\n")
    wanted = vars(recipe.model).get("regions") == "boxes"
    text = "a red ring\ta blue star" if recipe.task.budget_unit == "choices" else "a red ___"
    return [image, text, *(["--boxes", boxes] if wanted else [])]


def reads_pairs(run: Path) -> bool:
    from saccade.app.api import load

    return bool(getattr(getattr(load(run).tool, "labels", None), "pairs", False))


def looks(run: Path) -> bool:
    from saccade.app.api import load
    from saccade.attention.look.watching import sites

    return any(site.endswith(("cross", "self")) for site in sites(load(run).network))
