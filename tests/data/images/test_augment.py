"""Each step does what it says, and an example's luck depends on nothing but its address."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageEnhance
from torch import Tensor

from saccade.data.images.augment import (
    HALF,
    IMAGENET,
    Augment,
    AugmentStep,
    CentreCrop,
    ColourJitter,
    Erase,
    Flip,
    Normalise,
    PadCrop,
    Resize,
    ResizedCrop,
    grey,
    random_boxes,
)
from saccade.errors import ConfigError

STEPS: tuple[AugmentStep, ...] = (
    ResizedCrop(size=12),
    PadCrop(padding=3),
    Flip(),
    ColourJitter(),
    IMAGENET,
    Erase(chance=0.7),
)
RANDOM = Augment(STEPS)


def noise(count: int, height: int = 16, width: int = 16, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, height, width), generator=rng, dtype=torch.uint8)


def draws(count: int, step: AugmentStep, seed: int = 0) -> Tensor:
    return torch.rand(count, step.draws, generator=torch.Generator().manual_seed(seed))


@settings(max_examples=10)
@given(
    order=st.permutations(range(6)),
    cut=st.integers(1, 5),
    seed=st.integers(0, 2**31),
    epoch=st.integers(0, 1000),
)
def test_an_example_comes_out_the_same_in_any_batch(
    order: list[int], cut: int, seed: int, epoch: int
) -> None:
    images, indices = noise(6), torch.arange(100, 106)
    whole = RANDOM(images, indices, seed=seed, epoch=epoch)
    for part in (order[:cut], order[cut:]):
        found = RANDOM(images[part], indices[part], seed=seed, epoch=epoch)
        torch.testing.assert_close(found, whole[part], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "step", [step for step in STEPS if step.draws], ids=lambda s: type(s).__name__
)
def test_every_random_step_changes_with_seed_epoch_and_index(step: AugmentStep) -> None:
    augment, images = Augment((step,)), noise(1).expand(32, -1, -1, -1)
    indices = torch.arange(32)
    base = augment(images, indices, seed=1, epoch=2)
    assert torch.equal(base, augment(images, indices, seed=1, epoch=2))
    assert not torch.equal(base, augment(images, indices, seed=2, epoch=2))
    assert not torch.equal(base, augment(images, indices, seed=1, epoch=3))
    assert not torch.equal(base, augment(images, indices + 1, seed=1, epoch=2))


def test_two_steps_alike_do_not_share_their_luck() -> None:
    images = noise(64)
    twice = Augment((Flip(), Flip()))(images, torch.arange(64))
    same = [torch.equal(a, b) for a, b in zip(twice, images.float() / 255)]
    assert 15 < sum(same) < 49  # shared, every image would have come back


def test_bytes_and_floats_mean_the_same() -> None:
    images, indices = noise(3), torch.arange(3)
    assert torch.equal(RANDOM(images, indices), RANDOM(images.float() / 255, indices))


def test_without_random_steps_nothing_is_random() -> None:
    augment = Augment((Resize(size=20), CentreCrop(size=16), HALF))
    images = noise(4, 24, 30)
    first = augment(images, torch.arange(4))
    assert torch.equal(first, augment(images, torch.arange(4) + 9, seed=5, epoch=6))
    assert first.shape == (4, 3, 16, 16)


def test_a_flip_is_a_flip_and_as_frequent_as_asked() -> None:
    images = torch.rand(1_000, 3, 2, 5)
    found = Flip(chance=0.3)(images, draws(1_000, Flip()))
    flipped = torch.tensor([not torch.equal(a, b) for a, b in zip(found, images)])
    assert torch.equal(found[flipped], images[flipped].flip(3))
    assert 240 < int(flipped.sum()) < 360
    assert torch.equal(Flip(chance=0.0)(images, draws(1_000, Flip())), images)
    assert torch.equal(Flip(chance=1.0)(images, draws(1_000, Flip())), images.flip(3))


@given(
    height=st.integers(1, 60),
    width=st.integers(1, 60),
    low=st.floats(0.01, 1),
    wide=st.floats(1, 5),
    seed=st.integers(0, 99),
)
def test_boxes_lie_inside_the_image(
    height: int, width: int, low: float, wide: float, seed: int
) -> None:
    u = torch.rand(64, 22, generator=torch.Generator().manual_seed(seed))
    u[0] = 1 - 2**-24  # the largest that is ever drawn
    u[1] = 0
    boxes = random_boxes(u, height, width, share=(low, 1.0), proportions=(1 / wide, wide))
    top, left, tall, across = boxes.unbind(dim=1)
    assert torch.equal(boxes, boxes.round())
    assert (boxes[:, :2] >= 0).all()
    assert (boxes[:, 2:] >= 1).all()
    assert (top + tall <= height).all()
    assert (left + across <= width).all()


def test_boxes_have_the_area_and_the_proportions_asked_for() -> None:
    u = torch.rand(20_000, 22, generator=torch.Generator().manual_seed(0))
    boxes = random_boxes(u, 200, 300, share=(0.1, 0.3), proportions=(0.5, 2.0))
    area = boxes[:, 2] * boxes[:, 3] / (200 * 300)
    ratio = (boxes[:, 3] / boxes[:, 2]).log()
    assert 0.095 < area.min() < 0.11
    assert 0.295 < area.max() < 0.305
    assert abs(float(area.mean()) - 0.2) < 0.002
    assert ratio.abs().max() < 0.72
    assert abs(float(ratio.mean())) < 0.02
    centre = (boxes[:, :2] + boxes[:, 2:] / 2).mean(dim=0)
    torch.testing.assert_close(centre, torch.tensor([100.0, 150.0]), rtol=0.01, atol=0)


def test_where_no_box_fits_the_largest_middle_one_is_taken() -> None:
    u = torch.rand(50, 22, generator=torch.Generator().manual_seed(0))
    boxes = random_boxes(u, 10, 100, share=(1.0, 1.0), proportions=(3 / 4, 4 / 3))
    assert boxes.unique(dim=0).tolist() == [[0, 43, 10, 13]]


def test_the_whole_image_is_a_crop_too() -> None:
    images = noise(4).float() / 255
    step = ResizedCrop(size=16, share=(1.0, 1.0), proportions=(1.0, 1.0))
    torch.testing.assert_close(step(images, draws(4, step)), images)


def test_a_padded_crop_is_a_window_of_the_mirrored_image() -> None:
    step = PadCrop(padding=2)
    images = noise(400, 5, 7).float()
    found = step(images, draws(400, step))
    mirrored = torch.nn.functional.pad(images, [2] * 4, mode="reflect")
    seen: Counter[tuple[int, int]] = Counter()
    for wide, window in zip(mirrored, found):
        places = [
            (y, x)
            for y in range(5)
            for x in range(5)
            if torch.equal(wide[:, y : y + 5, x : x + 7], window)
        ]
        seen.update(places)
        assert len(places) == 1
    assert len(seen) == 25


def test_colours_are_jittered_as_pillow_does_it() -> None:
    """One factor at a time, against Pillow's own."""
    image = noise(1)
    picture = Image.fromarray(image[0].permute(1, 2, 0).numpy())
    makers = {
        "brightness": ImageEnhance.Brightness,
        "contrast": ImageEnhance.Contrast,
        "saturation": ImageEnhance.Color,
    }
    for place, (name, maker) in enumerate(makers.items()):
        only = dict.fromkeys(makers, 0.0) | {name: 0.6}
        for value in (0.0, 0.3, 0.9):
            u = torch.full((1, 3), 0.5)
            u[0, place] = value
            found = ColourJitter(**only)(image.float() / 255, u)[0].permute(1, 2, 0) * 255
            expected = maker(picture).enhance(1 + 0.6 * (2 * value - 1))
            levels = torch.from_numpy(np.array(expected)).float()
            assert (found - levels).abs().max() < 2.5


