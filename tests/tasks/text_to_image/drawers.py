"""A small text-to-image model with fresh weights, loud enough to tell things apart."""

from dataclasses import replace
from functools import cache

import torch
from torch import nn

from saccade.data import shapes
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.image_tokens.dvae import Dvae, DvaeConfig
from saccade.tasks.text_to_image.data import TextToImageSettings
from saccade.tasks.text_to_image.drawer import ImageDrawer
from tests.tasks.joint.pair_tools import loud

PROMPT = "a red circle left of a blue square"
TINY_DVAE = DvaeConfig(image=32, codes=12, width=8, groups=4, blocks=1, code_width=8)
TINY_DALLE = DalleConfig(text=24, codes=12, grid=4, width=16, depth=3, heads=2, kernel=3)
TINY_TASK = TextToImageSettings(image=32, scenes=24)


@cache
def prompt_vocabulary() -> Vocabulary:
    """Of what is said about some scenes."""
    scenes = [shapes.scene("train", index) for index in range(60)]
    said = [text for scene in scenes for text in shapes.captions(scene)]
    return Vocabulary.train([*said, PROMPT], level="words", size=400)


def tiny_dalle() -> DalleConfig:
    return replace(TINY_DALLE, vocabulary=len(prompt_vocabulary()))


def networks(seed: int = 0) -> tuple[nn.Module, Dvae]:
    """The Transformer, and the discrete VAE whose codes it draws."""
    torch.manual_seed(seed)
    dvae = TINY_DVAE.build()
    model = loud(tiny_dalle().build(), seed).eval()
    return model, dvae.eval()


def tiny_drawer(seed: int = 0) -> ImageDrawer:
    model, dvae = networks(seed)
    return ImageDrawer(model, dvae, prompt_vocabulary(), TINY_TASK)
