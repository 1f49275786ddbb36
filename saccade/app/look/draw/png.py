"""An attention matrix as PNG, drawn with Pillow."""

import io

from PIL import Image, ImageDraw, ImageFont

from saccade.app.look.draw.colour import ink, shade
from saccade.app.look.draw.fonts import ROBOTO, warn_of_fonts
from saccade.app.look.draw.layout import FONT, GAP, Layout, labels
from saccade.app.look.draw.text import CLEAR, paste_text, text_strip, text_width
from saccade.printable import printable

SCALE = 2  # pixels to a point, for sharp text
INK = (20, 24, 32)


def draw_png(
    rows: list[str], columns: list[str], weights: list[list[float]], *, title: str
) -> bytes:
    """Each cell as dark as its weight; weights of a tenth or more are written in it."""
    rows, columns = labels(rows), labels(columns)
    large, tiny = FONT * SCALE, font_of(11)
    head = printable(title)
    layout = Layout.of(rows, columns, head, measure=lambda word: text_width(word, large) / SCALE)
    size = round(layout.width * SCALE), round(layout.height * SCALE)
    image = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(image)
    paste_text(image, (GAP * SCALE, (GAP + 7) * SCALE), head, 13 * SCALE, (91, 100, 114))
    for j in range(0, len(columns), layout.every):
        x, y = layout.corner(0, j)
        foot = (x + layout.cell / 2) * SCALE, (y - 6) * SCALE
        _slanted(image, columns[j], foot, mirrored=layout.mirrored)
    for i in range(0, len(rows), layout.every):
        _, y = layout.corner(i, 0)
        place = (layout.left - GAP) * SCALE, (y + layout.cell / 2) * SCALE
        paste_text(image, place, rows[i], large, INK, across=1.0)
    for i, line in enumerate(weights):
        for j, weight in enumerate(line):
            _cell(draw, layout, i, j, weight, tiny)
    warn_of_fonts([head, *rows[:: layout.every], *columns[:: layout.every]])
    return png_bytes(image)


def png_bytes(image: Image.Image) -> bytes:
    """As small as it gets."""
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def font_of(size: int) -> ImageFont.FreeTypeFont:
    """For numbers; texts are in fonts that have their letters."""
    return ROBOTO.at(size * SCALE)


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
    image: Image.Image, word: str, place: tuple[float | int, float | int], *, mirrored: bool
) -> None:
    """Text that rises from a point at 55 degrees; mirrored it rises to the left."""
    strip = text_strip(word, FONT * SCALE, INK)
    side = 2 * max(strip.size)
    square = Image.new("RGBA", (side, side), CLEAR)
    # The text starts (or ends) in the middle, which stays where it is when the square is turned.
    outside = strip.width - FONT * SCALE // 2 if mirrored else FONT * SCALE // 2
    square.paste(strip, (side // 2 - outside, (side - strip.height) // 2))
    turned = square.rotate(-55 if mirrored else 55, resample=Image.Resampling.BICUBIC)
    corner = round(place[0] - side / 2), round(place[1] - side / 2 - FONT * SCALE / 3)
    image.paste(turned, corner, turned)
