"""The form for inference gives what the model gives, for every family."""

import pytest
import torch
from torch import nn

from saccade.models.inference.encoder import CapturedReading, EncoderForInference
from saccade.models.vision.attention_resnet import AttentionResNetConfig
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

FAMILIES: dict[str, ImageEncoderConfig] = {
    "resnet, basic": ResNetConfig(depth=10, width=8, classes=5),
    "resnet, bottleneck": ResNetConfig(depth=50, width=4, classes=5, dilated=True),
    "attention-resnet": AttentionResNetConfig(depth=10, width=8, classes=5),
    "mobilenet": MobileNetConfig(classes=5, dropout=0.0),
    "convnext": ConvNextConfig(depths=(1, 1), widths=(8, 16), classes=5, layer_scale=0.5),
    "swin": SwinConfig(width=8, depths=(2, 1), heads=(1, 2), window=4, classes=5),
    "mvit": MvitConfig(image=32, width=8, depths=(1, 1), classes=5),
    "vit": VitConfig(image=32, patch=8, width=16, depth=1, heads=2, classes=5),
}


def trained(config: ImageEncoderConfig) -> ImageEncoder:
    """With statistics that are not those of a beginner."""
    torch.manual_seed(0)
    model = config.build()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
    return model.eval()


@pytest.mark.parametrize("name", FAMILIES)
@torch.no_grad()
def test_its_scores_are_the_models(name: str) -> None:
    model, image = trained(FAMILIES[name]), torch.randn(2, 3, 32, 32)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    lean = EncoderForInference(model, "float32")
    expected = model(image)
    assert expected.std() > 1e-3  # something is told apart
    torch.testing.assert_close(CapturedReading(lean)(image), expected, rtol=1e-4, atol=1e-5)
    assert not any(isinstance(one, nn.BatchNorm2d) for one in lean.model.modules())  # type: ignore[attr-defined]
    torch.testing.assert_close(model.state_dict(), before, rtol=0, atol=0)  # it keeps its own


def test_half_precision_is_near_and_in_half() -> None:
    model, image = trained(FAMILIES["resnet, basic"]), torch.randn(2, 3, 32, 32)
    lean = EncoderForInference(model, "bfloat16")
    found, expected = lean(image), model(image)
    assert found.dtype == torch.bfloat16
    assert (found - expected).abs().max() < 0.05 * expected.abs().max()
