"""The pointing game on maps whose highest point is known."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.images.lattice import Lattice
from saccade.metrics.pointing import inside_boxes, mass_inside, peaks, points_at, widened

side = st.integers(1, 6)


def rand(*shape: int, seed: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(h=side, w=side, factor=st.sampled_from([1, 3, 5, 8]), seed=st.integers(0, 99))
def test_the_peak_is_as_high_as_any_pixel_of_the_map_drawn_over_the_picture(
    h: int, w: int, factor: int, seed: int
) -> None:
    maps, size = rand(3, h, w, seed=seed), (h * factor, w * factor)
    drawn = F.interpolate(maps[:, None], size, mode="bilinear")[:, 0]
    for cells, one, (row, column) in zip(maps, drawn, peaks(maps, size, Lattice(h, w)).tolist()):
        assert cells[row // factor, column // factor] == cells.max()
        if factor % 2:  # else no pixel lies right on the centre of a cell
            assert one[row, column] == pytest.approx(one.max())


def test_a_cell_in_the_corner_is_pointed_at_in_its_middle_and_not_in_the_corner() -> None:
    maps = torch.zeros(1, 4, 4)
    maps[0, 0, 3] = 1
    assert peaks(maps, (64, 64), Lattice(4, 4)).tolist() == [[8, 56]]


def test_a_cell_that_looks_around_its_first_pixel_points_there() -> None:
    maps, cnn = torch.zeros(1, 8, 8), Lattice(8, 8, first=0.5 / 8)
    maps[0, 2, 5] = 1
    assert peaks(maps, (64, 64), cnn).tolist() == [[16, 40]]
    inside = torch.zeros(1, 64, 64, dtype=torch.bool)
    inside[0, 12:17, 36:41] = True
    assert points_at(maps, inside, cnn)
    assert not points_at(maps, inside, Lattice(8, 8))
    # Nearest to it are 8 by 8 pixels from (12, 36) on.
    assert mass_inside(maps, inside, cnn).item() == pytest.approx(25 / 64)
    assert mass_inside(maps, inside, Lattice(8, 8)).item() == pytest.approx(1 / 64)


@given(h=side, w=side, seed=st.integers(0, 99))
def test_the_whole_picture_is_always_hit_and_nothing_never(h: int, w: int, seed: int) -> None:
    maps = rand(4, h, w, seed=seed)
    everywhere = torch.ones(4, 12, 13, dtype=torch.bool)
    assert points_at(maps, everywhere, Lattice(h, w)).all()
    assert not points_at(maps, ~everywhere, Lattice(h, w)).any()
    torch.testing.assert_close(
        mass_inside(maps, everywhere, Lattice(h, w)), torch.ones(4, dtype=torch.float64)
    )
    assert mass_inside(maps, ~everywhere, Lattice(h, w)).eq(0).all()


def test_the_margin_is_fifteen_pixels_of_five_hundred() -> None:
    inside = torch.zeros(1, 100, 100, dtype=torch.bool)
    inside[0, 20:30, 40:50] = True
    wide = widened(inside)
    assert wide.sum() == 16 * 16
    assert wide[0, 17:33, 37:53].all()
    assert not widened(torch.zeros(2, 64, 32, dtype=torch.bool)).any()


def test_each_map_is_judged_by_its_own_thing() -> None:
    maps = torch.zeros(2, 2, 2)
    maps[0, 0, 1], maps[1, 1, 0] = 1, 1
    inside = torch.zeros(2, 8, 8, dtype=torch.bool)
    inside[:, :4, 4:] = True  # above, on the right
    assert points_at(maps, inside, Lattice(2, 2)).tolist() == [True, False]


def test_mass_is_what_lies_inside_by_hand() -> None:
    maps = torch.tensor([[[0.1, 0.2], [0.3, 0.4]]])
    left = torch.zeros(1, 4, 4, dtype=torch.bool)
    left[:, :, :2] = True
    assert mass_inside(maps, left, Lattice(2, 2)).item() == pytest.approx(0.4)
    left[:, :, 2] = True  # and half of the cells on the right
    assert mass_inside(maps, left, Lattice(2, 2)).item() == pytest.approx(0.4 + 0.3)
    assert mass_inside(0 * maps, left, Lattice(2, 2)).item() == 0


@given(seed=st.integers(0, 99))
def test_what_is_outside_is_the_rest(seed: int) -> None:
    maps, inside = rand(3, 4, 2, seed=seed), rand(3, 8, 8, seed=seed + 1) > 0.5
    even = Lattice(4, 2)
    total = mass_inside(maps, inside, even) + mass_inside(maps, ~inside, even)
    torch.testing.assert_close(total, torch.ones(3, dtype=torch.float64))


def test_boxes_hold_the_pixels_whose_centres_lie_in_them() -> None:
    boxes = torch.tensor([[0.0, 0.0, 0.5, 0.25], [0.8, 0.8, 1.0, 1.0]])
    found = inside_boxes(boxes, (4, 4))
    assert found.nonzero().tolist() == [[0, 0], [0, 1], [3, 3]]
    assert not inside_boxes(torch.empty(0, 4), (4, 4)).any()
