"""Objects drawn on an image: a box in the colour of its class, with its name and score."""

from collections.abc import Sequence
from typing import NamedTuple

from jaxtyping import UInt8
from PIL import Image, ImageColor, ImageDraw
from torch import Tensor

from saccade.app.look.draw.text import paste_text, text_width
from saccade.app.look.images import pillow_image
from saccade.printable import printable

# Okabe and Ito's again, those that can be seen on an image; `page/detection/colours.js` has them.
ON_IMAGES = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#d55e00", "#cc79a7", "#0072b2")
SHORTEST = 512  # pixels: smaller images are drawn larger, for their labels to be read
DARK, LIGHT = "#10131a", "#ffffff"

Rectangle = tuple[float, float, float, float]


class DrawnBox(NamedTuple):
    """Left, top, right, bottom as shares of the image's sides, what is written there, and in which
    of the colours.
    """

    box: Rectangle
    label: str
    colour: int


def colour_of(number: int) -> str:
    """The colour of a class or of an object; after the last they begin again."""
    return ON_IMAGES[number % len(ON_IMAGES)]


def draw_boxes(pixels: UInt8[Tensor, "3 H W"], boxes: Sequence[DrawnBox]) -> Image.Image:
    """The likeliest come first, and lie on top."""
    image = pillow_image(pixels)
    larger = max(1, -(-SHORTEST // max(image.size)))
    image = image.resize((image.width * larger, image.height * larger), Image.Resampling.BICUBIC)
    size = min(max(round(max(image.size) / 40), 13), 32)
    draw, line = ImageDraw.Draw(image), max(3, size // 5)
    for one in reversed(boxes):
        corners = _corners(one.box, image.size)
        draw.rectangle(corners, outline=DARK, width=line + 2)
        draw.rectangle(corners, outline=colour_of(one.colour), width=line)
    taken: list[Rectangle] = []
    for one in boxes:
        place = _tag(one, image.size, size, taken)
        taken.append(place)
        colour = colour_of(one.colour)
        draw.rectangle(place, fill=colour, outline=DARK)
        middle = (place[1] + place[3]) / 2
        paste_text(image, (place[0] + size / 2, middle), _words(one), size, ink_on(colour))
    return image


def ink_on(colour: str) -> str:
    """What can be read on that colour."""
    red, green, blue = ImageColor.getrgb(colour)[:3]
    return DARK if 0.3 * red + 0.59 * green + 0.11 * blue > 110 else LIGHT


def _words(one: DrawnBox) -> str:
    return printable(one.label)


def _corners(box: Rectangle, size: tuple[int, int]) -> Rectangle:
    (left, top, right, bottom), (width, height) = box, size
    return left * width, top * height, right * width, bottom * height


def _tag(
    one: DrawnBox, size: tuple[int, int], letters: int, taken: Sequence[Rectangle]
) -> Rectangle:
    """Above the box, else within it or below: the first place that no other label has."""
    left, top, _, bottom = _corners(one.box, size)
    wide, high = text_width(_words(one), letters) + letters, 1.4 * letters
    x = min(max(left, 0.0), max(0.0, size[0] - wide))
    tries = (top - high, top, bottom - high, bottom)
    places = [(x, y, x + wide, y + high) for y in tries if 0 <= y <= size[1] - high]
    places = places or [(x, 0.0, x + wide, high)]
    return next((place for place in places if not any(_meet(place, t) for t in taken)), places[0])


def _meet(a: Rectangle, b: Rectangle) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
