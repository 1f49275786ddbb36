"""Patches in reading order, and positions between positions."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.blocks.patches import Patches, resized
from saccade.errors import ConfigError

size, seed = st.integers(1, 4), st.integers(0, 999)


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(high=size, wide=size, side=size, seed=seed)
def test_patches_are_a_convolution_that_strides_as_far_as_it_reaches(
    high: int, wide: int, side: int, seed: int
) -> None:
    patches = Patches(5, side=side).double()
    image = randn(2, 3, high * side, wide * side, seed=seed)
    kernel = patches.project.weight.view(5, 3, side, side)
    expected = F.conv2d(image, kernel, patches.project.bias, stride=side)
    torch.testing.assert_close(patches(image), expected.flatten(2).mT)
    assert patches.shape(image) == (high, wide)


@pytest.mark.parametrize(("height", "width"), [(9, 8), (8, 9), (0, 8)])
def test_a_picture_that_patches_do_not_tile_is_refused(height: int, width: int) -> None:
    with pytest.raises(ConfigError) as error:
        Patches(5, side=4)(torch.zeros(1, 3, height, width))
    assert str(error.value) == (
        f"an image of {height}×{width} pixels does not divide into patches of 4; "
        "resize it to multiples of 4"
    )


@given(high=size, wide=size, seed=seed)
def test_a_grid_of_the_same_shape_stays_as_it_is(high: int, wide: int, seed: int) -> None:
    table = randn(high * wide, 3, seed=seed)
    assert torch.equal(resized(table, (high, wide), (high, wide)), table)


@given(high=size, wide=size, taller=size, wider=size, seed=seed)
def test_resizing_mirrors_and_turns_with_the_grid(
    high: int, wide: int, taller: int, wider: int, seed: int
) -> None:
    table = randn(high * wide, 3, seed=seed)

    def grid(table: Tensor, shape: tuple[int, int]) -> Tensor:
        return table.unflatten(0, shape)

    plain = grid(resized(table, (high, wide), (taller, wider)), (taller, wider))
    mirrored = grid(table, (high, wide)).flip(1).flatten(0, 1)
    again = grid(resized(mirrored, (high, wide), (taller, wider)), (taller, wider))
    torch.testing.assert_close(again, plain.flip(1))
    turned = grid(table, (high, wide)).transpose(0, 1).flatten(0, 1)
    again = grid(resized(turned, (wide, high), (wider, taller)), (wider, taller))
    torch.testing.assert_close(again, plain.transpose(0, 1))


@given(high=size, wide=size, taller=size, wider=size)
def test_what_is_the_same_everywhere_stays_so(
    high: int, wide: int, taller: int, wider: int
) -> None:
    table = torch.tensor([[1.0, -2.0]], dtype=torch.float64).repeat(high * wide, 1)
    expected = table[:1].repeat(taller * wider, 1)
    torch.testing.assert_close(resized(table, (high, wide), (taller, wider)), expected)
