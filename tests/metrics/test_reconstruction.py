"""Errors of pixels, decibels, and how evenly codes are used."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.reconstruction import code_use, psnr, squared_error


def test_the_error_of_each_image_is_by_itself() -> None:
    black = torch.zeros(2, 3, 4, 4, dtype=torch.uint8)
    other = black.clone()
    other[1, 0, 0, 0] = 255
    assert squared_error(black, other).tolist() == pytest.approx([0, 1 / 48])


def test_decibels_grow_by_ten_as_the_error_falls_to_a_tenth() -> None:
    assert psnr(1.0) == 0
    assert psnr(0.01) - psnr(0.1) == pytest.approx(10)
    assert psnr(0.0) == 100


@given(used=st.integers(1, 9), unused=st.integers(0, 5), often=st.integers(1, 4))
def test_codes_used_alike_are_as_many_as_the_perplexity(used: int, unused: int, often: int) -> None:
    codes = torch.arange(used).repeat(often).view(often, used)
    assert code_use(codes, used + unused).perplexity == pytest.approx(used)
    assert code_use(codes, used + unused).dead == unused


def test_codes_used_unevenly_are_fewer() -> None:
    found = code_use(torch.tensor([0, 0, 0, 2]), 4)
    assert found.perplexity == pytest.approx(
        math.exp(-0.75 * math.log(0.75) - 0.25 * math.log(0.25))
    )
    assert found.dead == 2
