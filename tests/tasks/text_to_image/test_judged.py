"""Judging drawn images of shapes: scenes as they are fit, those of others do not."""

from typing import Any

import pytest
import torch
from torch import nn

from saccade.errors import ConfigError
from saccade.tasks.captioning.data import CaptioningSettings, read_captioned
from saccade.tasks.text_to_image.drawer import Drawing, Drawn, ImageDrawer
from saccade.tasks.text_to_image.judged import judge, judged

COUNT = 20


@pytest.fixture(scope="module")
def read() -> Any:
    from saccade.data.shapes import ShapesSettings

    settings = CaptioningSettings(scenes=COUNT, shapes=ShapesSettings(most=2))
    return read_captioned(settings, "test").only(torch.arange(COUNT), "some")


class Unchanged(nn.Module):
    """A discrete VAE that loses nothing."""

    def reconstruct(self, images: torch.Tensor) -> torch.Tensor:
        return images


class GivenImages(ImageDrawer):
    """Whatever it is asked for, it draws these."""

    def __init__(self, images: torch.Tensor) -> None:
        self.given, self.device = images, torch.device("cpu")
        self.dvae = Unchanged()  # type: ignore[assignment]

    def draw(self, prompts: Any, how: Drawing, **rest: Any) -> list[Drawn]:
        return [Drawn([], 0.0) for _ in prompts]

    def images(self, drawn: Any) -> torch.Tensor:
        return self.given


@pytest.mark.slow
def test_scenes_show_what_their_captions_say(read: Any) -> None:
    images = read.images[torch.arange(COUNT)]
    found = judge([texts[0] for texts in read.captions], images)
    assert (found["all"] or 0) >= 0.9
    assert (found["objects"] or 0) >= 0.95


def test_who_draws_the_scenes_themselves_reaches_the_upper_bound(read: Any) -> None:
    images = read.images[torch.arange(COUNT)]
    found = judged(GivenImages(images), read, count=COUNT, how=Drawing())
    assert found["drawn"] == found["real"] == found["again"]
    assert found["shuffled"]["all"] < 0.3


def test_prompts_without_relations_have_no_share_of_them(read: Any) -> None:
    images = read.images[torch.arange(2)]
    assert judge(["a red circle", "a blue star"], images)["relations"] is None


def test_noise_shows_nothing(read: Any) -> None:
    rng = torch.Generator().manual_seed(0)
    noise = torch.randint(256, (COUNT, 3, 64, 64), generator=rng, dtype=torch.uint8)
    assert judged(GivenImages(noise), read, count=COUNT, how=Drawing())["drawn"]["all"] == 0


@pytest.mark.parametrize("count", [0, COUNT + 1])
def test_as_many_are_judged_as_there_are(read: Any, count: int) -> None:
    with pytest.raises(ConfigError, match=f"judged={count} must be from 1 to {COUNT}"):
        judged(GivenImages(torch.empty(0)), read, count=count, how=Drawing())


def test_only_shapes_can_be_judged(read: Any) -> None:
    from dataclasses import replace

    with pytest.raises(ConfigError, match="only images of the built-in shapes"):
        judged(GivenImages(torch.empty(0)), replace(read, scenes=[]), count=1, how=Drawing())


def test_the_likest_of_several_is_judged_beside_the_first(read: Any) -> None:
    images = read.images[torch.arange(COUNT)]
    black = torch.zeros_like(images)
    several = torch.stack([black, images, black], dim=1).flatten(0, 1)
    found = judged(
        GivenImages(several),
        read,
        count=COUNT,
        how=Drawing(),
        best_of=3,
        similarity=lambda some, prompt: some.float().mean(dim=(1, 2, 3)),
    )
    assert found["drawn"]["all"] == 0
    assert found["best"] == found["real"]
    assert found["best_of"] == 3
