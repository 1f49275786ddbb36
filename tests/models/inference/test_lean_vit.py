"""The Vision Transformer stripped for classifying scores as the model itself does."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.models.inference.lean_vit import LeanVit
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.vit import Vit, VitConfig

CONFIG = VitConfig(image=24, patch=4, width=12, depth=3, heads=3, classes=5)


def built(config: VitConfig) -> Vit:
    torch.manual_seed(0)
    model = config.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


def pictures(*shape: int) -> Tensor:
    return torch.randn(2, 3, *shape, generator=torch.Generator().manual_seed(2))


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("shape", [(24, 24), (16, 40)])
def test_scores_are_the_models_at_any_depth_and_size(depth: int, shape: tuple[int, int]) -> None:
    model = built(replace(CONFIG, depth=depth))
    with torch.no_grad():
        expected = model(pictures(*shape))
    torch.testing.assert_close(LeanVit(model, "float32")(pictures(*shape)), expected)


def test_halves_score_nearly_the_same_and_need_no_cast_of_the_pictures() -> None:
    model, image = built(CONFIG), pictures(24, 24)
    with torch.no_grad():
        expected = model(image)
    lean = LeanVit(model, "bfloat16")
    found = lean(image)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=0.05, atol=0.05)
    assert torch.equal(found, lean(image.bfloat16()))


def test_a_model_that_changes_later_does_not_change_the_weights_that_were_packed() -> None:
    model, image = built(CONFIG), pictures(24, 24)
    lean = LeanVit(model, "bfloat16")
    before = lean(image)
    with torch.no_grad():
        model.head.weight.add_(1.0)
    assert torch.equal(lean(image), before)


SMALL_CNN = ResNetConfig(depth=10, width=8, stem="small", classes=0)
RELATIVES = [
    {"layer_scale": 0.5, "class_position": False},
    {"reads": "shifted"},
    {"biased": False, "expansion": 2},
    {"reads": "cnn", "cnn": SMALL_CNN},
]


@pytest.mark.parametrize("variant", RELATIVES)
def test_relatives_score_as_they_do_unpacked(variant: dict[str, Any]) -> None:
    model, image = built(replace(CONFIG, **variant)), pictures(24, 24)
    with torch.no_grad():
        expected = model(image)
    torch.testing.assert_close(LeanVit(model, "float32")(image), expected)


@pytest.mark.parametrize("variant", RELATIVES)
def test_relatives_score_in_halves(variant: dict[str, Any]) -> None:
    model, image = built(replace(CONFIG, **variant)), pictures(24, 24)
    with torch.no_grad():
        expected = model(image)
    found = LeanVit(model, "bfloat16")(image)
    assert found.dtype == torch.bfloat16
    assert 0 < (found.float() - expected).abs().max() < 0.05 * expected.abs().max()


def test_local_attention_is_not_packed_as_if_it_were_plain() -> None:
    with pytest.raises(ConfigError, match="temperature of its own"):
        LeanVit(built(replace(CONFIG, local=True)), "float32")
