"""Regions: means over boxes as a loop over pixels finds them, and how they lie beside texts."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.attention.axes import Axis
from saccade.data.batching.rows import Rows
from saccade.models.joint.regions import (
    Beside,
    RegionFeatures,
    RegionRows,
    SeenRegions,
    cell_boxes,
    shares,
)
from tests.models.joint.pairs import TINY, built, regions_of

FINE = 60  # pixels to a side, and to each cell a whole number of them
seeds = st.integers(0, 999)


class Grid(torch.nn.Module):
    """In place of an image encoder: a grid that is known."""

    def __init__(self, z: Tensor) -> None:
        super().__init__()
        self.z, self.channels = z, z.shape[-1]

    def forward(self, images: Tensor) -> tuple[Tensor, Axis]:
        height, width = self.z.shape[1:3]
        return self.z.flatten(1, 2), Axis("source", "grid", height, width)


def features_of(z: Tensor, *, bins: int = 1, boxes: bool = True) -> RegionFeatures:
    config = replace(TINY, bins=bins, regions="boxes" if boxes else "cells")
    image_encoder = RegionFeatures(config)
    image_encoder.grid = Grid(z)  # type: ignore[assignment]
    return image_encoder


def seen(image_encoder: RegionFeatures, boxes: Tensor | None, count: int = 1) -> SeenRegions:
    return image_encoder(torch.zeros(count, 3, 8, 8, dtype=torch.uint8), boxes)


def random_grid(height: int, width: int, seed: int) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(1, height, width, 3, generator=rng)


def by_pixels(z: Tensor, box: list[float]) -> Tensor:
    """The mean over the fine pixels that a box covers, each of which lies in one cell."""
    fine = z[0].repeat_interleave(FINE // z.shape[1], 0).repeat_interleave(FINE // z.shape[2], 1)
    left, top, right, bottom = (round(FINE * side) for side in box)
    left, top, right, bottom = max(left, 0), max(top, 0), min(right, FINE), min(bottom, FINE)
    return fine[top:bottom, left:right].mean(dim=(0, 1))


corner = st.integers(-10, FINE + 10)


@given(seed=seeds, ends=st.tuples(corner, corner, corner, corner), sides=st.sampled_from([3, 4, 5]))
def test_a_box_is_the_mean_of_all_it_covers_as_far_as_there_is_an_image(
    seed: int, ends: tuple[int, int, int, int], sides: int
) -> None:
    (left, right), (top, bottom) = sorted(ends[:2]), sorted(ends[2:])
    inside = min(right, FINE) > max(left, 0) and min(bottom, FINE) > max(top, 0)
    if not inside:
        return
    z = random_grid(sides, 6, seed)
    box = [end / FINE for end in (left, top, right, bottom)]
    found = seen(features_of(z), torch.tensor([[box]]))
    torch.testing.assert_close(found.features[0, 1], by_pixels(z, box), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.features[0, 0], z[0].mean(dim=(0, 1)))  # the whole image
    assert found.boxes[0].tolist() == [[0, 0, 1, 1], pytest.approx(box)]


@given(seed=seeds)
def test_parts_of_a_box_each_have_their_own_mean(seed: int) -> None:
    z = random_grid(4, 5, seed)
    image_encoder = features_of(z, bins=2)
    assert image_encoder.features == 3 * 4
    found = seen(image_encoder, torch.tensor([[[12 / 60, 6 / 60, 52 / 60, 50 / 60]]])).features[
        0, 1
    ]
    across, down = (12, 32, 52), (6, 28, 50)
    for row in range(2):
        for column in range(2):
            box = [across[column], down[row], across[column + 1], down[row + 1]]
            mean = by_pixels(z, [end / FINE for end in box])
            part = found.view(2, 2, 3)[row, column]
            torch.testing.assert_close(part, mean, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "box",
    [
        [0.5, 0.1, 0.5, 0.9],
        [0.3, 0.3, 0.3, 0.3],
        [0.7, 0.2, 0.6, 0.9],
        [1.0, 1.0, 1.0, 1.0],
        [0.0, 0.0, 0.0, 0.0],
        [2.0, 2.0, 3.0, 3.0],
        [-3.0, 0.0, -2.0, 1.0],
    ],
    ids=str,
)
@pytest.mark.parametrize("bins", [1, 3])
def test_what_has_no_width_or_lies_outside_is_finite_and_so_is_its_gradient(
    box: list[float], bins: int
) -> None:
    z = random_grid(4, 4, 0).requires_grad_()
    found = seen(features_of(z, bins=bins), torch.tensor([[box]])).features
    found.square().sum().backward()
    assert found.isfinite().all()
    assert found.abs().max() <= z.abs().max() + 1e-5
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_a_thin_box_shows_the_cell_that_it_lies_in() -> None:
    z = random_grid(4, 4, 0)
    found = seen(features_of(z), torch.tensor([[[0.6, 0.3, 0.6, 0.3]]])).features[0, 1]
    torch.testing.assert_close(found, z[0, 1, 2])


@given(ends=st.tuples(st.floats(0, 1), st.floats(0, 1)), cells=st.integers(1, 9))
def test_shares_sum_to_one(ends: tuple[float, float], cells: int) -> None:
    first, last = sorted(ends)
    if first > 1 - 1e-3:
        return  # of what lies at the very end nothing need be inside
    found = shares(torch.tensor([[[first, last]]]), cells, bins=2)
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(1, 1, 2), atol=1e-3, rtol=0)
    assert (found >= 0).all()


@given(seed=seeds, height=st.integers(1, 5), width=st.integers(1, 5))
def test_the_cells_of_a_grid_are_the_boxes_where_they_lie(
    seed: int, height: int, width: int
) -> None:
    z = random_grid(height, width, seed)
    cells = seen(features_of(z, boxes=False), None)
    boxes = seen(features_of(z), cell_boxes(height, width, z.device)[None])
    torch.testing.assert_close(cells.features, boxes.features, rtol=1e-3, atol=1e-4)
    assert torch.equal(cells.boxes, boxes.boxes)
    axis = cells.axis
    assert (axis.kind, axis.height, axis.width, axis.special) == ("grid", height, width, 1)
    assert boxes.axis == Axis("regions")


def test_a_model_for_cells_is_given_boxes_in_vain() -> None:
    model = built(replace(TINY, regions="cells", stage=3), torch.float32)
    images = torch.randint(256, (2, 3, 32, 32), dtype=torch.uint8)
    with torch.no_grad():
        with_boxes = model.see(images, torch.rand(2, 3, 4))
        without = model.see(images, None)
    assert torch.equal(with_boxes.features, without.features)
    assert with_boxes.axis.kind == "grid"


def loop(counts: list[int], images: list[int]) -> list[list[int]]:
    """The regions of each pair's image, by number."""
    starts = [sum(counts[:i]) for i in range(len(counts))]
    return [list(range(starts[i], starts[i] + counts[i])) for i in images]


