"""Untrained detectors of shapes, for looking at."""

from dataclasses import replace
from typing import NamedTuple

import torch

from saccade.app.look.detection import BoxedImage
from saccade.app.look.images import ShownImage
from saccade.data import shapes
from saccade.data.shapes import ShapesSettings
from saccade.models.detection.config import DetrConfig
from saccade.tasks.detection.data import DetectionSettings, scene_objects
from saccade.tasks.detection.detector import ObjectDetector

SIDE = 32
TINY_DETR = DetrConfig(
    encoder="resnet-mini",
    stage=4,
    finer=3,
    classes=len(shapes.KINDS),
    no_object=False,
    queries=6,
    width=16,
    encoder_depth=1,
    depth=2,
    heads=2,
    hidden=16,
    dropout=0.0,
    anchored=True,
    proposed=True,
    box_bias=True,
)
PLAIN_DETR = replace(
    TINY_DETR, no_object=True, anchored=False, proposed=False, box_bias=False, encoder_depth=2
)
BLIND_DETR = replace(TINY_DETR, encoder_depth=0)
CONFIGS = {"boxes": TINY_DETR, "plain": PLAIN_DETR, "blind": BLIND_DETR}


class Model(NamedTuple):
    name: str
    tool: ObjectDetector


def detector(kind: str = "boxes", *, seed: int = 0, side: int = SIDE) -> Model:
    torch.manual_seed(seed)
    settings = DetectionSettings(image=side)
    return Model(kind, ObjectDetector(CONFIGS[kind].build(), shapes.KINDS, settings))


def subjects(count: int = 1) -> list[BoxedImage]:
    scenes = [shapes.scene("test", index, ShapesSettings()) for index in range(count)]
    return [
        BoxedImage(
            replace(ShownImage.of_scene(scene, f"test {i}"), boxes=()), scene_objects(scene, SIDE)
        )
        for i, scene in enumerate(scenes)
    ]
