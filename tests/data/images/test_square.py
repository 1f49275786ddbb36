"""Any image becomes a square one."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import interpolate

from saccade.data.images.square import GREY, Fit, fit_square

FITS: list[Fit] = ["crop", "squeeze", "pad"]


def noise(height: int, width: int) -> Tensor:
    rng = torch.Generator().manual_seed(height * 100 + width)
    return torch.randint(64, 192, (3, height, width), generator=rng, dtype=torch.uint8)


def resized(image: Tensor, size: tuple[int, int]) -> Tensor:
    found = interpolate(image[None].double(), size, mode="bicubic", antialias=True)[0]
    return found.round().clamp(0, 255)


@given(
    h=st.integers(1, 40), w=st.integers(1, 40), size=st.integers(1, 20), fit=st.sampled_from(FITS)
)
def test_it_is_square_and_bytes(h: int, w: int, size: int, fit: Fit) -> None:
    found = fit_square(noise(h, w), size, fit)
    assert found.shape == (3, size, size)
    assert found.dtype == torch.uint8


@pytest.mark.parametrize("fit", FITS)
def test_a_square_of_the_size_stays_as_it_is(fit: Fit) -> None:
    assert torch.equal(fit_square(noise(9, 9), 9, fit), noise(9, 9))


@pytest.mark.parametrize(("h", "w"), [(30, 20), (20, 30), (8, 50)])
def test_each_way_is_what_torch_makes_of_it(h: int, w: int) -> None:
    image, side = noise(h, w), min(h, w)
    top, left = (h - side) // 2, (w - side) // 2
    middle = image[:, top : top + side, left : left + side]
    assert (fit_square(image, 10, "squeeze") - resized(image, (10, 10))).abs().max() <= 1
    rim = fit_square(image, 10, "crop") - resized(
        middle, (10, 10)
    )  # there Pillow sees beyond the cut
    assert rim[:, 3:-3, 3:-3].abs().max() <= 1
    padded = fit_square(image, 10, "pad")
    tall, wide = round(10 * h / max(h, w)), round(10 * w / max(h, w))
    top, left = (10 - tall) // 2, (10 - wide) // 2
    inside = padded[:, top : top + tall, left : left + wide]
    assert (inside - resized(image, (tall, wide))).abs().max() <= 1
    assert (padded == GREY).all(dim=0).sum() >= 100 - tall * wide
