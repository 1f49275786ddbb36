"""An image encoder by its stages: one after another is the whole, and the lower may stay as is."""

import pytest
import torch

from saccade.errors import ConfigError
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

STAGED: dict[str, ImageEncoderConfig] = {
    "resnet-18": ResNetConfig(depth=18, width=4, classes=0),
    "dilated resnet-50": ResNetConfig(depth=50, width=4, dilated=True, classes=0),
    "small stem": ResNetConfig(depth=10, width=4, stem="small", classes=0),
    "mobilenet": MobileNetConfig(multiplier=0.1, classes=0),
    "dilated mobilenet": MobileNetConfig(multiplier=0.1, dilated=True, classes=0),
    "convnext": ConvNextConfig(
        depths=(1, 2, 1, 1), widths=(4, 6, 8, 12), layer_scale=0.5, classes=0
    ),
    "swin": SwinConfig(width=8, depths=(2, 1, 2), heads=(1, 2, 4), window=4, classes=0),
    "swin for few": SwinConfig(
        width=8,
        depths=(1, 2, 1),
        heads=(1, 2, 2),
        window=4,
        reads="shifted",
        local=True,
        classes=0,
    ),
}
VIT = VitConfig(image=64, patch=16, width=12, depth=3, layer_scale=0.5, classes=0)


def built(config: ImageEncoderConfig) -> ImageEncoder:
    torch.manual_seed(0)
    model = config.build().double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def image() -> torch.Tensor:
    draws = torch.Generator().manual_seed(1)
    return torch.randn(2, 3, 72, 56, generator=draws, dtype=torch.float64)


@pytest.mark.parametrize("name", STAGED)
@torch.no_grad()
def test_a_later_stage_is_what_comes_of_an_earlier_one(name: str) -> None:
    model, x = built(STAGED[name]).eval(), image()
    for after in range(1, model.stages + 1):
        for to in range(after, model.stages + 1):
            onward = model.onward(model.grid(x, after), after, to)
            assert torch.equal(onward, model.grid(x, to)), (after, to)


def test_a_grid_of_one_fineness_has_no_finer_one() -> None:
    model = built(VIT)
    grid = model.grid(torch.zeros(1, 3, 64, 64, dtype=torch.float64), 1)
    with pytest.raises(ConfigError, match="Vit has grids of one fineness; take one of its stages"):
        model.onward(grid, 1, 2)


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize("name", [*STAGED, "vit"])
def test_what_a_stage_is_computed_from_is_frozen_and_nothing_else(name: str, stage: int) -> None:
    config = VIT if name == "vit" else STAGED[name]
    x = image()[..., :64, :] if name != "vit" else torch.randn(1, 3, 64, 64, dtype=torch.float64)
    model = built(config)
    model.grid(x, stage).sum().backward()
    below = {path for path, parameter in model.named_parameters() if parameter.grad is not None}
    model.zero_grad()
    model.freeze_below(stage)
    model.train()
    frozen = {path for path, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == below
    before = {path: tensor.clone() for path, tensor in model.named_buffers()}
    model.grid(x).sum().backward()
    assert all(model.get_parameter(path).grad is None for path in frozen)
    for path, buffer in model.named_buffers():
        norm = path.rpartition(".")[0]
        assert torch.equal(buffer, before[path]) == (f"{norm}.weight" in frozen), path
