"""Gated convolutions: the formula, and how far they see."""

import pytest
import torch
from torch import Tensor, nn

from saccade.blocks.conv import GatedConv, pad_around


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fresh(kernel: int) -> GatedConv:
    torch.manual_seed(0)
    return GatedConv(4, kernel=kernel, dropout=0.0).double()


@pytest.mark.parametrize("kernel", [2, 3])
def test_one_half_of_the_convolution_gates_the_other(kernel: int) -> None:
    layer, x = fresh(kernel), randn(2, 6, 4, seed=1)
    nn.init.normal_(layer.conv.bias)
    weight, bias = layer.conv.weight, layer.conv.bias  # (2D, D, kernel)
    rows = []
    for t in range(6 - kernel + 1):
        mixed = sum(x[:, t + j] @ weight[:, :, j].T for j in range(kernel)) + bias
        rows.append(mixed[:, :4] * mixed[:, 4:].sigmoid())
    torch.testing.assert_close(layer(x), torch.stack(rows, dim=1))


@pytest.mark.parametrize("kernel", [2, 3, 4, 5])
def test_padding_around_keeps_the_length_and_centres_the_kernel(kernel: int) -> None:
    x = randn(1, 6, 4, seed=1)
    padded = pad_around(x, kernel)
    assert fresh(kernel)(padded).shape == x.shape
    before = (kernel - 1) // 2
    assert torch.equal(padded[:, before : before + 6], x)
    assert padded.count_nonzero() == x.count_nonzero()


@pytest.mark.parametrize(("depth", "kernel"), [(1, 3), (3, 3), (2, 4), (4, 2)])
def test_a_stack_sees_exactly_depth_times_kernel_less_one_neighbours(
    depth: int, kernel: int
) -> None:
    layers = [fresh(kernel) for _ in range(depth)]
    x = y = randn(1, 41, 4, seed=1).requires_grad_()
    for layer in layers:
        y = layer(pad_around(y, kernel))
    (gradient,) = torch.autograd.grad(y[0, 20].sum(), x)
    seen = gradient[0].abs().sum(dim=-1).nonzero()[:, 0]
    assert len(seen) == depth * (kernel - 1) + 1
    assert seen.tolist() == list(range(int(seen[0]), int(seen[-1]) + 1))


def test_the_norm_of_a_kernel_and_its_direction_are_separate_weights() -> None:
    names = {name for name, _ in fresh(3).named_parameters()}
    assert names == {
        "conv.bias",
        "conv.parametrizations.weight.original0",
        "conv.parametrizations.weight.original1",
    }