counted = st.lists(st.integers(1, 6), min_size=1, max_size=5)


@given(counts=counted, data=st.data())
def test_regions_lie_beside_their_texts_as_a_loop_puts_them(
    counts: list[int], data: st.DataObject
) -> None:
    images = data.draw(st.lists(st.integers(0, len(counts) - 1), min_size=1, max_size=7))
    starts = torch.tensor([0, *counts]).cumsum(0).int()
    expected, pairs = loop(counts, images), torch.tensor(images)
    exact = Beside.of(starts, pairs)
    slots = max(counts) + data.draw(st.integers(0, 3))
    ways = [exact, Beside.of(starts, pairs, slots)]
    if len(set(counts)) == 1:
        equal = Beside.of(starts, pairs, counts[0], equal=True)
        for a, b in zip(equal[:3], exact[:3]):
            assert isinstance(a, Tensor)
            assert torch.equal(a, b)
        ways.append(equal)
    for way in ways:
        for number, regions in enumerate(expected):
            mine = slice(int(way.starts[number]), int(way.starts[number + 1]))
            here = way.pair[mine] == number
            assert way.which[mine][here].tolist() == regions
            assert way.which[mine][0] == regions[0]  # the whole image
            assert here.tolist() == sorted(here.tolist(), reverse=True)
            assert (way.pair[mine][~here] == len(images)).all()
            assert (way.which[mine][~here] == regions[0]).all()  # which is never asked about
    filled = ways[1]
    assert len(filled.which) == slots * len(images)
    assert exact.which.tolist() == [region for one in expected for region in one]


@given(counts=counted, data=st.data())
def test_neither_words_nor_regions_see_what_fills_slots(
    counts: list[int], data: st.DataObject
) -> None:
    images = data.draw(st.lists(st.integers(0, len(counts) - 1), min_size=1, max_size=4))
    words = torch.tensor([0, *data.draw(st.lists(st.integers(0, 3), min_size=len(images)))])
    words = words[: len(images) + 1].cumsum(0).int()
    starts = torch.tensor([0, *counts]).cumsum(0).int()
    way = Beside.of(starts, torch.tensor(images), max(counts) + 1)
    at, themselves = way.segments(words, (16, 16))
    total = len(way.which)
    text = torch.bucketize(torch.arange(int(words[-1])), words, right=True) - 1
    across = at.mask(int(words[-1]), total)[0, 0]
    assert torch.equal(across, text[:, None] == way.pair)
    among = themselves.mask(total, total)[0, 0]
    real = way.pair < len(images)
    assert torch.equal(among[real], (way.pair[:, None] == way.pair)[real])


def test_only_regions_that_are_there_are_taken() -> None:
    found = SeenRegions(torch.arange(12.0).view(2, 3, 2), torch.rand(2, 3, 4), Axis("regions"))
    whole = RegionRows.of(found, None)
    assert (whole.slots, whole.equal, whole.starts.tolist()) == (3, True, [0, 3, 6])
    every = Rows.of(torch.arange(6), torch.tensor([3, 3]))
    assert RegionRows.of(found, every).features.equal(whole.features)
    fewer = RegionRows.of(found, Rows.of(torch.tensor([0, 1, 3, 4]), torch.tensor([2, 2])))
    assert (fewer.slots, fewer.equal) == (2, True)
    some = RegionRows.of(found, Rows.of(torch.tensor([0, 1, 2, 3]), torch.tensor([3, 1])), 3)
    assert (some.slots, some.equal, some.starts.tolist()) == (3, False, [0, 3, 4])
    assert torch.equal(some.features, found.features.flatten(0, 1)[:4])
    assert torch.equal(some.boxes, found.boxes.flatten(0, 1)[:4])


def test_an_emptied_region_shows_nothing_but_stays_where_it_is() -> None:
    regions = regions_of([2, 3], 4)
    which = torch.tensor([False, True, False, False, True])
    emptied = regions.hidden(which)
    assert not emptied.features[which].any()
    assert torch.equal(emptied.features[~which], regions.features[~which])
    assert torch.equal(emptied.boxes, regions.boxes)
