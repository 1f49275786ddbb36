"""What a model is shown while it learns, and afterwards."""

from typing import get_args

import pytest
import torch
from torch import Tensor

from saccade.errors import ConfigError
from saccade.tasks.classification.vary import Vary, VarySettings


def kept(count: int = 5, side: int = 40) -> Tensor:
    rng = torch.Generator().manual_seed(3)
    return torch.randint(256, (count, 3, side, side), generator=rng, dtype=torch.uint8)


CROPS = get_args(VarySettings.__annotations__["crop"])
POLICIES = get_args(VarySettings.__annotations__["policy"])


@pytest.mark.parametrize("crop", CROPS)
@pytest.mark.parametrize("policy", POLICIES)
def test_images_come_in_the_size_that_is_seen_each_by_itself(crop: str, policy: str) -> None:
    how = VarySettings(crop=crop, policy=policy, flip=True, jitter=0.3, erase=0.5)  # type: ignore[arg-type]
    vary = Vary(how, image=32, kept=40, pixels="imagenet")
    images, rows = kept(), torch.arange(5)
    drawn = vary.draw(rows, seed=1, epoch=2)
    together = vary.shown(images, drawn).images
    assert together.shape == (5, 3, 32, 32)
    assert together.isfinite().all()
    for i in range(5):
        alone = vary.shown(images[i : i + 1], vary.draw(rows[i : i + 1], seed=1, epoch=2)).images
        assert torch.allclose(alone[0], together[i], atol=1e-5)
    assert vary.plain(images).shape == (5, 3, 32, 32)


def test_without_settings_nothing_varies_and_pixels_are_normalised() -> None:
    vary, images = Vary(VarySettings(), image=40, kept=40, pixels="half"), kept()
    drawn = vary.draw(torch.arange(5), seed=0, epoch=0)
    expected = images.float() / 127.5 - 1
    assert torch.allclose(vary.shown(images, drawn).images, expected, atol=1e-6)
    assert torch.allclose(vary.plain(images), expected, atol=1e-6)


def test_what_is_cut_is_shown_from_its_middle_and_else_as_a_whole() -> None:
    images = torch.zeros(1, 3, 40, 40, dtype=torch.uint8)
    images[:, :, :2] = 255  # an edge that the middle does not have
    cut = Vary(VarySettings(crop="box"), image=32, kept=40, pixels="half").plain(images)
    whole = Vary(VarySettings(), image=32, kept=40, pixels="half").plain(images)
    assert cut.max() == -1
    assert whole.max() > 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [("smallest", 0.0), ("erase", 1.5), ("jitter", -0.1), ("erased", 0.01), ("mixed", 2.0)],
)
def test_what_is_no_share_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"{name}={value}"):
        VarySettings(**{name: value})  # type: ignore[arg-type]
