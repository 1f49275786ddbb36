"""Where a captioner looked, word by word over the image, and the forms it can be shown in.

The film is the image, then the image once for each word: as PNG, and as SVG.
"""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image, ImageDraw
from torch import Tensor

from saccade.app.look.axis import grid_entry
from saccade.app.look.captioning.overlay import lights, veil
from saccade.app.look.captioning.text import draw_words
from saccade.app.look.document import LookDocument, MarkedBox
from saccade.app.look.draw.figure import save_by_ending
from saccade.app.look.draw.fonts import runs_left, warn_of_fonts
from saccade.app.look.draw.layout import label, labels
from saccade.app.look.draw.png import SCALE, png_bytes
from saccade.app.look.draw.svg import FAMILIES, directed, svg_text
from saccade.app.look.draw.text import paste_text, text_width
from saccade.app.look.html import framed, page_html
from saccade.app.look.images import data_url, pillow_image
from saccade.data.images.lattice import Lattice

FRAME, GAP, LINE, HEAD, MARGIN = 150, 12, 28, 62, 18
ACROSS = 7
INK, SOFT = "#14181f", "#5b6472"
VEIL = 96  # pixels to a side of a smooth veil in an SVG, which is stretched
FIRST = "the image"


@dataclass(frozen=True)
class ImageLook:
    """Where each word looked: a map over the image for each.

    `hard` says that it was one cell at a time. Rows that are objects have a box and a colour each;
    in these colours the first frame shows all of them at once. Where it was boxes that were looked
    at, `peaks` are those that were most, one for each row.
    """

    rows: list[str]
    maps: Float[Tensor, "words h w"] = field(repr=False)
    lattice: Lattice = field(repr=False)
    image: UInt8[Tensor, "3 H W"] = field(repr=False)
    title: str
    caption: str
    document: Callable[[], LookDocument] = field(repr=False)
    hard: bool = False
    boxes: tuple[MarkedBox, ...] = field(default=(), repr=False)
    colours: tuple[str, ...] = field(default=(), repr=False)
    peaks: tuple[Sequence[float], ...] = field(default=(), repr=False)

    def save(self, path: str | Path, *, cells: bool = False) -> Path:
        """Write the film, the page or the numbers, by the file's ending.

        With `cells` the film shows the cells as they are, square.
        """
        writers: dict[str, Callable[[], bytes]] = {
            ".html": lambda: page_html(self.document()).encode(),
            ".svg": lambda: draw_film_svg(self, cells=cells).encode(),
            ".png": lambda: draw_film(self, cells=cells),
            ".json": self._json,
        }
        return save_by_ending(path, writers)

    def text(self, *, colour: bool) -> str:
        """For a terminal: each word and where on the image it looked."""
        return draw_words(labels(self.rows), self.maps, self.lattice, colour=colour)

    def _repr_png_(self) -> bytes:
        """What a notebook shows where it shows no pages."""
        return draw_film(self)

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own."""
        return framed(self.document())

    def _json(self) -> bytes:
        maps = [[[round(w, 6) for w in line] for line in one] for one in self.maps.tolist()]
        grid = {
            key: value for key, value in vars(grid_entry(self.lattice)).items() if key != "special"
        }
        table = {"title": self.title, "caption": self.caption, "words": self.rows}
        table |= {"boxes": self.boxes, "grid": grid, "hard": self.hard, "maps": maps}
        return json.dumps(table, default=vars, ensure_ascii=False).encode()

    @property
    def size(self) -> tuple[int, int]:
        """Of the film, in points."""
        count = len(self.rows) + 1
        wide, high = min(count, ACROSS), -(-count // ACROSS)
        width = 2 * MARGIN + wide * FRAME + (wide - 1) * GAP
        return max(width, 420), HEAD + high * (self.tall + LINE) + MARGIN

    @property
    def tall(self) -> int:
        """How high a frame is: images keep their proportions, within reason."""
        height, width = self.image.shape[1:]
        return min(max(round(FRAME * height / width), FRAME // 3), 3 * FRAME)

    def corner(self, number: int) -> tuple[int, int]:
        """Upper left of a frame; the first is the image itself. They run as the words do."""
        row, column = divmod(number, ACROSS)
        across = MARGIN + column * (FRAME + GAP)
        x = self.size[0] - FRAME - across if runs_left(self.rows) else across
        return x, HEAD + row * (self.tall + LINE)

    @property
    def outlined(self) -> bool:
        """Whether what is looked at most has an outline of its own, else a ring is around it."""
        return self.hard or bool(self.peaks)

    def marked(self, number: int) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of what marks that which is looked at most, in a frame."""
        if self.peaks:
            return self.corners(self.peaks[number - 1])
        return self.mark(self.maps[number - 1])

    def mark(self, weights: Float[Tensor, "h w"]) -> tuple[float, float, float, float]:
        """Of a cell: its outline where it is all that was seen, else a ring around its middle."""
        cell = int(weights.argmax())
        if self.hard:
            return self.corners(self.lattice.box(cell))
        radius = min(max(3.0, 0.2 * FRAME / max(weights.shape)), 6.0)
        y, x = (
            min(max(long * share, radius), long - radius)
            for long, share in zip((self.tall, FRAME), self.lattice.middle(cell))
        )
        return x - radius, y - radius, x + radius, y + radius

    def corners(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """Of a box in shares of the image, in a frame."""
        left, top, right, bottom = box
        return FRAME * left, self.tall * top, FRAME * right, self.tall * bottom

    def outlines(self, number: int) -> list[tuple[MarkedBox, str]]:
        """The boxes of a frame and their colours: on the image all, on an object's its own."""
        colours = self.colours or ("white",) * len(self.boxes)
        every = list(zip(self.boxes, colours))
        return every if number == 0 else every[number - 1 : number] if self.colours else []

    def cover(self, number: int, size: int, *, cells: bool) -> UInt8[np.ndarray, "size size 4"]:
        """What is laid over a frame."""
        if number:
            return veil(self.maps[number - 1], size, self.lattice, cells=cells)
        if not self.colours:
            return np.zeros((size, size, 4), dtype=np.uint8)
        return lights(list(self.maps), self.colours, size, self.lattice, cells=cells)


def draw_film(film: ImageLook, *, cells: bool = False) -> bytes:
    """As PNG."""
    sheet = Image.new("RGB", (film.size[0] * SCALE, film.size[1] * SCALE), "white")
    draw = ImageDraw.Draw(sheet)
    left = MARGIN * SCALE
    lines = (label(film.title), 19, 12, SOFT), (label(film.caption), 40, 17, INK)
    for text, y, size, colour in lines:
        paste_text(sheet, (left, y * SCALE), text, size * SCALE, colour)
    side, high = FRAME * SCALE, film.tall * SCALE
    plain = pillow_image(film.image).resize((side, high), Image.Resampling.BICUBIC)
    for number, word in enumerate(labels([FIRST, *film.rows])):
        x, y = (value * SCALE for value in film.corner(number))
        sheet.paste(plain, (x, y))
        cover = Image.fromarray(film.cover(number, side, cells=cells)).resize((side, high))
        sheet.paste(cover, (x, y), cover)
        _frame(draw, film, number, (x, y))
        below = (x + side / 2, y + high + 13 * SCALE)
        paste_text(sheet, below, word, _fitting(word), INK if number else SOFT, across=0.5)
    warn_of_fonts([film.title, film.caption])
    return png_bytes(sheet)


def _frame(
    draw: ImageDraw.ImageDraw,
    film: ImageLook,
    number: int,
    corner: tuple[int, int],
) -> None:
    """What is marked in a frame."""
    x, y = corner
    weights = film.maps[number - 1] if number else film.maps[:0]
    for marked, colour in film.outlines(number):
        left, top, right, bottom = (
            o + SCALE * value for o, value in zip((x, y, x, y), film.corners(marked.box))
        )
        draw.rectangle((left, top, right, bottom), outline="black", width=4)
        draw.rectangle((left, top, right, bottom), outline=colour, width=3 if film.colours else 2)
    if weights.any():
        left, top, right, bottom = (
            o + SCALE * value for o, value in zip((x, y, x, y), film.marked(number))
        )
        shape = draw.rectangle if film.outlined else draw.ellipse
        shape((left, top, right, bottom), outline="black", width=4)
        shape((left + 1, top + 1, right - 1, bottom - 1), outline="white", width=2)


def _fitting(word: str) -> int:
    """A size in pixels, smaller for a word that is wider than its frame."""
    sizes = [size * SCALE for size in range(15, 7, -1)]
    return next((size for size in sizes if text_width(word, size) <= FRAME * SCALE), sizes[-1])


def draw_film_svg(film: ImageLook, *, cells: bool = False) -> str:
    """As SVG: text stays text, and the image is stored once."""
    width, height = film.size
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FAMILIES}" role="img">',
        f"<title>{svg_text(film.title)}: {svg_text(film.caption)}</title>",
        f'<defs><image id="image" width="{FRAME}" height="{film.tall}" '
        f'preserveAspectRatio="none" href="{data_url(film.image)}"/></defs>',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="22" font-size="12" fill="{SOFT}">{svg_text(film.title)}</text>',
        f'<text x="{MARGIN}" y="46" font-size="17" fill="{INK}">{svg_text(film.caption)}</text>',
    ]
    for number, word in enumerate(labels([FIRST, *film.rows])):
        x, y = film.corner(number)
        inside = _svg_map(film, number, cells) + _svg_boxes(film, number)
        colour = SOFT if number == 0 else INK
        parts += [
            f'<g transform="translate({x} {y})"><use href="#image"/>{inside}'
            f'<text x="{FRAME / 2}" y="{film.tall + 18}" font-size="15" fill="{colour}"'
            f"{directed(word, 'middle')}>{svg_text(word)}</text></g>"
        ]
    return "\n".join([*parts, "</svg>"])


