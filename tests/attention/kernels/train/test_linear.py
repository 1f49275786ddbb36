"""Linear layers: torch's own, wherever the leaner way back does not serve."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear, together

SHAPES = [(4,), (3, 4), (2, 3, 4)]
EXACT = torch.float64


def draws(*shape: int, dtype: torch.dtype = EXACT) -> Tensor:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(shape, generator=rng, dtype=EXACT).to(dtype).requires_grad_()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [EXACT, torch.float32, torch.bfloat16])
def test_one_is_torchs_on_the_cpu_to_the_last_bit(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    layer, twin = Linear(4, 5, dtype=dtype), nn.Linear(4, 5, dtype=dtype)
    twin.load_state_dict(layer.state_dict())
    x = draws(*shape, dtype=dtype)
    ours = torch.autograd.grad(layer(x).sum(), [x, layer.weight, layer.bias])
    theirs = torch.autograd.grad(twin(x).sum(), [x, twin.weight, twin.bias])
    assert layer(x).equal(twin(x))
    assert all(a.equal(b) for a, b in zip(ours, theirs))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("layer", [nn.Linear, Linear])
def test_several_together_are_each_by_itself_side_by_side(
    shape: tuple[int, ...], layer: type[nn.Linear]
) -> None:
    torch.manual_seed(0)
    layers = [layer(4, width, dtype=EXACT) for width in (5, 1, 3)]
    x, flow = draws(*shape), draws(*shape[:-1], 9).detach()
    inputs = [x, *(p for one in layers for p in one.parameters())]
    found = together(x, *layers)
    expected = torch.cat([F.linear(x, one.weight, one.bias) for one in layers], dim=-1)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad(found, inputs, flow), torch.autograd.grad(expected, inputs, flow)
    )


def test_they_follow_autocast() -> None:
    torch.manual_seed(0)
    layers, x = [Linear(4, 5), Linear(4, 2)], draws(3, 4, dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        for found, chosen in ((layers[0](x), layers[:1]), (together(x, *layers), layers)):
            expected = torch.cat([F.linear(x, one.weight, one.bias) for one in chosen], dim=-1)
            assert found.dtype == torch.bfloat16
            assert found.equal(expected)
    assert layers[0](x).dtype == torch.float32
