"""ResNets: torchvision's names, and the same numbers as Hugging Face with the same weights."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import ResNetConfig as TheirConfig
from transformers import ResNetForImageClassification

from saccade.models.vision.resnet import PRESETS, ResNet, ResNetConfig

SIZES = {  # torchvision 0.28
    "resnet-18": 11_689_512,
    "resnet-34": 21_797_672,
    "resnet-50": 25_557_032,
    "resnet-101": 44_549_160,
}
BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
Named = tuple[str, tuple[int, ...]]


def norm(name: str, width: int) -> Iterator[Named]:
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{name}.{part}", (width,)
    yield f"{name}.num_batches_tracked", ()


def torchvision_names(depth: int) -> Iterator[Named]:
    """The tensors of torchvision's files in their order, spelt out by rule."""
    yield "conv1.weight", (64, 3, 7, 7)
    yield from norm("bn1", 64)
    inputs, deep = 64, depth >= 50
    for stage, blocks in enumerate(BLOCKS[depth]):
        width = 64 * 2**stage
        outputs = 4 * width if deep else width
        sizes = [(width, 1), (width, 3), (outputs, 1)] if deep else [(width, 3), (width, 3)]
        for block in range(blocks):
            name, channels = f"layer{stage + 1}.{block}", inputs
            for place, (count, side) in enumerate(sizes, start=1):
                yield f"{name}.conv{place}.weight", (count, channels, side, side)
                yield from norm(f"{name}.bn{place}", count)
                channels = count
            if block == 0 and (stage or deep):
                yield f"{name}.downsample.0.weight", (outputs, inputs, 1, 1)
                yield from norm(f"{name}.downsample.1", outputs)
            inputs = outputs
    yield "fc.weight", (1000, inputs)
    yield "fc.bias", (1000,)


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes_have_torchvisions_names_and_number_of_parameters(name: str) -> None:
    with torch.device("meta"):
        model = PRESETS[name].build()
    ours = [(key, tuple(tensor.shape)) for key, tensor in model.state_dict().items()]
    assert ours == list(torchvision_names(PRESETS[name].depth))
    assert sum(parameter.numel() for parameter in model.parameters()) == SIZES[name]


def hugging_face(kind: str, blocks: tuple[int, ...], expansion: int) -> Any:
    """A thin ResNet with every weight and statistic random."""
    config = TheirConfig(
        embedding_size=8,
        hidden_sizes=[8 * expansion << stage for stage in range(4)],
        depths=list(blocks),
        layer_type=kind,
        num_labels=5,
    )
    torch.manual_seed(1)
    model = ResNetForImageClassification(config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn(parameter.shape))
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffer.add_(0.3 * torch.rand(buffer.shape))
    return model


def our_name(theirs: str) -> str:
    *words, leaf = theirs.split(".")
    kind = {"convolution": "conv", "normalization": "bn"}.get(words[-1], "")
    if words[0] == "classifier":
        return f"fc.{leaf}"
    if "embedder" in words:
        return f"{kind}1.{leaf}"
    block = f"layer{int(words[3]) + 1}.{words[5]}"
    if "shortcut" in words:
        return f"{block}.downsample.{0 if kind == 'conv' else 1}.{leaf}"
    return f"{block}.{kind}{int(words[7]) + 1}.{leaf}"


def twin(theirs: Any, depth: Any) -> ResNet:
    model = ResNetConfig(depth=depth, width=8, classes=5).build().double().eval()
    model.load_state_dict({our_name(name): t for name, t in theirs.state_dict().items()})
    return model


@pytest.mark.parametrize(
    ("depth", "kind", "expansion"), [(18, "basic", 1), (34, "basic", 1), (50, "bottleneck", 4)]
)
@torch.no_grad()
def test_agrees_with_hugging_face_at_every_stage(depth: int, kind: str, expansion: int) -> None:
    theirs = hugging_face(kind, BLOCKS[depth], expansion)
    ours = twin(theirs, depth)
    image = torch.randn(2, 3, 64, 48, dtype=torch.float64)
    expected = theirs(image, output_hidden_states=True)
    torch.testing.assert_close(ours(image), expected.logits)
    for stage, hidden in enumerate(expected.hidden_states[1:], start=2):
        torch.testing.assert_close(ours.grid(image, stage), hidden)
    stem = theirs.resnet.embedder.embedder(image)
    torch.testing.assert_close(ours.grid(image, 1), stem)
