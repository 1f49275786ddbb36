"""Augmentation policies: operations against Pillow's, and each image by itself."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torch import Tensor

from saccade.data.images.augment import Augment, AugmentStep
from saccade.data.images.operations import OPERATIONS, blurred, operate
from saccade.data.images.policies import CIFAR, RAND, AutoAugment, RandAugment, ThreeAugment
from tests.launches import launches

SIDE = 24


def picture(seed: int = 0, height: int = SIDE, width: int = SIDE) -> Tensor:
    """Smooth colours and some noise, as photographs have."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] / max(height, width)
    smooth = np.stack([60 + 120 * y, 200 - 150 * x * y, 30 + 90 * (x + y)], axis=-1)
    noisy = (smooth + rng.normal(0, 12, smooth.shape)).clip(0, 255).astype(np.uint8)
    return torch.from_numpy(noisy).permute(2, 0, 1)[None]


def pillow(bytes_: Tensor) -> Image.Image:
    return Image.fromarray(bytes_[0].permute(1, 2, 0).numpy())


def ours(name: str, amount: float, bytes_: Tensor) -> Tensor:
    number = torch.tensor([[OPERATIONS.index(name)]])
    return operate(bytes_.float() / 255, number, torch.tensor([[float(amount)]]))


POINTWISE: list[tuple[str, float, Callable[[Image.Image], Image.Image]]] = [
    ("identity", 0.0, lambda image: image),
    *[("brightness", f, lambda i, f=f: ImageEnhance.Brightness(i).enhance(f)) for f in (0.1, 1.9)],
    *[("contrast", f, lambda i, f=f: ImageEnhance.Contrast(i).enhance(f)) for f in (0.1, 1.9)],
    *[("colour", f, lambda i, f=f: ImageEnhance.Color(i).enhance(f)) for f in (0.1, 1.9)],
    *[("sharpness", f, lambda i, f=f: ImageEnhance.Sharpness(i).enhance(f)) for f in (0.1, 1.9)],
    *[("posterize", b, lambda i, b=b: ImageOps.posterize(i, b)) for b in (1, 4, 8)],
    *[("solarize", t, lambda i, t=t: ImageOps.solarize(i, t)) for t in (0, 100, 256)],
    ("invert", 0.0, ImageOps.invert),
    ("autocontrast", 0.0, ImageOps.autocontrast),
    ("equalize", 0.0, ImageOps.equalize),
]


@pytest.mark.parametrize(("name", "amount", "theirs"), POINTWISE)
@pytest.mark.parametrize("shape", [(24, 24), (40, 17)])
def test_an_operation_is_pillows(
    name: str,
    amount: float,
    theirs: Callable[[Image.Image], Image.Image],
    shape: tuple[int, int],
) -> None:
    bytes_ = picture(1, *shape)
    expected = torch.from_numpy(np.array(theirs(pillow(bytes_)))).permute(2, 0, 1)
    # Pillow rounds what it blends with, up to ½ · |1 − f|, and cuts off what it gives.
    found = 255 * ours(name, amount, bytes_)[0]
    torch.testing.assert_close(found, expected.float(), rtol=0, atol=1.5)


def test_flat_images_stay_flat() -> None:
    flat = torch.full((1, 3, 8, 8), 77, dtype=torch.uint8)
    for name in ("autocontrast", "equalize"):
        torch.testing.assert_close(255 * ours(name, 0.0, flat), flat.float())


