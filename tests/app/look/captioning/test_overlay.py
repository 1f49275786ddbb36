"""Attention over a picture: what is lit, what lies in the shade."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saccade.app.look.captioning.overlay import OPACITY, SHADE, as_cells, lit, smoothed, veil
from saccade.data.images.lattice import Lattice

side, seed = st.integers(1, 9), st.integers(0, 999)


def blended(picture: np.ndarray, cover: np.ndarray) -> np.ndarray:
    image, mask = Image.fromarray(picture), Image.fromarray(cover)
    image.paste(mask, (0, 0), mask)
    return np.asarray(image)


def weights(h: int, w: int, seed: int) -> torch.Tensor:
    return torch.rand(h, w, generator=torch.Generator().manual_seed(seed)) + 0.01


@given(h=side, w=side, seed=seed)
def test_smoothing_keeps_an_even_map_even_and_stays_within_the_map(
    h: int, w: int, seed: int
) -> None:
    even = smoothed(np.full((h, w), 0.3), 40, Lattice(h, w))
    np.testing.assert_allclose(even, 0.3)
    rough = weights(h, w, seed).double().numpy()
    fine = smoothed(rough, 40, Lattice(h, w))
    assert rough.min() - 1e-9 <= fine.min() <= fine.max() <= rough.max() + 1e-9


@given(h=side, w=side, seed=seed)
def test_smoothing_a_mirrored_map_mirrors_it(h: int, w: int, seed: int) -> None:
    rough = weights(h, w, seed).double().numpy()
    fine = smoothed(rough, 30, Lattice(h, w))
    np.testing.assert_allclose(smoothed(rough[:, ::-1], 30, Lattice(h, w)), fine[:, ::-1])
    np.testing.assert_allclose(smoothed(rough.T, 30, Lattice(w, h)), fine.T)


def test_a_peak_stays_where_it_is() -> None:
    for cell in range(49):
        one = torch.zeros(7, 7)
        one.view(-1)[cell] = 1
        y, x = divmod(int(lit(one, 70, Lattice(7, 7)).argmax()), 70)
        assert (y // 10, x // 10) == divmod(cell, 7)


@given(h=side, w=side, seed=seed)
def test_true_cells_are_squares_of_the_very_weights(h: int, w: int, seed: int) -> None:
    rough = weights(h, w, seed).double().numpy()
    drawn = as_cells(rough, 5 * h * w, Lattice(h, w))
    np.testing.assert_array_equal(drawn[:: 5 * w, :: 5 * h], rough)


@given(seed=seed, cells=st.booleans())
def test_the_heaviest_place_keeps_its_colours_and_all_others_are_darker(
    seed: int, cells: bool
) -> None:
    picture = np.full((48, 48, 3), 200, dtype=np.uint8)
    looked = weights(6, 6, seed)
    under = blended(picture, veil(looked, 48, Lattice(6, 6), cells=cells, opacity=0.8))
    assert under.max() == 200
    bright = lit(looked, 48, Lattice(6, 6), cells=cells)
    order = np.argsort(bright, axis=None)
    assert (np.diff(under[..., 0].reshape(-1)[order].astype(int)) >= 0).all()


def test_who_looks_nowhere_leaves_the_picture_as_it_is() -> None:
    picture = np.arange(3 * 64, dtype=np.uint8).reshape(8, 8, 3)
    cover = veil(torch.zeros(2, 2), 8, Lattice(2, 2))
    assert cover[..., 3].max() == 0
    np.testing.assert_array_equal(blended(picture, cover), picture)


@given(seed=seed)
def test_the_veil_darkens_as_its_formula_says(seed: int) -> None:
    looked = weights(4, 4, seed)
    picture = np.full((32, 32, 3), 180, dtype=np.uint8)
    shade = OPACITY * (1 - lit(looked, 32, Lattice(4, 4)))[..., None]
    expected = picture * (1 - shade) + SHADE * shade
    drawn = blended(picture, veil(looked, 32, Lattice(4, 4)))
    np.testing.assert_allclose(drawn, expected, atol=1.2)


def test_a_cell_is_drawn_around_its_middle() -> None:
    one, cnn = torch.zeros(8, 8), Lattice(8, 8, first=0.5 / 8)
    one[3, 5] = 1
    smooth = lit(one, 64, cnn)
    assert np.unravel_index(smooth.argmax(), smooth.shape) == (24, 40)
    rows, columns = lit(one, 64, cnn, cells=True).nonzero()
    assert {*rows} == {*range(20, 28)}
    assert {*columns} == {*range(36, 44)}
    white = np.full((64, 64, 3), 255, np.uint8)
    bright = blended(white, veil(one, 64, cnn))[..., 0]
    assert np.unravel_index(bright.argmax(), bright.shape) == (24, 40)
    assert veil(one, 64, cnn, cells=True)[20:28, 36:44, 3].max() == 0
