"""Untrained classifiers of shapes, for looking at."""

from dataclasses import replace
from typing import NamedTuple

import torch

from saccade.app.look.classification import Subject
from saccade.app.look.images import ShownImage
from saccade.data import shapes
from saccade.data.shapes import ShapesSettings
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.classification.data import Classes, ClassificationSettings

NAMES = ("circle", "square", "star", "ring, thick", "007", "none", "heart")
SIDE = 32
CONFIGS: dict[str, ImageEncoderConfig] = {
    "vit": VitConfig(image=SIDE, patch=8, width=24, depth=2, heads=3),
    "fine": VitConfig(image=SIDE, patch=2, width=24, depth=2, heads=12),
    "swin": SwinConfig(width=12, depths=(2, 2), heads=(2, 3), window=4, expansion=2),
    "resnet": ResNetConfig(depth=10, width=8),
}


class Model(NamedTuple):
    name: str
    tool: ImageClassifier


def classifier(kind: str, name: str = "", *, seed: int = 0, several: bool = False) -> Model:
    torch.manual_seed(seed)
    model = replace(CONFIGS[kind], classes=len(NAMES)).build()
    settings = ClassificationSettings(image=SIDE)
    return Model(name or kind, ImageClassifier(model, Classes(NAMES, several), settings))


def subjects(count: int = 1) -> list[Subject]:
    scenes = [shapes.scene("test", index, ShapesSettings()) for index in range(count)]
    return [
        Subject(ShownImage.of_scene(scene, f"test {i}"), (NAMES[i % len(NAMES)],))
        for i, scene in enumerate(scenes)
    ]
