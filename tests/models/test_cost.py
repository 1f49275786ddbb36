"""What a picture costs: the measured table, and the formula of a Vision Transformer."""

from dataclasses import replace

import pytest

from saccade.models.cost import multiply_adds
from saccade.models.vision import mobilenet, resnet, vit
from saccade.models.vision.vit import VitConfig

GIGA = {  # multiply-adds of one picture of 224 × 224, measured on timm's and torchvision's models
    "vit-ti-16": 1.25,
    "vit-s-16": 4.60,
    "vit-b-32": 4.41,
    "vit-b-16": 17.56,
    "vit-l-16": 61.55,
    "resnet-18": 1.81,
    "resnet-34": 3.66,
    "resnet-50": 4.09,
    "resnet-101": 7.80,
    "mobilenet-v2": 0.30,
}
PRESETS = {**resnet.PRESETS, **mobilenet.PRESETS, **vit.PRESETS}


QUICK = ("vit-ti-16", "resnet-18")


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in GIGA]
)
def test_published_sizes_cost_what_was_measured(name: str) -> None:
    assert round(multiply_adds(PRESETS[name], 224, 224) / 1e9, 2) == GIGA[name]


def by_hand(config: VitConfig, patches: int) -> int:
    """Four products of D × D and two of D × 4D for each token, and each token with each, twice."""
    tokens, width = patches + 1, config.width
    block = tokens * 12 * width**2 + 2 * tokens**2 * width
    pixels = patches * 3 * config.patch**2 * width
    return pixels + config.depth * block + width * config.classes


@pytest.mark.parametrize("classes", [0, 7])
@pytest.mark.parametrize(("height", "width"), [(64, 64), (32, 48)])
def test_a_vision_transformer_costs_its_formula_at_any_size(
    height: int, width: int, classes: int
) -> None:
    config = replace(PRESETS["vit-nano"], classes=classes)
    assert isinstance(config, VitConfig)
    assert multiply_adds(config, height, width) == by_hand(config, height * width // 64)
