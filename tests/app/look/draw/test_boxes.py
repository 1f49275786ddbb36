"""Boxes drawn on images: where they are, in the colours that the page has, with labels apart."""

import re

import numpy as np
import pytest
import torch
from PIL import ImageColor

from saccade.app.look.captioning.overlay import lights
from saccade.app.look.draw.boxes import ON_IMAGES, DrawnBox, colour_of, draw_boxes, ink_on
from saccade.app.look.html import page_modules
from saccade.data.images.lattice import Lattice

GREY = torch.full((3, 64, 128), 127, dtype=torch.uint8)


def is_coloured(image: np.ndarray, colour: str) -> np.ndarray:
    return (image == np.array(ImageColor.getrgb(colour))).all(axis=2)


def test_a_box_is_drawn_in_its_colour_at_its_place_and_small_images_larger() -> None:
    image = np.asarray(draw_boxes(GREY, [DrawnBox((0.25, 0.5, 0.75, 0.9), "dog 0.93", 2)]))
    assert image.shape == (256, 512, 3)
    rows, columns = np.nonzero(is_coloured(image, colour_of(2)))
    assert abs(columns.min() - 128) <= 4
    assert abs(columns.max() - 384) <= 4
    assert abs(rows.max() - 0.9 * 256) <= 4
    assert rows.min() < 128  # the label stands above it


def test_an_image_without_objects_stays_as_it_is() -> None:
    large = torch.full((3, 600, 600), 90, dtype=torch.uint8)
    assert (np.asarray(draw_boxes(large, [])) == 90).all()


def test_labels_of_boxes_at_one_place_do_not_hide_one_another() -> None:
    boxes = [DrawnBox((0.2, 0.3, 0.6, 0.8), f"cat {n}", n) for n in range(3)]
    image = np.asarray(draw_boxes(GREY, boxes))
    for number in range(3):  # a label is the only place with whole lines of its colour
        filled = is_coloured(image, colour_of(number)).sum(axis=1)
        assert (filled > 15).any()


@pytest.mark.parametrize("colour", ON_IMAGES)
def test_what_is_written_on_a_colour_can_be_read(colour: str) -> None:
    def light(name: str) -> float:
        shares = [part / 255 for part in ImageColor.getrgb(name)[:3]]
        linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dark = sorted((light(colour), light(ink_on(colour))), reverse=True)
    assert (bright + 0.05) / (dark + 0.05) >= 4.5


def test_the_page_has_the_same_colours() -> None:
    source = page_modules()["detection/colours"]
    assert tuple(re.findall(r'"(#[0-9a-f]{6})"', source.partition("];")[0])) == ON_IMAGES


def test_lights_are_the_colour_of_whoever_looks_there_and_shade_elsewhere() -> None:
    maps = torch.zeros(2, 4, 4)
    maps[0, 0, 0] = maps[1, 3, 3] = 1.0
    drawn = lights(list(maps), ["#ff0000", "#0000ff"], 40, Lattice(4, 4), cells=True)
    assert drawn[5, 5, :3].tolist() == [255, 0, 0]
    assert drawn[35, 35, :3].tolist() == [0, 0, 255]
    assert drawn[20, 20, :3].max() < 20
