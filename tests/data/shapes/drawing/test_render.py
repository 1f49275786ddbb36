"""What one sees: pictures that show the scene, and masks that say which pixel is whose."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from PIL import Image, ImageDraw

from saccade.data.shapes import (
    COLOURS,
    KINDS,
    Box,
    Scene,
    Thing,
    boxes,
    mask,
    masks,
    render,
    scene,
    visible_boxes,
)
from saccade.data.shapes.drawing.outlines import outline, tilted
from saccade.data.shapes.drawing.render import PAINTS

EVERY_KIND = (*KINDS, "knight", "wizard", "boat", "kite")


@cache
def sample(split: str, count: int = 100) -> list[Scene]:
    return [scene(split, index) for index in range(count)]


def drawn_by_pillow(kind: str, tilt: int, side: int) -> np.ndarray:
    """The outline alone, its box filling the picture, by another hand."""
    parts = tilted(outline(kind), tilt)
    corners = np.concatenate([loop for part in parts for loop in part.loops])
    low, high = corners.min(axis=0), corners.max(axis=0)
    whole = np.zeros((side, side), dtype=bool)
    for part in parts:
        odd = np.zeros((side, side), dtype=bool)
        for loop in part.loops:
            image = Image.new("1", (side, side))
            points = (loop - low) / (high - low) * side - 0.5
            ImageDraw.Draw(image).polygon([tuple(p) for p in points.tolist()], fill=1)
            odd ^= np.asarray(image)
        whole |= odd
    return whole


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("tilt", [0, 8])
def test_a_mask_is_the_filled_outline(kind: str, tilt: int) -> None:
    thing = Thing(kind, "red", "big", Box(0.5, 0.5, 0.8, 0.6), tilt)
    ours = mask(Scene((thing,), "plain", 0), 0, 250)[50:200, 25:225]
    theirs = Image.fromarray(drawn_by_pillow(kind, tilt, 800)).resize(
        (200, 150), Image.Resampling.NEAREST
    )
    same = np.asarray(theirs)
    assert (ours & same).sum() / (ours | same).sum() > 0.94


@pytest.mark.parametrize("size", [32, 64, 200])
def test_masks_are_disjoint_and_lie_in_the_boxes(size: int) -> None:
    for found in [*sample("train"), *sample("biased-train")]:
        seen = masks(found, size)
        assert seen.sum(axis=0).max() == 1
        centres = (np.arange(size) + 0.5) / size
        for thing, own in zip(found.objects, seen, strict=True):
            x0, y0, x1, y1 = thing.box.xyxy
            within = ((centres > y0) & (centres < y1))[:, None] & ((centres > x0) & (centres < x1))
            assert own.any()
            assert not (own & ~within).any()


def test_the_box_of_an_object_nothing_covers_is_the_box_of_what_one_sees() -> None:
    for found in sample("train"):
        whole, seen = boxes(found), visible_boxes(found, 256)
        assert (
            np.abs(whole[-1] - seen[-1]).max() < 0.02
        )  # the nearest; tips are thinner than a pixel
        low, high = seen[:, :2] - seen[:, 2:] / 2, seen[:, :2] + seen[:, 2:] / 2
        assert (low >= whole[:, :2] - whole[:, 2:] / 2 - 0.004).all()
        assert (high <= whole[:, :2] + whole[:, 2:] / 2 + 0.004).all()


def test_the_later_of_two_objects_covers_the_earlier() -> None:
    below = Thing("square", "red", "big", Box(0.45, 0.5, 0.4, 0.4))
    above = Thing("circle", "blue", "big", Box(0.6, 0.5, 0.4, 0.4))
    picture = render(Scene((below, above), "plain", 5), 64)[32, 36].astype(int)
    swapped = render(Scene((above, below), "plain", 5), 64)[32, 36].astype(int)
    assert picture[2] > 1.5 * picture[0]
    assert swapped[0] > 1.5 * swapped[2]


@pytest.mark.parametrize("size", [32, 64, 512])
def test_an_edge_that_moves_by_part_of_a_pixel_shades_the_pixel_by_that_part(size: int) -> None:
    shades: list[int] = []
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        left, side = (size // 4 + part) / size, 0.4
        square = Thing("square", "black", "big", Box(left + side / 2, 0.5, side, side))
        shades.append(int(render(Scene((square,), "plain", 3), size)[size // 2, size // 4].mean()))
    steps = np.diff(shades)
    assert steps.min() > 0.15 * (shades[-1] - shades[0]) > 5


def test_the_colour_of_an_object_can_be_told_from_its_pixels() -> None:
    palette = np.array([PAINTS[colour] for colour in COLOURS])
    wrong = 0
    for found in [*sample("train"), *sample("many")]:
        picture = render(found, 64) / 255
        for thing, own in zip(found.objects, masks(found, 64), strict=True):
            typical = np.median(picture[own], axis=0)
            nearest = np.linalg.norm(palette - typical, axis=1).argmin()
            wrong += COLOURS[nearest] != thing.colour
    assert wrong == 0


def test_one_object_more_changes_the_picture_around_it_and_nothing_else() -> None:
    for found in sample("train"):
        bare = render(replace(found, objects=found.objects[:-1]), 64)
        changed = (render(found, 64) != bare).any(axis=-1)
        own = mask(found, len(found.objects) - 1, 64)
        x0, y0, x1, y1 = (round(64 * edge) for edge in found.objects[-1].box.xyxy)
        near = np.zeros((64, 64), dtype=bool)
        near[max(0, y0 - 3) : y1 + 4, max(0, x0 - 3) : x1 + 4] = True
        assert changed[own].mean() > 0.98
        assert not (changed & ~near).any()


def test_a_scene_is_the_same_at_every_size() -> None:
    for found in [*sample("train")[:20], *sample("biased-train")[:20]]:
        small = render(found, 64).astype(float)
        large = render(found, 256).astype(float).reshape(64, 4, 64, 4, 3).mean(axis=(1, 3))
        assert np.abs(small - large).mean() < 6
        assert np.corrcoef(small.ravel(), large.ravel())[0, 1] > 0.93


@pytest.mark.parametrize("size", [32, 33, 64, 100, 512])
def test_a_picture_has_the_size_asked_for_and_is_bytes(size: int) -> None:
    picture = render(scene("many", 0), size)
    assert picture.shape == (size, size, 3)
    assert picture.dtype == np.uint8
    assert picture.flags.c_contiguous


def test_backgrounds_are_muted_and_uneven() -> None:
    for found in sample("train"):
        picture = render(found, 64).astype(float)
        behind = picture[~masks(found, 64).any(axis=0)]
        assert behind.std() > 2
        assert np.ptp(behind.mean(axis=0)) < 45
        assert 40 < behind.mean() < 215
