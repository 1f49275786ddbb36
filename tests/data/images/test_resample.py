"""Boxes of a batch, resized at once, are what each would be alone."""

import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.images.resample import cubic, resample, tent

FILTERS = {"bilinear": tent, "bicubic": cubic}
side = st.integers(1, 12)


def noise(*shape: int, seed: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def boxes_in(height: int, width: int, count: int, seed: int) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    tall = torch.randint(1, height + 1, (count,), generator=rng)
    wide = torch.randint(1, width + 1, (count,), generator=rng)
    u = torch.rand(2, count, generator=rng)
    top, left = (u[0] * (height - tall + 1)).long(), (u[1] * (width - wide + 1)).long()
    return torch.stack([top, left, tall, wide], dim=1).double()


@given(
    height=side,
    width=side,
    tall=side,
    wide=st.integers(2, 12),  # at a width of 1 torch's own is wrong: rows come out all alike
    mode=st.sampled_from([*FILTERS]),
    seed=st.integers(0, 99),
)
def test_a_box_is_cut_and_resized_as_torch_does_it(
    height: int, width: int, tall: int, wide: int, mode: str, seed: int
) -> None:
    images, boxes = noise(3, 2, height, width, seed=seed), boxes_in(height, width, 3, seed)
    found = resample(images, boxes, height=tall, width=wide, filter=FILTERS[mode])
    for image, box, mine in zip(images, boxes.long().tolist(), found):
        top, left, h, w = box
        cut = image[None, :, top : top + h, left : left + w]
        expected = F.interpolate(cut, (tall, wide), mode=mode, antialias=True)[0]
        torch.testing.assert_close(mine, expected)


@given(height=side, width=side, seed=st.integers(0, 99))
def test_the_whole_at_its_own_size_is_the_image(height: int, width: int, seed: int) -> None:
    images = noise(2, 3, height, width, seed=seed)
    whole = torch.tensor([0, 0, height, width]).double().expand(2, 4)
    for weigh in FILTERS.values():
        torch.testing.assert_close(
            resample(images, whole, height=height, width=width, filter=weigh), images
        )


@given(height=side, width=side, tall=side, wide=side, seed=st.integers(0, 99))
def test_a_negative_side_flips(height: int, width: int, tall: int, wide: int, seed: int) -> None:
    images, boxes = noise(2, 3, height, width, seed=seed), boxes_in(height, width, 2, seed)
    plain = resample(images, boxes, height=tall, width=wide)
    for axis, column in ((2, 2), (3, 3)):
        turned = boxes.clone()
        turned[:, column] *= -1
        found = resample(images, turned, height=tall, width=wide)
        torch.testing.assert_close(found, plain.flip(axis))
