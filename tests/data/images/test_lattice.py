"""Where cells lie: those that tile a picture, and those of a CNN."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.images.lattice import Lattice, nearest

side = st.integers(1, 9)
lattices = st.builds(Lattice, side, side, st.floats(0.01, 0.5), st.floats(0.8, 1.3))


@given(h=side, w=side)
def test_even_cells_tile_the_picture(h: int, w: int) -> None:
    even = Lattice(h, w)
    for cell in range(h * w):
        y, x = divmod(cell, w)
        assert even.box(cell) == pytest.approx((x / w, y / h, (x + 1) / w, (y + 1) / h))
        assert even.middle(cell) == pytest.approx(((y + 0.5) / h, (x + 0.5) / w))


@given(lattice=lattices, pixels=st.integers(20, 70))
def test_every_pixel_belongs_to_the_cell_whose_middle_is_nearest(
    lattice: Lattice, pixels: int
) -> None:
    for middles in (lattice.down, lattice.across):
        far = np.abs((np.arange(pixels)[:, None] + 0.5) / pixels - middles)
        mine = far[np.arange(pixels), nearest(middles, pixels)]
        np.testing.assert_allclose(mine, far.min(axis=1), atol=1e-12)


@given(lattice=lattices)
def test_boxes_hold_their_middles_and_cover_the_picture_once(lattice: Lattice) -> None:
    area = 0.0
    for cell in range(lattice.height * lattice.width):
        left, top, right, bottom = lattice.box(cell)
        y, x = lattice.middle(cell)
        assert left <= x <= right
        assert top <= y <= bottom
        area += (right - left) * (bottom - top)
    assert area == pytest.approx(1)


def test_a_cell_that_looks_around_its_first_pixel() -> None:
    eight = Lattice(8, 8, first=0.5 / 8, apart=1.0)  # 64 pixels, halved three times
    assert eight.middle(0) == pytest.approx((0.5 / 64, 0.5 / 64))
    assert eight.middle(9) == pytest.approx((8.5 / 64, 8.5 / 64))
    assert eight.box(9) == pytest.approx((4.5 / 64, 4.5 / 64, 12.5 / 64, 12.5 / 64))
    assert eight.box(63)[2:] == (1.0, 1.0)
