"""What a GPU replays is what it would compute step by step: updates and decoding."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saccade.app.api import load
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from tests.gpu.corpora import hurried
from tests.gpu.test_recipes import losses

pytestmark = pytest.mark.xdist_group("captured")  # they share trained runs
SHAPES = ("show-and-tell", "show-attend-tell", "show-attend-tell-hard", "cnn-transformer")
PHOTOS = ("show-attend-tell-photos", "cnn-transformer-photos")  # bf16, mirrored, five captions
CAPTIONERS = (*SHAPES, "vit-captioner", "equalizer", *PHOTOS)
DETECTORS = ("detr", "detr-few-images")
WORDS = ("transformer", "transformer-multi30k", "gpt", "gpt-shakespeare")
VILBERT = ("vilbert", "vilbert-questions", "vilbert-referring", "vilbert-choices")
JOINT = (*VILBERT, "vilbert-retrieval-photos")
MATCHING = ("clip", "clip-photos")
CODES = ("dvae", "dvae-photos", "dalle")  # of which a temperature changes between updates
UPDATES = (*WORDS, *CAPTIONERS, *DETECTORS, *JOINT, *MATCHING, *CODES)
TEXTS = ["The dog eats.", "She does not buy the old house in Paris.", "We sleep."] * 20


@pytest.mark.parametrize("name", UPDATES)
def test_captured_updates_are_the_plain_ones(name: str, tmp_path: Path) -> None:
    if name in DETECTORS:
        pytest.importorskip("faster_coco_eval", reason="average precision needs it")
    recipe = hurried(name, tmp_path / "data", steps=12)
    for capture in (True, False):
        chosen, heard = replace(recipe, train=replace(recipe.train, capture=capture)), list[Any]()
        train(chosen, tmp_path / str(capture), heard.append)
        if name in CAPTIONERS:  # whose batches are filled up to few shapes
            assert any("capturing the step" in str(event) for event in heard) == capture
    assert losses(tmp_path / "True") == losses(tmp_path / "False")


@pytest.mark.parametrize("optimizer", ["adamw", "muon", "lamb"])
def test_captured_updates_are_the_plain_ones_by_every_optimizer(
    optimizer: Any, tmp_path: Path
) -> None:
    recipe = hurried("vit-captioner", tmp_path / "data", steps=12)
    for capture in (True, False):
        settings = replace(recipe.train, optimizer=optimizer, capture=capture)
        train(replace(recipe, train=settings), tmp_path / str(capture), lambda event: None)
    assert losses(tmp_path / "True") == losses(tmp_path / "False")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made: dict[str, Path] = {}
    for name in ("transformer", "rnn-attention", "gpt"):
        folder = tmp_path_factory.mktemp(name)
        train(hurried(name, folder / "data", steps=60), folder / "run", lambda event: None)
        made[name] = folder / "run"
    return made


@pytest.mark.parametrize("name", ["transformer", "rnn-attention"])
@pytest.mark.parametrize(
    "how", [{"beam": 1}, {"beam": 4, "n_best": 4}, {"sample": True, "beam": 1}]
)
def test_captured_translations_are_the_plain_ones(
    name: str, how: dict[str, int], runs: dict[str, Path]
) -> None:
    model = load(runs[name])
    plain, captured = (
        model.predict(TEXTS, precision="float32", capture=capture, **how)
        for capture in (False, True)
    )
    assert [one.text for one in plain] == [one.text for one in captured]
    for one, other in zip(plain, captured):
        assert [x.text for x in one.others] == [x.text for x in other.others]
        assert one.score == pytest.approx(other.score, abs=1e-3)


@pytest.mark.parametrize(
    "how", [{"sample": True, "seed": 3, "count": 8}, {"sample": False, "beam": 3}]
)
def test_captured_writing_is_the_plain_one(how: dict[str, int], runs: dict[str, Path]) -> None:
    model = load(runs["gpt"])
    texts = [
        [
            one.text
            for one in model.predict(
                ["I", "", "I am"], most_tokens=20, precision="float32", capture=capture, **how
            )
        ]
        for capture in (False, True)
    ]
    assert texts[0] == texts[1]


def test_every_recipe_that_can_be_captured_says_so() -> None:
    from saccade.models.protocol import Capturable

    said = {
        name for name, recipe in RECIPES.items() if isinstance(recipe.model.build(), Capturable)
    }
    assert set(UPDATES) <= said
