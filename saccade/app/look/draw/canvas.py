"""Lines, areas and words on a page: said once, and written as SVG or as PNG."""

from dataclasses import dataclass, field

from PIL import Image, ImageDraw

from saccade.app.look.draw.colour import night
from saccade.app.look.draw.fonts import warn_of_fonts
from saccade.app.look.draw.png import SCALE, png_bytes
from saccade.app.look.draw.svg import FAMILIES, directed, svg_text
from saccade.app.look.draw.text import paste_text, text_strip
from saccade.printable import printable

FINE = 2  # lines are drawn so much larger and then made smaller, which smooths them
PAPER = "#ffffff"
ANCHORS = {0.0: "start", 0.5: "middle", 1.0: "end"}
Place = tuple[float, float]


@dataclass(frozen=True)
class Stroke:
    """A line through some points; with a `fill` an area, which the line goes around."""

    points: tuple[Place, ...]
    colour: str
    width: float = 1.0
    fill: str | None = None


@dataclass(frozen=True)
class Tiles:
    """Rectangles of one colour: left, top, width and height of each."""

    places: tuple[tuple[float, float, float, float], ...]
    colour: str


@dataclass(frozen=True)
class Words:
    """A line of text; `across` is which share of it lies left of its place: 0, ½ or all."""

    place: Place
    text: str
    size: int = 12
    colour: str = "#141820"
    across: float = 0.0
    upwards: bool = False


@dataclass
class Canvas:
    """What is drawn, in points of a page: tiles behind strokes, and words in front of all."""

    width: float
    height: float
    title: str
    strokes: list[Stroke] = field(default_factory=list[Stroke], repr=False)
    words: list[Words] = field(default_factory=list[Words], repr=False)
    tiles: list[Tiles] = field(default_factory=list[Tiles], repr=False)

    def svg(self) -> str:
        """Text stays text; where the reader's ground is dark, so is the page."""
        width, height = f"{self.width:.0f}", f"{self.height:.0f}"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" font-family="{FAMILIES}" role="img">',
                f"<title>{svg_text(self.title)}</title>",
                self._night(),
                f'<rect width="100%" height="100%" fill="{PAPER}"/>',
                *map(_svg_tiles, self.tiles),
                *map(_svg_stroke, self.strokes),
                *map(_svg_words, self.words),
                "</svg>",
            ]
        )

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.svg()

    def _night(self) -> str:
        """A style that gives every colour its counterpart where the reader prefers dark pages."""
        used = {one.colour for one in (*self.tiles, *self.strokes, *self.words)}
        used |= {one.fill for one in self.strokes if one.fill is not None} | {PAPER}
        rules = (
            f'[{part}="{colour}"]{{{part}:{night(colour)}}}'
            for colour in sorted(used)
            for part in ("fill", "stroke")
        )
        return f"<style>@media (prefers-color-scheme:dark){{{''.join(rules)}}}</style>"

    def png(self) -> bytes:
        scale = SCALE * FINE
        size = round(self.width * scale), round(self.height * scale)
        image = Image.new("RGB", size, PAPER)
        draw = ImageDraw.Draw(image)
        for tiles in self.tiles:
            for x, y, wide, high in tiles.places:
                corners = x * scale, y * scale, (x + wide) * scale, (y + high) * scale
                draw.rectangle(corners, fill=tiles.colour)
        for one in self.strokes:
            points = [(x * scale, y * scale) for x, y in one.points]
            if one.fill is not None:
                draw.polygon(points, fill=one.fill)
                points.append(points[0])
            draw.line(points, fill=one.colour, width=round(one.width * scale), joint="curve")
        image = image.resize((size[0] // FINE, size[1] // FINE), Image.Resampling.BOX)
        for one in self.words:
            _paste(image, one)
        warn_of_fonts(one.text for one in self.words)
        return png_bytes(image)


def _svg_tiles(one: Tiles) -> str:
    """One path for all, outlined by a hair so that no ground shows between neighbours."""
    parts = (f"M{x:.1f} {y:.1f}h{w:.1f}v{h:.1f}h{-w:.1f}z" for x, y, w, h in one.places)
    style = f'fill="{one.colour}" stroke="{one.colour}" stroke-width="0.8"'
    return f'<path d="{"".join(parts)}" {style}/>'


def _svg_stroke(one: Stroke) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in one.points)
    kind = "polyline" if one.fill is None else "polygon"
    return (
        f'<{kind} points="{points}" fill="{one.fill or "none"}" stroke="{one.colour}" '
        f'stroke-width="{one.width:g}" stroke-linejoin="round"/>'
    )


def _svg_words(one: Words) -> str:
    (x, y), anchor = one.place, directed(one.text, ANCHORS[one.across])
    turned = "rotate(-90) " if one.upwards else ""
    place = f'transform="translate({x:.1f} {y:.1f}) {turned}translate(0 {0.35 * one.size:.1f})"'
    style = f'font-size="{one.size}" fill="{one.colour}"'
    return f"<text {place}{anchor} {style}>{svg_text(one.text)}</text>"


def _paste(image: Image.Image, one: Words) -> None:
    (x, y), size, text = one.place, one.size * SCALE, printable(one.text)
    x, y = x * SCALE, y * SCALE
    if not one.upwards:
        paste_text(image, (x, y), text, size, one.colour, across=one.across)
        return
    strip = text_strip(text, size, one.colour).rotate(90, expand=True)
    top = y - size / 2 - (1 - one.across) * (strip.height - size)
    image.paste(strip, (round(x - strip.width / 2), round(top)), strip)
