"""Recipes that find objects."""

from saccade.models.detection import detr
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.vary import VaryBoxes
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

_NANO = detr.PRESETS["detr-nano"]
_SHAPES = DetectionSettings(image=96, scenes=20_000, vary=VaryBoxes(cut=0.5, smallest=0.6))
_ON_SHAPES = TrainSettings(
    steps=4000,
    batch_tokens=32,
    optimizer="muon",
    learning_rate=2e-3,
    schedule="cosine",
    warmup=100,
    weight_decay=0.1,
    ema=0.995,
    validate_every=500,
)

BUILT_IN: dict[str, Recipe] = {
    "detr": Recipe(
        about="DETR with queries that are boxes, learns from few images",
        system="S23",
        lecture="Vision Transformers: DETR",
        model=_NANO,
        task=_SHAPES,
        train=_ON_SHAPES,
    ),
}
