"""MobileNetV2: torchvision's names, and Hugging Face's numbers with the same weights."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import MobileNetV2Config, MobileNetV2ForImageClassification

from saccade.models.vision.mobilenet import PRESETS, MobileNet, MobileNetConfig

# Expansion and output of the blocks after the first, as in Table 2 of the paper.
OUTPUTS = [24] * 2 + [32] * 3 + [64] * 4 + [96] * 3 + [160] * 3 + [320]
Named = tuple[str, tuple[int, ...]]


def layer(conv: str, norm: str, shape: tuple[int, ...]) -> Iterator[Named]:
    yield f"{conv}.weight", shape
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{norm}.{part}", shape[:1]
    yield f"{norm}.num_batches_tracked", ()


def torchvision_names() -> Iterator[Named]:
    """The tensors of torchvision's file in their order, spelt out by rule."""
    yield from layer("features.0.0", "features.0.1", (32, 3, 3, 3))
    yield from layer("features.1.conv.0.0", "features.1.conv.0.1", (32, 1, 3, 3))
    yield from layer("features.1.conv.1", "features.1.conv.2", (16, 32, 1, 1))
    inputs = 16
    for place, outputs in enumerate(OUTPUTS, start=2):
        name, hidden = f"features.{place}.conv", 6 * inputs
        yield from layer(f"{name}.0.0", f"{name}.0.1", (hidden, inputs, 1, 1))
        yield from layer(f"{name}.1.0", f"{name}.1.1", (hidden, 1, 3, 3))
        yield from layer(f"{name}.2", f"{name}.3", (outputs, hidden, 1, 1))
        inputs = outputs
    yield from layer("features.18.0", "features.18.1", (1280, 320, 1, 1))
    yield "classifier.1.weight", (1000, 1280)
    yield "classifier.1.bias", (1000,)


def test_the_published_size_has_torchvisions_names_and_number_of_parameters() -> None:
    with torch.device("meta"):
        model = PRESETS["mobilenet-v2"].build()
    ours = [(key, tuple(tensor.shape)) for key, tensor in model.state_dict().items()]
    assert ours == list(torchvision_names())
    assert sum(parameter.numel() for parameter in model.parameters()) == 3_504_872


def hugging_face(multiplier: float) -> Any:
    """Every weight and statistic random; padding and epsilon as torchvision has them."""
    config = MobileNetV2Config(
        depth_multiplier=multiplier, tf_padding=False, layer_norm_eps=1e-5, num_labels=5
    )
    torch.manual_seed(1)
    model = MobileNetV2ForImageClassification(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffer.add_(0.3 * torch.rand(buffer.shape))
    return model


def our_name(theirs: str) -> str:
    *words, leaf = theirs.removeprefix("mobilenet_v2.").split(".")
    if words[0] == "classifier":
        return f"classifier.1.{leaf}"
    part = 0 if words[-1] == "convolution" else 1
    if words[0] == "conv_1x1":
        return f"features.18.{part}.{leaf}"
    if "first_conv" in words:
        return f"features.0.{part}.{leaf}"
    stem = words[0] == "conv_stem"
    block = "features.1.conv" if stem else f"features.{int(words[1]) + 2}.conv"
    place = ("expand_1x1", "conv_3x3", "reduce_1x1").index(words[-2]) - stem
    if words[-2] == "reduce_1x1":
        return f"{block}.{place + part}.{leaf}"
    return f"{block}.{place}.{part}.{leaf}"


def twin(theirs: Any, multiplier: float) -> MobileNet:
    model = MobileNetConfig(multiplier=multiplier, classes=5).build().double().eval()
    model.load_state_dict({our_name(name): t for name, t in theirs.state_dict().items()})
    return model


@pytest.mark.parametrize("multiplier", [0.75, 1.0])
@torch.no_grad()
def test_agrees_with_hugging_face_at_every_stage(multiplier: float) -> None:
    theirs = hugging_face(multiplier)
    ours = twin(theirs, multiplier)
    image = 50 * torch.randn(2, 3, 64, 33, dtype=torch.float64)  # so that it goes beyond 6
    expected = theirs(image, output_hidden_states=True)
    torch.testing.assert_close(ours(image), expected.logits)
    hidden = [theirs.mobilenet_v2.conv_stem(image), *expected.hidden_states]
    for stage, blocks in enumerate((0, 2, 5, 12), start=1):
        torch.testing.assert_close(ours.grid(image, stage), hidden[blocks])


def test_the_last_layer_grows_with_the_multiplier_but_never_shrinks() -> None:
    tops = [MobileNetConfig(multiplier=times).top for times in (0.25, 1.0, 1.4)]
    assert tops == [1280, 1280, 1792]
