"""A recipe of every kind of work on the built-in worlds, so small that a life of it takes a second.

Each has what could be lost on the way: averages, accumulation, dropout or draws of its own.
"""

from dataclasses import replace
from typing import Any

import pytest

from saccade.config import ModelConfig
from saccade.data.lingua import LinguaSettings
from saccade.data.shapes import ShapesSettings
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.models.joint.clip import ClipConfig
from saccade.models.text.bert import BertConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.models.vision.vit import VitConfig
from saccade.tasks import KINDS
from saccade.train.recipe import Recipe, Stage
from saccade.train.recipes import RECIPES
from saccade.train.settings import TrainSettings
from tests.app.look.detectors import TINY_DETR
from tests.tasks.joint.made import TINY

HELD_BACK = 6  # scenes or sentences to validate on
STEPS = 8
TRAIN = TrainSettings(
    steps=STEPS,
    batch_tokens=64,
    accumulate=2,
    learning_rate=1e-2,
    warmup=2,
    ema=0.9,
    validate_every=3,
    save_every=2,
    log_every=1,
    device="cpu",
)
IMAGES: dict[str, Any] = {"image": 32, "scenes": 12}
SENTENCES = LinguaSettings(shortest=3, longest=8)
BERT = BertConfig(width=16, depth=1, heads=2, hidden=16, longest=64, dropout=0.1)
DVAE = DvaeConfig(image=32, codes=8, width=4, groups=2, patch=4, blocks=1, code_width=4)
DALLE = DalleConfig(text=28, width=8, depth=2, heads=2, kernel=3, dropout=0.1)
VILBERT = replace(TINY, dropout=0.1, contrast=False, frozen=True, bins=2)
SEVERAL = ShapesSettings(fewest=2)
# The model, and what is another in the task; the budget is its own: pairs, images, tokens.
SMALL: dict[str, tuple[ModelConfig, dict[str, Any], int]] = {
    "translation": (
        TransformerConfig(width=16, depth=1, heads=2, hidden=32, dropout=0.1),
        {"vocabulary": 300, "pairs": 60, "lingua": SENTENCES},
        128,
    ),
    "language": (
        GptConfig(width=16, depth=1, heads=2, longest=32, dropout=0.1),
        {"unit": "lines", "level": "words", "sentences": 60},
        64,
    ),
    "captioning": (ShowAttendTellConfig(width=16, hidden=16), {**IMAGES, "longest": 20}, 64),
    "classification": (VitConfig(image=32, patch=8, width=16, depth=1, heads=2), IMAGES, 4),
    "detection": (TINY_DETR, IMAGES, 4),
    "masked": (BERT, {"vocabulary": 320, "sentences": 60, "window": 64}, 128),
    "understanding": (BERT, {"vocabulary": 300, "count": 40, "longest": 64}, 128),
    "answering": (VILBERT, {**IMAGES, "texts": 2}, 4),
    "fitting": (VILBERT, {**IMAGES, "texts": 2, "shapes": SEVERAL}, 4),
    "referring": (VILBERT, {**IMAGES, "texts": 2}, 4),
    "choosing": (VILBERT, {**IMAGES, "texts": 2}, 4),
    "joint": (VILBERT, {**IMAGES, "texts": 2, "shapes": SEVERAL}, 4),
    "text-to-image": (DALLE, IMAGES, 4),
    "reconstruction": (DVAE, IMAGES, 4),
    "matching": (
        ClipConfig(width=12, depth=1, heads=2, longest=64, joint=8, encoder="resnet-nano"),
        {**IMAGES, "shapes": SEVERAL},
        4,
    ),
}


def every_kind(name: str) -> Recipe:
    """The small recipe of a kind, with what comes before it."""
    model, task, budget = SMALL[name]
    stages = RECIPES["dalle"].stages if name == "text-to-image" else ()
    quick = {"steps": 4, "batch_tokens": 4, "validate_every": 2, "save_every": 1, "warmup": 1}
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=model,
        task=KINDS[name](**task),
        train=replace(TRAIN, batch_tokens=budget),
        stages=tuple(_small_stage(one, **quick, log_every=1) for one in stages),
    )


def _small_stage(stage: Stage, **changed: Any) -> Stage:
    train = replace(stage.recipe.train, **changed)
    return replace(stage, recipe=replace(stage.recipe, model=DVAE, train=train))


def hold_back_few(patch: pytest.MonkeyPatch) -> None:
    """Have each kind validate on a handful."""
    for home in (
        "captioning.data",
        "classification.data",
        "detection.data",
        "joint.data",
        "masked.task",
        "reconstruction.data",
        "understanding.data",
    ):
        patch.setattr(f"saccade.tasks.{home}.HELD_BACK", HELD_BACK)