MOVES = {
    "shear-x": lambda a, w, h: (1, a, -a * h / 2, 0, 1, 0),
    "shear-y": lambda a, w, h: (1, 0, 0, a, 1, -a * w / 2),
    "translate-x": lambda a, w, h: (1, 0, a * w, 0, 1, 0),
    "translate-y": lambda a, w, h: (1, 0, 0, 0, 1, a * h),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("amount", [0.25, -0.25])
def test_a_movement_is_pillows(name: str, amount: float) -> None:
    bytes_ = picture(2, 32, 24)
    matrix = MOVES[name](amount, 24, 32)
    grey = (128, 128, 128)
    filter_ = Image.Resampling.BILINEAR
    moved = pillow(bytes_).transform(
        (24, 32), Image.Transform.AFFINE, matrix, filter_, fillcolor=grey
    )
    expected = torch.from_numpy(np.array(moved)).permute(2, 0, 1).float()
    found = 255 * ours(name, amount, bytes_)[0]
    inside = expected.sum(dim=0) != 3 * 128
    inside[1:-1, 1:-1] &= (
        inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
    )
    inside[[0, -1], :] = inside[:, [0, -1]] = False  # they fill in differently at the very edge
    assert inside.sum() > 100
    torch.testing.assert_close(found[:, inside], expected[:, inside], rtol=0, atol=1.5)


def test_a_rotation_is_pillows() -> None:
    bytes_ = picture(3)
    turned = pillow(bytes_).rotate(-30, Image.Resampling.BILINEAR)
    expected = torch.from_numpy(np.array(turned)).permute(2, 0, 1).float()
    found = 255 * ours("rotate", 30.0, bytes_)[0]
    middle = slice(7, 17)
    other = 255 * ours("rotate", -30.0, bytes_)[0]
    gaps = [(x - expected)[:, middle, middle].abs().max() for x in (found, other)]
    assert min(gaps) < 1.5 < max(gaps)


def test_a_blur_is_a_gaussian() -> None:
    bytes_ = picture(4, 40, 40)
    theirs = pillow(bytes_).filter(ImageFilter.GaussianBlur(1.5))
    expected = torch.from_numpy(np.array(theirs)).permute(2, 0, 1).float()[:, 8:-8, 8:-8]
    found = 255 * blurred(bytes_.float() / 255, torch.tensor([1.5]))[0, :, 8:-8, 8:-8]
    torch.testing.assert_close(found, expected, rtol=0, atol=2.5)  # theirs is made of boxes


def test_one_operation_after_another_whatever_the_other_images_have() -> None:
    images = picture(5).float().repeat(len(OPERATIONS), 1, 1, 1) / 255
    number = torch.arange(len(OPERATIONS))[:, None]
    once = operate(images, number, torch.full_like(number, 0.75, dtype=torch.float32))
    for name, found in zip(OPERATIONS, once):
        torch.testing.assert_close(found, ours(name, 0.75, picture(5))[0], rtol=0, atol=1e-6)
    amount = torch.full((len(OPERATIONS), 2), 0.75)
    twice = operate(images, torch.cat([number, number.flip(0)], dim=1), amount)
    again = operate(once, number.flip(0), amount[:, :1])
    torch.testing.assert_close(twice, again, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "names",
    [
        ["rotate", "colour"],
        ["posterize"],
        ["contrast", "sharpness"],
        ["equalize", "translate-x"],
        ["autocontrast"],
        ["invert"],
    ],
)
def test_what_no_image_asks_for_is_left_out_and_makes_no_difference(names: list[str]) -> None:
    images = torch.cat([picture(seed) for seed in range(len(names) + 1)]).float() / 255
    number = torch.tensor([[OPERATIONS.index(name)] for name in ["identity", *names]])
    amount = torch.full((len(images), 1), 2.0)
    every = operate(images, number, amount)
    torch.testing.assert_close(operate(images, number, amount, [names]), every, rtol=0, atol=1e-6)
    fewer = launches(lambda: operate(images, number, amount, [names])).total()
    assert fewer < launches(lambda: operate(images, number, amount)).total() - 20


POLICIES: list[AugmentStep] = [RandAugment(), AutoAugment(), ThreeAugment()]


@pytest.mark.parametrize("policy", POLICIES)
def test_each_image_is_changed_by_itself_and_stays_an_image(policy: AugmentStep) -> None:
    images = torch.cat([picture(seed) for seed in range(32)])
    indices = torch.arange(32)
    augment = Augment((policy,))
    changed = augment(images, indices, seed=3, epoch=1)
    assert changed.min() >= -1e-6
    assert changed.max() <= 1 + 1e-6
    alone = torch.cat(
        [augment(images[i : i + 1], indices[i : i + 1], seed=3, epoch=1) for i in range(32)]
    )
    torch.testing.assert_close(changed, alone, rtol=0, atol=1e-6)
    assert not torch.equal(changed, augment(images, indices, seed=3, epoch=2))
    assert (changed.flatten(1) - images.flatten(1) / 255).abs().amax(dim=1).gt(
        0.01
    ).float().mean() > 0.3


@pytest.mark.parametrize(("policy", "most"), list(zip(POLICIES, (170, 160, 40))))
def test_a_policy_launches_few_operations_for_so_many(policy: AugmentStep, most: int) -> None:
    images, u = (
        torch.cat([picture(0), picture(1)]).float() / 255,
        torch.full((2, policy.draws), 0.3),
    )
    assert launches(lambda: policy(images, u)).total() < most


def test_every_operation_of_a_policy_happens_about_as_often_as_it_should() -> None:
    seen = torch.zeros(len(OPERATIONS))
    u = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    numbers = torch.tensor([OPERATIONS.index(name) for name in RAND])
    seen.index_add_(0, numbers[(u * len(RAND)).long()], torch.ones_like(u))
    assert (seen[numbers] / len(u) - 1 / len(RAND)).abs().max() < 0.01
    assert {name for rule in CIFAR for name, _, _ in rule} <= set(OPERATIONS)
    assert len(CIFAR) == 25
