"""Attention within windows on a GPU: both ways, in every precision, and in models."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from tests.attention.kernels.train.test_windows import SCALE, Case, plain
from tests.gpu.precision import DEVICE, DTYPES, HALVES, IN_PARTS, check

swin = Case((16, 16), (4, 4), (2, 2), offsets=4, biases=True, batch=300, width=32)
seven = Case((28, 21), (7, 7), (3, 3), offsets=7, biases=True, batch=64, heads=3, width=32)
vit = Case((1, 65), (1, 65), batch=33, heads=3, width=16)
CASES = {
    "windows of four": replace(swin, shift=(0, 0)),
    "shifted": swin,
    "local": replace(swin, batch=40, scales=True, itself=False),
    "windows of seven": replace(seven, shift=(0, 0)),
    "windows of seven, shifted": seven,
    "not tiled": replace(seven, shape=(20, 17), batch=3, heads=2),
    "alone": replace(swin, shape=(5, 9), shift=(0, 0), scales=True, itself=False, batch=5),
    "windows of ten": Case((10, 20), (10, 10), offsets=10, biases=True, width=32),
    "65 tokens": vit,
    "65 tokens, local": replace(vit, scales=True, itself=False),
    "65 tokens, biases": replace(vit, biases=True),
    "90 tokens": replace(vit, shape=(1, 90), window=(1, 90), width=64, biases=True),
    "101 tokens": replace(vit, shape=(1, 101), window=(1, 101), width=64, biases=True),
    "128 tokens": replace(vit, shape=(1, 128), window=(1, 128), width=48),
    "33 tokens": replace(vit, shape=(1, 33), window=(1, 33), scales=True),
    "one token": replace(vit, shape=(1, 1), window=(1, 1), biases=True),
    "odd width": replace(swin, width=20, batch=3, heads=3),
}
each_case = pytest.mark.parametrize("name", CASES)


def learnt(case: Case) -> list[Tensor]:
    return [x.detach().to(DEVICE) for x in case.inputs() if x is not None]


def read(case: Case, qkv: Tensor, *rest: Tensor) -> Tensor:
    from saccade.attention.kernels.train.windows import window_attention

    how = [*case.window], [*case.shift], SCALE, case.itself
    table, scales, biases = arranged(case, *rest)
    return window_attention(qkv, table, scales, biases, *how)


def arranged(case: Case, *rest: Tensor) -> tuple[Tensor | None, Tensor | None, list[Tensor]]:
    """Offsets, scales and biases, of those that there are."""
    left = [*rest]
    table = left.pop(0) if case.offsets else None
    return table, left.pop(0) if case.scales else None, left


def plainly(case: Case, qkv: Tensor, *rest: Tensor) -> Tensor:
    table, scales, biases = arranged(case, *rest)
    return plain(case, qkv, table, scales, *biases)


@each_case
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_windows(name: str, dtype: torch.dtype) -> None:
    case = replace(CASES[name], dtype=dtype)
    check(lambda *x: read(case, *x), lambda *x: plainly(case, *x), learnt(case), rounding=IN_PARTS)


@each_case
def test_sums_are_the_same_every_time(name: str) -> None:
    case = replace(CASES[name], dtype=torch.bfloat16)
    inputs, flow = [x.requires_grad_() for x in learnt(case)], case.flow().to(DEVICE)
    first, second = (torch.autograd.grad(read(case, *inputs), inputs, flow) for _ in range(2))
    assert all(one.equal(other) for one, other in zip(first, second))


MODELS: dict[str, ImageEncoderConfig] = {
    "swin": SwinConfig(width=48, depths=(2, 2), heads=(3, 6), window=4, classes=5),
    "sl-swin": SwinConfig(
        width=32, depths=(2, 2), heads=(1, 2), reads="shifted", local=True, classes=5
    ),
    "vit": VitConfig(image=32, patch=4, width=96, depth=3, heads=6, classes=5),
    "sl-vit": VitConfig(
        image=32, patch=4, width=96, depth=3, heads=6, reads="shifted", local=True, biased=False
    ),
}


def slopes(config: ImageEncoderConfig, device: str, dtype: torch.dtype | None) -> Tensor:
    """The gradient to all parameters, end to end."""
    torch.manual_seed(0)
    model, image = config.build().to(device), torch.randn(8, 3, 36, 36).to(device)
    with torch.autocast(device, dtype, enabled=dtype is not None):
        scores = model(image[..., :32, :32] if isinstance(config, VitConfig) else image)
    some = torch.autograd.grad(scores.float().square().sum(), [*model.parameters()])
    return torch.cat([x.flatten().float().cpu() for x in some])


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_learns_as_on_a_cpu(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = slopes(MODELS[name], "cpu", None)
    found = slopes(MODELS[name], DEVICE, dtype)
    monkeypatch.setattr("saccade.attention.multihead.takes_windows", lambda *_: False)
    usual = slopes(MODELS[name], DEVICE, dtype)
    assert not found.equal(usual)  # the kernel has served
    allowed = 2 * (usual - expected).norm() + 1e-3 * expected.norm()
    assert (found - expected).norm() <= allowed
