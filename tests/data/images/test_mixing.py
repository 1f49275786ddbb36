"""Mixed images and classes: what is an image's own adds up, whoever its partner is."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.images.mixing import QUANTILES, Mixing, quantiles
from saccade.errors import ConfigError


def drawn(seed: int, count: int) -> Tensor:
    return torch.rand(count, Mixing.draws, generator=torch.Generator().manual_seed(seed))


def marked(count: int, height: int = 8, width: int = 12) -> Tensor:
    """Image i has the value i everywhere."""
    return torch.arange(float(count))[:, None, None, None].expand(-1, 3, height, width)


@given(st.integers(0, 999), st.sampled_from([(1.0, 0.0), (0.0, 1.0), (0.8, 1.0), (0.2, 0.4)]))
def test_the_share_of_an_image_is_that_of_its_pixels(
    seed: int, alphas: tuple[float, float]
) -> None:
    images, u = marked(6), drawn(seed, 6)
    mixed = Mixing(mixup=alphas[0], cutmix=alphas[1])(images, u)
    own, other = torch.arange(6.0), torch.arange(6.0).flip(0)
    expected = mixed.own * own + (1 - mixed.own) * other
    assert torch.allclose(mixed.images.mean(dim=(1, 2, 3)), expected, atol=1e-5)
    classes = mixed.also(torch.eye(6))
    assert torch.allclose(classes.sum(dim=1), torch.ones(6))
    assert torch.allclose(classes.diagonal(), mixed.own)


def test_mixup_is_even_and_cutmix_is_a_box() -> None:
    images, u = marked(6), drawn(0, 6)
    even = Mixing(mixup=1.0)(images, u).images
    assert (even == even[:, :1, :1, :1]).all()
    cut = Mixing(cutmix=1.0)(images, u).images
    for own, one in enumerate(cut[:, 0]):
        foreign = one != own
        assert set(one.unique().tolist()) <= {float(own), float(5 - own)}
        rows, columns = foreign.any(dim=1), foreign.any(dim=0)
        assert foreign.sum() == rows.sum() * columns.sum()  # all of a rectangle


def test_either_comes_half_the_time_and_chance_leaves_images_alone() -> None:
    images, u = marked(2).repeat(1000, 1, 1, 1), drawn(1, 2000)
    both = Mixing(mixup=1.0, cutmix=1.0, chance=0.25)(images, u)
    untouched = (both.own == 1).float().mean()
    assert 0.7 < untouched < 0.8
    values = both.images[:, 0].flatten(1)
    even = ((values == values[:, :1]).all(dim=1) & (both.own < 1)).float().mean()
    assert 0.09 < even < 0.16
    assert torch.equal(Mixing()(images, u).images, images)
    assert not Mixing(chance=0.0, mixup=1.0).asked


@pytest.mark.parametrize("alpha", [0.2, 0.4, 0.5, 0.8, 1.0, 2.0])
def test_levels_are_beta_distributed(alpha: float) -> None:
    found = np.array(quantiles(alpha))
    draws = np.random.default_rng(0).beta(alpha, alpha, 400_000)
    expected = np.quantile(draws, np.linspace(0, 1, QUANTILES))
    assert np.abs(found - expected)[40:-40].max() < 0.01
    assert (np.diff(found) >= 0).all()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="mixup=-1"):
        Mixing(mixup=-1.0)
    with pytest.raises(ConfigError, match="chance=2"):
        Mixing(chance=2.0)
