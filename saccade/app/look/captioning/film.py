"""The film of a caption as PNG and SVG: the picture, then the picture once for each word."""

import base64
import io
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from saccade.app.look.captioning.images import Marked, data_url, image_of
from saccade.app.look.captioning.overlay import overlaid, veil
from saccade.app.look.draw.png import SCALE, font_of, printable
from saccade.app.look.draw.svg import svg_text
from saccade.data.images.lattice import Lattice

FRAME, GAP, LINE, HEAD, MARGIN = 150, 12, 28, 62, 18
ACROSS = 7
INK, SOFT, HIT = "#14181f", "#5b6472", "#ffd24d"
VEIL = 96  # pixels to a side of a smooth veil in an SVG, which is stretched


@dataclass(frozen=True)
class Film:
    """What is drawn, and how."""

    title: str
    caption: str
    picture: UInt8[Tensor, "3 H W"]
    words: list[str]
    maps: Float[Tensor, "words h w"]
    lattice: Lattice
    boxes: tuple[Marked, ...] = ()
    cells: bool = False
    hard: bool = False

    @property
    def size(self) -> tuple[int, int]:
        """In points."""
        count = len(self.words) + 1
        wide, high = min(count, ACROSS), -(-count // ACROSS)
        width = 2 * MARGIN + wide * FRAME + (wide - 1) * GAP
        return max(width, 420), HEAD + high * (FRAME + LINE) + MARGIN

    def corner(self, number: int) -> tuple[int, int]:
        """Upper left of a frame; the first is the picture itself."""
        row, column = divmod(number, ACROSS)
        return MARGIN + column * (FRAME + GAP), HEAD + row * (FRAME + LINE)

    def mark(self, weights: Float[Tensor, "h w"]) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what marks the cell that is looked at most, in a frame.

        Its outline where it is all that was seen, else a ring around its middle.
        """
        cell = int(weights.argmax())
        if self.hard:
            left, top, right, bottom = (FRAME * share for share in self.lattice.box(cell))
            return left, top, right, bottom
        y, x = (FRAME * share for share in self.lattice.middle(cell))
        radius = max(3.0, 0.2 * FRAME / max(weights.shape))
        return x - radius, y - radius, x + radius, y + radius


def draw_film(film: Film) -> bytes:
    """As PNG."""
    image = Image.new("RGB", (film.size[0] * SCALE, film.size[1] * SCALE), "white")
    draw = ImageDraw.Draw(image)
    left = MARGIN * SCALE
    draw.text((left, 12 * SCALE), printable(film.title), fill=SOFT, font=font_of(12))
    draw.text((left, 30 * SCALE), printable(film.caption), fill=INK, font=font_of(17))
    side = FRAME * SCALE
    plain = np.asarray(image_of(film.picture).resize((side, side), Image.Resampling.BICUBIC))
    _frame(draw, image, film, 0, plain, None)
    for number, weights in enumerate(film.maps, start=1):
        seen = overlaid(plain, weights, film.lattice, cells=film.cells)
        _frame(draw, image, film, number, seen, weights)
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _frame(
    draw: ImageDraw.ImageDraw,
    image: Image.Image,
    film: Film,
    number: int,
    pixels: UInt8[np.ndarray, "H W 3"],
    weights: Float[Tensor, "h w"] | None,
) -> None:
    x, y = (value * SCALE for value in film.corner(number))
    side = FRAME * SCALE
    image.paste(Image.fromarray(pixels), (x, y))
    for _, box in film.boxes if weights is None else ():
        corners = tuple(o + side * share for o, share in zip((x, y, x, y), box))
        draw.rectangle(corners, outline="black", width=4)
        draw.rectangle(corners, outline="white", width=2)
    if weights is not None and weights.any():
        left, top, right, bottom = (
            o + SCALE * value for o, value in zip((x, y, x, y), film.mark(weights))
        )
        shape = draw.rectangle if film.hard else draw.ellipse
        shape((left, top, right, bottom), outline="black", width=4)
        shape((left + 1, top + 1, right - 1, bottom - 1), outline="white", width=2)
    word = "the picture" if number == 0 else printable(film.words[number - 1])
    below = (x + side / 2, y + side + 4 * SCALE)
    draw.text(below, word, fill=SOFT if number == 0 else INK, font=_fitting(word), anchor="ma")


def _fitting(word: str) -> ImageFont.FreeTypeFont:
    """Smaller for a word that is wider than its frame."""
    sizes = range(15, 8, -1)
    return next((f for f in map(font_of, sizes) if f.getlength(word) <= FRAME * SCALE), font_of(8))


def draw_film_svg(film: Film) -> str:
    """As SVG: text stays text, and the picture is stored once."""
    width, height = film.size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif" role="img">',
        f"<title>{svg_text(film.title)}: {svg_text(film.caption)}</title>",
        f'<defs><image id="picture" width="{FRAME}" height="{FRAME}" '
        f'href="{data_url(film.picture)}"/></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="22" font-size="12" fill="{SOFT}">{svg_text(film.title)}</text>',
        f'<text x="{MARGIN}" y="46" font-size="17" fill="{INK}">{svg_text(film.caption)}</text>',
    ]
    words = ["the picture", *film.words]
    for number, word in enumerate(words):
        x, y = film.corner(number)
        inside = _svg_boxes(film) if number == 0 else _svg_map(film, film.maps[number - 1])
        colour = SOFT if number == 0 else INK
        parts += [
            f'<g transform="translate({x} {y})"><use href="#picture"/>{inside}'
            f'<text x="{FRAME / 2}" y="{FRAME + 18}" text-anchor="middle" font-size="15" '
            f'fill="{colour}">{svg_text(word)}</text></g>'
        ]
    return "\n".join([*parts, "</svg>"])


def _svg_boxes(film: Film) -> str:
    drawn = ""
    for label, box in film.boxes:
        left, top, right, bottom = (FRAME * share for share in box)
        drawn += (
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{bottom - top:.1f}" fill="none" stroke="white" stroke-width="1.2">'
            f"<title>{svg_text(label)}</title></rect>"
        )
    return drawn


def _svg_map(film: Film, weights: Float[Tensor, "h w"]) -> str:
    if not weights.any():
        return ""
    size = SCALE * FRAME if film.cells else VEIL
    buffer = io.BytesIO()
    drawn = veil(weights, size, film.lattice, cells=film.cells)
    Image.fromarray(drawn).save(buffer, "PNG", optimize=True)
    href = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    left, top, right, bottom = film.mark(weights)
    middle, line = ((left + right) / 2, (top + bottom) / 2), 'fill="none" stroke="white"'
    mark = (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" {line} stroke-width="1.6"/>'
        if film.hard
        else f'<circle cx="{middle[0]:.1f}" cy="{middle[1]:.1f}" r="4" {line} stroke-width="1.5"/>'
    )
    how = ' style="image-rendering:pixelated"' if film.cells else ""
    return f'<image width="{FRAME}" height="{FRAME}" href="{href}"{how}/>{mark}'
