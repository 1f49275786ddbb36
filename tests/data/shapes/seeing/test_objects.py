"""What is rendered is read back: kinds, colours, sizes, boxes, and what covers what."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.shapes import (
    COLOURS,
    KINDS,
    Box,
    Scene,
    Thing,
    content,
    render,
    scene,
    true_of,
)
from saccade.data.shapes.compose import RADII, TILTS
from saccade.data.shapes.drawing.fields import field
from saccade.data.shapes.scenes import BACKGROUNDS
from saccade.data.shapes.seeing import see
from saccade.errors import DataError
from tests.data.shapes.seeing.table import blurry_and_noisy, names, planar

COUNT = 40


@cache
def sample(split: str) -> list[tuple[Scene, np.ndarray]]:
    scenes = [scene(split, index) for index in range(COUNT)]
    return [(one, planar(render(one))) for one in scenes]


@cache
def readings(split: str) -> list[tuple[Scene, Scene]]:
    return [(one, see(image)) for one, image in sample(split)]


def alone(kind: str, colour: str, size: str, tilt: int, x: float, y: float, seed: int) -> Scene:
    known, radius = field(kind, tilt), sum(RADII[size]) / 2
    box = Box(x, y, 2 * radius * known.half_width, 2 * radius * known.half_height)
    thing = Thing(kind, colour, size, box, tilt)
    return Scene((thing,), BACKGROUNDS[seed % len(BACKGROUNDS)], seed)


def pairs(truth: Scene, read: Scene) -> list[tuple[Thing, Thing]]:
    """Objects of the truth with those that were read under the same name."""
    return [
        (thing, other)
        for thing in truth.objects
        for other in read.objects
        if (thing.kind, thing.colour) == (other.kind, other.colour)
    ]


@pytest.mark.parametrize("split", ["train", "many-train"])
def test_what_is_drawn_is_read_back(split: str) -> None:
    right = [names(truth) == names(read) for truth, read in readings(split)]
    assert np.mean(right) >= 0.95


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("colour", COLOURS)
def test_every_kind_is_read_in_every_colour(kind: str, colour: str) -> None:
    for size, tilt, seed in (("small", 0, 2), ("big", 0, 5)):
        truth = alone(kind, colour, size, tilt, 0.4, 0.55, seed)
        assert names(see(planar(render(truth)))) == names(truth)


@settings(max_examples=30, deadline=None)
@given(
    kind=st.sampled_from(["square", "triangle", "star", "heart"]),
    tilt=st.sampled_from(TILTS),
    x=st.floats(0.25, 0.75),
    y=st.floats(0.25, 0.75),
)
def test_an_object_is_found_where_it_is_however_it_is_turned(
    kind: str, tilt: int, x: float, y: float
) -> None:
    truth = alone(kind, "blue", "big", tilt, x, y, 0)
    (thing,) = see(planar(render(truth))).objects
    assert thing.kind == kind
    assert np.allclose(thing.box, truth.objects[0].box, atol=1.5 / 64)


def test_boxes_are_those_of_the_whole_objects_to_a_pixel_or_two() -> None:
    apart = [
        np.abs(np.subtract(thing.box, other.box)).max() * 64
        for truth, read in readings("train")
        for thing, other in pairs(truth, read)
    ]
    assert np.mean(apart) < 0.7
    assert np.quantile(apart, 0.95) < 2


@pytest.mark.parametrize("split", ["train", "many-train"])
def test_all_that_is_clear_of_a_scene_is_true_of_what_is_read(split: str) -> None:
    said = [(content(truth), read) for truth, read in readings(split)]
    words = {claim.relation for one, _ in said for claim in one.relations}
    assert {"behind", "in front of", "left of", "above"} <= words
    assert np.mean([true_of(one, read) for one, read in said]) >= 0.93


def test_the_nearer_of_two_comes_later_whichever_it_is() -> None:
    far = alone("square", "red", "main", 0, 0.42, 0.5, 0).objects[0]
    near = alone("circle", "blue", "big", 0, 0.6, 0.5, 0).objects[0]
    for order in ((far, near), (near, far)):
        read = see(planar(render(Scene(order, "plain", 3))))
        assert [thing.kind for thing in read.objects] == [thing.kind for thing in order]


def test_in_a_mirror_left_is_right_and_all_else_is_the_same() -> None:
    for (_, image), (_, read) in zip(sample("train"), readings("train"), strict=True):
        mirrored = see(np.ascontiguousarray(image[:, :, ::-1]))
        upright = [thing for thing in read.objects if thing.kind != "moon"]  # it has a left side
        for thing in upright:
            twins = [
                t for t in mirrored.objects if (t.kind, t.colour) == (thing.kind, thing.colour)
            ]
            assert any(
                abs(twin.box.cx - (1 - thing.box.cx)) < 2 / 64
                and abs(twin.box.cy - thing.box.cy) < 2 / 64
                for twin in twins
            )


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_a_background_alone_has_no_objects(background: str) -> None:
    empty = [see(planar(render(Scene((), background, seed)))) for seed in range(20)]
    assert sum(bool(read.objects) for read in empty) <= 1


@pytest.mark.parametrize("level", [0, 128, 255])
def test_an_image_of_one_grey_has_no_objects(level: int) -> None:
    assert see(np.full((3, 64, 64), level, dtype=np.uint8)).objects == ()


@pytest.mark.parametrize("grain", [1, 4, 8])
def test_noise_has_no_objects(grain: int) -> None:
    rng = np.random.default_rng(grain)
    for _ in range(5):
        cells = rng.integers(0, 256, (3, 64 // grain, 64 // grain), dtype=np.uint8)
        image = np.repeat(np.repeat(cells, grain, axis=1), grain, axis=2)
        assert see(image).objects == ()


@pytest.mark.parametrize("area", [np.s_[:, 20:24, 8:56], np.s_[:, :, 32:], np.s_[:, 8:56, 8:40]])
def test_an_area_of_no_kind_is_left_out(area: tuple[slice, slice, slice]) -> None:
    """A long bar, half of the image, and a slab larger than any object."""
    image = planar(render(Scene((), "plain", 1)))
    image[area] = np.array([219, 33, 33])[:, None, None]
    assert see(image).objects == ()


def test_mild_damage_does_not_matter_much() -> None:
    right = [
        names(truth) == names(see(planar(blurry_and_noisy(render(truth), index))))
        for index, (truth, _) in enumerate(sample("train"))
    ]
    assert np.mean(right) >= 0.88


@pytest.mark.parametrize("side", [96, 128, 200])
def test_larger_images_are_read_alike(side: int) -> None:
    scenes = [truth for truth, _ in sample("train")[:15]]
    right = [names(truth) == names(see(planar(render(truth, side)))) for truth in scenes]
    assert np.mean(right) >= 0.9


@pytest.mark.parametrize(("height", "width"), [(64, 48), (16, 16)])
def test_an_image_that_is_not_square_or_too_small_is_refused(height: int, width: int) -> None:
    message = f"an image of {height}×{width} pixels cannot be read .* square one of 32 pixels"
    with pytest.raises(DataError, match=message):
        see(np.zeros((3, height, width), dtype=np.uint8))


def test_reading_leaves_the_image_as_it_was() -> None:
    images = [image for _, image in sample("train")]
    before = [image.copy() for image in images]
    for image in images:
        see(image)
    assert all((image == old).all() for image, old in zip(images, before, strict=True))
