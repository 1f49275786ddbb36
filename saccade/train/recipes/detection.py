"""Recipes that find objects."""

from saccade.models.detection import detr
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.vary import VaryBoxes
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings

_NANO = detr.PRESETS["detr-nano"]
_SHAPES = DetectionSettings(image=96, scenes=20_000, vary=VaryBoxes(cut=0.5, smallest=0.6))
_ON_SHAPES = TrainSettings(
    steps=3000,
    batch_tokens=32,
    optimizer="muon",
    learning_rate=2e-3,
    schedule="cosine",
    warmup=100,
    weight_decay=0.1,
    ema=0.995,
    validate_every=500,
)

# A few hundred photographs, and an encoder that has seen a million: --model.weights names them.
_FEW_PHOTOS = DetectionSettings(
    image=480, vary=VaryBoxes(cut=0.5, smallest=0.5, scale=0.75, jitter=0.2)
)
_ON_FEW_PHOTOS = TrainSettings(
    steps=2500,
    batch_tokens=8,
    optimizer="muon",
    learning_rate=1e-3,
    encoder_rate=0.2,
    schedule="cosine",
    warmup=200,
    weight_decay=0.1,
    ema=0.998,
    validate_every=250,
    precision="bfloat16",
)

MEASURED: dict[str, Recipe] = {
    "detr-few-images": Recipe(
        about="DETR with queries that are boxes, for a few hundred photographs",
        system="S23",
        lecture="DETR",
        model=detr.PRESETS["detr-mobilenet"],
        task=_FEW_PHOTOS,
        train=_ON_FEW_PHOTOS,
    ),
}
BUILT_IN: dict[str, Recipe] = {
    "detr": Recipe(
        about="DETR with queries that are boxes, learns from few images",
        system="S23",
        lecture="DETR",
        model=_NANO,
        task=_SHAPES,
        train=_ON_SHAPES,
    ),
}
