"""Pixels are moved away from 0 and 1, and come back."""

import torch

from saccade.models.image_tokens.pixels import map_pixels, unmap_pixels

EVERY = torch.arange(256, dtype=torch.uint8).expand(1, 3, 1, 256)


def test_every_pixel_comes_back() -> None:
    for dtype in (torch.float32, torch.float64):
        assert torch.equal(unmap_pixels(map_pixels(EVERY, dtype)), EVERY)


def test_pixels_lie_evenly_from_a_tenth_to_nine_tenths() -> None:
    expected = torch.linspace(0.1, 0.9, 256, dtype=torch.float64).expand(1, 3, 1, 256)
    torch.testing.assert_close(map_pixels(EVERY, torch.float64), expected)


def test_what_lies_beyond_is_the_nearest_pixel_that_there_is() -> None:
    beyond = torch.tensor([0.0, 0.0999, 0.9001, 1.0]).expand(1, 3, 1, 4)
    assert unmap_pixels(beyond)[0, 0, 0].tolist() == [0, 0, 255, 255]
