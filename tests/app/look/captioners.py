"""Untrained captioners with a vocabulary of shapes, for looking at."""

from typing import NamedTuple

import torch

from saccade.app.look.images import ShownImage
from saccade.data import shapes
from saccade.data.shapes import ShapesSettings
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.caption.caption_transformer import CaptionTransformerConfig
from saccade.models.caption.captioner import CaptionerConfig
from saccade.models.caption.show_and_tell import ShowAndTellConfig
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.tasks.captioning.captioner import ImageCaptioner
from saccade.tasks.captioning.data import CaptioningSettings

SCENES = [shapes.scene("test", index, ShapesSettings()) for index in range(3)]
SMALL = {"width": 16, "depth": 2, "heads": 2, "hidden": 16, "dropout": 0.0}
SIDE = 32
CONFIGS: dict[str, CaptionerConfig] = {
    "soft": ShowAttendTellConfig(width=16, hidden=16),
    "hard": ShowAttendTellConfig(width=16, hidden=16, glance="hard"),
    "blind": ShowAndTellConfig(width=16),
    "cnn": CaptionTransformerConfig(**SMALL, stage=3, encoder_depth=2),
    "vit": CaptionTransformerConfig(**SMALL, encoder="vit-nano", encoder_depth=0),
}


class Model(NamedTuple):
    name: str
    tool: ImageCaptioner


def vocabulary() -> Vocabulary:
    texts = [caption for scene in SCENES for caption in shapes.captions(scene)]
    return Vocabulary.train(texts * 3, level="words", size=200)


def captioner(kind: str, name: str = "", *, seed: int = 0, longest: int = 6) -> Model:
    torch.manual_seed(seed)
    words = vocabulary()
    fields = {**vars(CONFIGS[kind]), "vocabulary": len(words)}
    model = type(CONFIGS[kind])(**fields).build()
    settings = CaptioningSettings(image=SIDE, longest=longest)
    return Model(name or kind, ImageCaptioner(model, words, settings))


def shown(count: int = 1) -> list[ShownImage]:
    return [ShownImage.of_scene(scene, f"test {i}") for i, scene in enumerate(SCENES[:count])]
