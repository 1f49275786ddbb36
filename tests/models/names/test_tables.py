"""Every table of names goes there and back without a loss, and says what the libraries say."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from saccade.models.names import HEADS, LIBRARIES, mobilenet
from saccade.models.names.table import to_ours, to_theirs
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

SMALL: dict[str, ImageEncoderConfig] = {
    "resnet-18": ResNetConfig(depth=18, width=8, classes=5),
    "resnet-50": ResNetConfig(depth=50, width=8, classes=5),
    "mobilenet": MobileNetConfig(multiplier=0.1, classes=5),
    "vit": VitConfig(image=16, patch=4, width=12, depth=2, classes=5),
    "deit3": VitConfig(
        image=16, patch=4, width=12, depth=2, layer_scale=0.5, class_position=False, classes=5
    ),
    "swin": SwinConfig(width=16, depths=(2, 2), heads=(2, 4), window=4, classes=5),
    "mvitv2": MvitConfig(image=32, width=8, depths=(1, 2, 1), classes=5),
    "mvitv2-l": MvitConfig(image=32, width=8, depths=(1, 2, 1), widen="mlp", classes=5),
    "mvitv1": MvitConfig(
        image=32, width=8, depths=(1, 2), relative=False, class_token=True, classes=5
    ),
    "convnext": ConvNextConfig(depths=(1, 1, 1), widths=(8, 12, 16), classes=5),
}
SCALED = ("timm", "official")  # the libraries that know scales of branches in a ViT


def pairs() -> Iterator[tuple[str, str]]:
    for name, config in SMALL.items():
        with torch.device("meta"):
            kind = type(config.build())
        for library in LIBRARIES[kind]:
            if name != "deit3" or library in SCALED:
                yield name, library


def built(config: ImageEncoderConfig) -> nn.Module:
    torch.manual_seed(3)
    model = config.build()
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.normal_()
    return model


@pytest.mark.parametrize(("name", "library"), [*pairs()])
def test_in_then_out_then_in_again_is_the_same_to_the_last_bit(name: str, library: str) -> None:
    model = built(SMALL[name])
    ours, names = dict(model.state_dict()), LIBRARIES[type(model)][library]
    theirs = to_theirs(names, ours)
    back = to_ours(names, theirs, ours)
    assert back.keys() == ours.keys()
    assert all(torch.equal(back[key], ours[key]) for key in ours)
    again = to_theirs(names, back)
    assert all(torch.equal(again[key], theirs[key]) for key in theirs)
    assert sum(x.numel() for x in theirs.values()) == sum(x.numel() for x in ours.values())


@pytest.mark.parametrize("name", SMALL)
def test_every_model_has_the_head_that_is_said_to_be_its_own(name: str) -> None:
    model = built(SMALL[name])
    (part,) = HEADS[type(model)].parts
    head = model.get_submodule(part)
    assert isinstance(head, nn.Linear)
    assert head.out_features == 5


RESNET: Any = transformers.ResNetConfig
MOBILENET: Any = transformers.MobileNetV2Config
THEIRS = {
    "resnet-18": lambda: transformers.ResNetForImageClassification(
        RESNET(
            embedding_size=8,
            hidden_sizes=[8, 16, 32, 64],
            depths=[2, 2, 2, 2],
            layer_type="basic",
            num_labels=5,
        )
    ),
    "resnet-50": lambda: transformers.ResNetForImageClassification(
        RESNET(embedding_size=8, hidden_sizes=[32, 64, 128, 256], depths=[3, 4, 6, 3], num_labels=5)
    ),
    "mobilenet": lambda: transformers.MobileNetV2ForImageClassification(
        MOBILENET(depth_multiplier=0.1, tf_padding=False, layer_norm_eps=1e-5, num_labels=5)
    ),
}


@pytest.mark.parametrize("name", THEIRS)
@torch.no_grad()
def test_those_of_hugging_face_give_the_same_scores(name: str) -> None:
    torch.manual_seed(5)
    theirs = THEIRS[name]().double().eval()
    for key, tensor in theirs.state_dict().items():
        if "running" in key:
            tensor.uniform_(0.5, 1.5)
    ours = SMALL[name].build().double().eval()
    names = LIBRARIES[type(ours)]["huggingface"]
    found = to_ours(names, theirs.state_dict(), ours.state_dict())
    ours.load_state_dict(found)
    image = torch.randn(2, 3, 64, 64, dtype=torch.float64)
    torch.testing.assert_close(ours(image), theirs(image).logits)
    assert to_theirs(names, found).keys() == theirs.state_dict().keys()


def test_timm_calls_the_parts_of_a_mobilenet_so() -> None:
    state = SMALL["mobilenet"].build().state_dict()
    names = to_theirs(mobilenet.LIBRARIES["timm"], state)
    layers = {name.rpartition(".")[0] for name in names}
    assert {name for name in layers if "blocks" not in name} == {
        *("conv_stem", "bn1", "conv_head", "bn2", "classifier")
    }
    assert {name for name in layers if name.startswith("blocks.0.")} == {
        f"blocks.0.0.{part}" for part in ("conv_dw", "bn1", "conv_pw", "bn2")
    }
    assert {name for name in layers if name.startswith("blocks.2.1.")} == {
        f"blocks.2.1.{part}" for part in ("conv_pw", "bn1", "conv_dw", "bn2", "conv_pwl", "bn3")
    }


@pytest.mark.parametrize("name", ["resnet-18", "mobilenet"])
def test_torchvision_calls_them_as_we_do(name: str) -> None:
    model = SMALL[name].build()
    ours = model.state_dict()
    assert to_theirs(LIBRARIES[type(model)]["torchvision"], ours).keys() == ours.keys()
