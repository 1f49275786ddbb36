"""Bytes as encoders want them."""

import torch

from saccade.data.images.augment import HALF, IMAGENET, Augment
from saccade.models.vision.standard_pixels import StandardPixels


def test_it_is_what_classifiers_are_shown() -> None:
    rng = torch.Generator().manual_seed(0)
    images = torch.randint(256, (2, 3, 8, 8), generator=rng, dtype=torch.uint8)
    for norm in (IMAGENET, HALF):
        expected = Augment((norm,)).apply(images, torch.zeros(2, 0))
        torch.testing.assert_close(StandardPixels(norm)(images), expected)
    assert not StandardPixels().state_dict()
