"""Linear layers in eight bits: near the exact ones, and row by row."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.blocks.inference.affine import affine, scores
from saccade.blocks.inference.int8 import Int8


def layer(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    rng = torch.Generator().manual_seed(seed)
    x, weight, bias = (torch.randn(s, generator=rng) for s in ((9, 64), (48, 64), (48,)))
    return x * torch.logspace(-2, 2, 9)[:, None], weight, bias  # rows of very unequal size


@pytest.mark.parametrize("relu", [False, True])
def test_the_error_is_that_of_rounding_to_eight_bits(relu: bool) -> None:
    x, weight, bias = layer()
    y, exact = Int8(weight, bias, relu=relu)(x), F.linear(x, weight, bias)
    exact = exact.relu() if relu else exact
    # Each product has two factors that are off by at most half a step of 1/127 of the largest.
    steps = x.abs().amax(dim=1)[:, None] * weight.abs().amax(dim=1) / 127
    assert ((y - exact).abs() < steps * 64**0.5 * 1.5).all()
    assert (y - exact).norm() < 0.02 * exact.norm()


def test_what_a_row_becomes_does_not_depend_on_the_others() -> None:
    x, weight, bias = layer()
    linear = Int8(weight, bias, relu=False)
    alone = torch.cat([linear(row) for row in x.split(1)])
    torch.testing.assert_close(linear(x), alone, rtol=1e-6, atol=1e-6)


def test_a_row_of_zeros_gives_the_bias() -> None:
    _, weight, bias = layer()
    torch.testing.assert_close(Int8(weight, bias, relu=False)(torch.zeros(2, 64))[1], bias)
    assert Int8(weight, None, relu=False)(torch.zeros(1, 64)).eq(0).all()


@pytest.mark.parametrize("rows", [1, 9])
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_packed_layers_compute_what_plain_ones_do(
    rows: int, relu: bool, dtype: torch.dtype
) -> None:
    x, weight, bias = (y.to(dtype) for y in layer())
    exact = F.linear(x[:rows], weight, bias)
    y = affine(weight, bias, precision="float32", relu=relu)(x[:rows])
    torch.testing.assert_close(y, exact.relu() if relu else exact, rtol=1e-5, atol=1e-4)


def test_halves_are_halves() -> None:
    x, weight, _ = layer()
    y = scores(weight, None, precision="bfloat16")(x.bfloat16())
    torch.testing.assert_close(y.float(), x @ weight.T, rtol=0.02, atol=0.05 * float(x.abs().max()))
