"""An attention matrix as PNG, drawn with Pillow."""

import io

from font_roboto import font_files
from PIL import Image, ImageDraw, ImageFont

from saccade.app.look.draw.colour import ink, shade
from saccade.app.look.draw.layout import FONT, GAP, Layout, printable

SCALE = 2  # pixels to a point, for sharp text


def draw_png(
    rows: list[str], columns: list[str], weights: list[list[float]], *, title: str
) -> bytes:
    """Each cell as dark as its weight; weights of a tenth or more are written in it."""
    font, small, tiny = (font_of(size) for size in (FONT, 13, 11))
    layout = Layout.of(rows, columns, measure=lambda word: font.getlength(printable(word)) / SCALE)
    size = round(layout.width * SCALE), round(layout.height * SCALE)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    draw.text((GAP * SCALE, GAP * SCALE), printable(title), fill=(91, 100, 114), font=small)
    for j in range(0, len(columns), layout.every):
        x, y = layout.corner(0, j)
        place = (x + layout.cell / 2) * SCALE, (y - 6) * SCALE
        _slanted(image, printable(columns[j]), font, place)
    for i in range(0, len(rows), layout.every):
        x, y = layout.corner(i, 0)
        place = (x - GAP) * SCALE, (y + layout.cell / 2) * SCALE
        draw.text(place, printable(rows[i]), fill=(20, 24, 32), font=font, anchor="rm")
    for i, line in enumerate(weights):
        for j, weight in enumerate(line):
            _cell(draw, layout, i, j, weight, tiny)
    return png_bytes(image)


def png_bytes(image: Image.Image) -> bytes:
    """As small as it gets."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def font_of(size: int) -> ImageFont.FreeTypeFont:
    """A font that has accents, Greek and Cyrillic; Pillow's own has none of them."""
    return ImageFont.truetype(font_files["Roboto"], size * SCALE)


def _cell(
    draw: ImageDraw.ImageDraw,
    layout: Layout,
    i: int,
    j: int,
    weight: float,
    font: ImageFont.FreeTypeFont,
) -> None:
    x, y = (value * SCALE for value in layout.corner(i, j))
    side = layout.cell * SCALE
    edge = (230, 233, 239) if layout.numbered else None
    draw.rectangle((x, y, x + side, y + side), fill=shade(weight), outline=edge)
    if number := layout.number(weight):
        middle = (x + side / 2, y + side / 2)
        draw.text(middle, number, fill=ink(weight), font=font, anchor="mm")


def _slanted(
    image: Image.Image,
    word: str,
    font: ImageFont.FreeTypeFont,
    place: tuple[float, float],
) -> None:
    """Text that rises from a point at 55 degrees."""
    width, height = round(font.getlength(word)) + 8, 2 * FONT * SCALE
    side = 2 * width
    label = Image.new("L", (side, side), 0)
    # The text starts in the middle, which stays where it is when the square is turned.
    middle = (side / 2, side / 2)
    ImageDraw.Draw(label).text(middle, word, fill=255, font=font, anchor="lm")
    turned = label.rotate(55, resample=Image.Resampling.BICUBIC)
    corner = round(place[0] - side / 2), round(place[1] - side / 2 - height / 6)
    image.paste((20, 24, 32), (*corner, corner[0] + side, corner[1] + side), mask=turned)