def test_jitter_of_nothing_is_nothing() -> None:
    step = ColourJitter(brightness=0.0, contrast=0.0, saturation=0.0)
    images = noise(4).float() / 255
    torch.testing.assert_close(step(images, draws(4, step)), images)
    assert (grey(torch.full((1, 3, 2, 2), 0.25)) - 0.25).abs().max() < 1e-6


def test_one_box_is_erased_as_often_and_as_large_as_asked() -> None:
    step = Erase(chance=0.4, share=(0.1, 0.3))
    found = step(torch.ones(1_000, 3, 20, 24), draws(1_000, step))
    gone = found == 0
    assert torch.equal(gone.any(dim=1), gone.all(dim=1))  # of every channel
    gone = gone[:, 0]
    hit = gone.any(dim=(1, 2))
    assert 340 < int(hit.sum()) < 460
    share = gone[hit].float().mean(dim=(1, 2))
    assert share.min() > 0.08
    assert share.max() < 0.33
    rows, columns = gone.any(dim=2).sum(dim=1), gone.any(dim=1).sum(dim=1)
    assert torch.equal(gone.sum(dim=(1, 2)), rows * columns)  # a box and nothing else


def test_normalising_undoes_as_written() -> None:
    images = noise(2).float() / 255
    found = IMAGENET(images, torch.empty(2, 0))
    mean, deviation = torch.tensor([IMAGENET.mean, IMAGENET.deviation])[..., None, None]
    torch.testing.assert_close(found * deviation + mean, images)
    assert HALF(torch.ones(1, 3, 1, 1), torch.empty(1, 0)).tolist() == [[[[1.0]]] * 3]


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Flip(chance=1.5), "Flip: chance=1.5 is not a probability, 0…1"),
        (lambda: Erase(chance=-1.0), "Erase: chance=-1.0 is not a probability"),
        (lambda: ResizedCrop(size=0), "ResizedCrop: size=0 is below 1"),
        (
            lambda: ResizedCrop(share=(0.0, 1.0)),
            r"share=\(0.0, 1.0\) is not a range above 0 and within 1",
        ),
        (lambda: Erase(proportions=(2.0, 1.0)), r"proportions=\(2.0, 1.0\) is not a range"),
        (lambda: PadCrop(padding=-1), "PadCrop: padding=-1 is below 0"),
        (lambda: ColourJitter(contrast=2.0), "ColourJitter: contrast=2.0 is not in 0…1"),
        (lambda: Resize(mode="area"), "Resize: mode='area' is neither"),
        (
            lambda: CentreCrop(size=9)(torch.ones(1, 3, 8, 9), torch.empty(1, 0)),
            "does not fit into 8×9",
        ),
        (lambda: PadCrop(padding=4)(torch.ones(1, 3, 4, 9), torch.rand(1, 2)), "lower it"),
        (lambda: Normalise(deviation=(1.0, 0.0, 1.0)), "deviation"),
    ],
)
def test_settings_that_cannot_work_are_refused(make: object, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        make()