def _svg_boxes(film: ImageLook, number: int) -> str:
    return "".join(
        _svg_outline(film.corners(one.box), 1.2, f"<title>{svg_text(one.label)}</title>", colour)
        for one, colour in film.outlines(number)
    )


def _svg_map(film: ImageLook, number: int, cells: bool) -> str:
    size = SCALE * FRAME if cells else VEIL
    cover = film.cover(number, size, cells=cells)
    if not cover.any():
        return ""
    drawn = png_bytes(Image.fromarray(cover))
    href = f"data:image/png;base64,{base64.b64encode(drawn).decode()}"
    if number == 0:
        mark = ""
    elif film.outlined:
        mark = _svg_outline(film.marked(number), 1.6)
    else:
        left, top, right, bottom = film.marked(number)
        middle = f'cx="{(left + right) / 2:.1f}" cy="{(top + bottom) / 2:.1f}"'
        mark = f'<circle {middle} r="4" fill="none" stroke="white" stroke-width="1.5"/>'
    how = ' style="image-rendering:pixelated"' if cells else ""
    return (
        f'<image width="{FRAME}" height="{film.tall}" preserveAspectRatio="none" '
        f'href="{href}"{how}/>{mark}'
    )


def _svg_outline(box: Sequence[float], line: float, inside: str = "", colour: str = "white") -> str:
    left, top, right, bottom = box
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
        f'height="{bottom - top:.1f}" fill="none" stroke="{colour}" stroke-width="{line}">'
        f"{inside}</rect>"
    )
