"""Values against sizes, a line for each series: panels beside one another, readable in grey too.

A series has a marker of its own, filled or hollow, as well as a colour.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from saccade.app.look.draw.canvas import Canvas, Place, Stroke, Words
from saccade.app.look.draw.field import (
    ABOVE,
    BELOW,
    COLOURS,
    FAINT,
    HIGH,
    LEFT,
    RIGHT,
    WIDE,
    ChartField,
    draw_axes,
)
from saccade.app.look.draw.scale import log_scale, plain_scale
from saccade.app.look.draw.text import text_width

LEGEND = 40.0  # height of a line of it
MARK, CAP = 5.0, 3.5  # half a marker, half the cap of an error bar
LABEL = 11  # size of a point's name
SIDES = (  # corners of the markers, and the turn of the first from the top in degrees
    (24, 0.0),
    (4, 45.0),
    (3, 0.0),
    (4, 0.0),
    (3, 180.0),
    (5, 0.0),
)
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Mark:
    """A mean of values with the smallest and the largest, and its name where it needs one."""

    name: str
    x: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Panel:
    """The marks of each series on the same data."""

    title: str
    series: dict[str, list[Mark]]

    @property
    def marks(self) -> list[Mark]:
        return [mark for marks in self.series.values() for mark in marks]


def draw_chart(panels: list[Panel], *, x_title: str, y_title: str) -> Canvas:
    """Panels two in a row under the legend, with axes of their own."""
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    cell_wide, cell_high = LEFT + WIDE + RIGHT, ABOVE + HIGH + BELOW
    names = list(dict.fromkeys(name for panel in panels for name in panel.series))
    legend, lines = _legend(names, columns * cell_wide)
    top = LEGEND * lines
    canvas = Canvas(columns * cell_wide, top + rows * cell_high, f"{y_title} against {x_title}")
    for place, text, number in legend:
        canvas.strokes.append(marker(place, number))
        canvas.words.append(Words((place[0] + 12, place[1]), text, size=13))
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        field = ChartField(
            column * cell_wide + LEFT,
            top + row * cell_high + ABOVE,
            log_scale([mark.x for mark in panel.marks]),
            plain_scale([value for mark in panel.marks for value in (mark.low, mark.high)]),
        )
        draw_axes(canvas, field, panel.title, x_title, y_title)
        _series(canvas, field, panel, names)
    return canvas


def _legend(names: list[str], width: float) -> tuple[list[tuple[Place, str, int]], int]:
    """Where each series is named, in as many lines as that takes, and how many these are."""
    found: list[tuple[Place, str, int]] = []
    x, line = LEFT, 0
    for number, name in enumerate(names):
        long = 40 + text_width(name, 13)
        if x + long > width and x > LEFT:
            x, line = LEFT, line + 1
        found.append(((x + MARK, LEGEND * (line + 0.6)), name, number))
        x += long
    return found, line + 1


def _series(canvas: Canvas, field: ChartField, panel: Panel, names: list[str]) -> None:
    taken: list[Box] = []
    for name, marks in panel.series.items():
        number = names.index(name)
        colour = COLOURS[number % len(COLOURS)]
        places = [field.place(mark.x, mark.mean) for mark in marks]
        canvas.strokes.append(Stroke(tuple(places), colour, 1.5))
        taken += [_around(place, 1.0, 1.0) for place in _along(places)]
        for mark in marks:
            taken.append(_around(field.place(mark.x, mark.mean), 2 * MARK, 1.5 * MARK))
            (x, top), (_, bottom) = field.place(mark.x, mark.high), field.place(mark.x, mark.low)
            taken.append((x - 2 * CAP, top - CAP, x + 2 * CAP, bottom + CAP))
            canvas.strokes += error_bar(field, mark, colour)
        canvas.strokes += [marker(place, number) for place in places]
    canvas.words += [_label(field, mark, taken) for mark in panel.marks if mark.name]


def error_bar(field: ChartField, mark: Mark, colour: str) -> Iterator[Stroke]:
    """From the smallest to the largest, where they differ."""
    if mark.low == mark.high:
        return
    (x, top), (_, bottom) = field.place(mark.x, mark.high), field.place(mark.x, mark.low)
    yield Stroke(((x, top), (x, bottom)), colour, 1.2)
    for y in (top, bottom):
        yield Stroke(((x - CAP, y), (x + CAP, y)), colour, 1.2)


def marker(place: Place, number: int, half: float = MARK) -> Stroke:
    """A regular shape; those of later series are hollow."""
    colour = COLOURS[number % len(COLOURS)]
    corners, turn = SIDES[number % len(SIDES)]
    size = half * (1.0 if corners > 5 else 1.25)
    angles = [math.radians(turn + 360 * corner / corners) for corner in range(corners)]
    points = tuple(
        (place[0] + size * math.sin(angle), place[1] - size * math.cos(angle)) for angle in angles
    )
    return Stroke(points, colour, 1.5, fill="#ffffff" if number // len(SIDES) % 2 else colour)


def _label(field: ChartField, mark: Mark, taken: list[Box]) -> Words:
    """The name of a point, where it covers least; what it covers is taken after that."""
    x, y = field.place(mark.x, mark.mean)
    high, low = field.place(mark.x, mark.high)[1], field.place(mark.x, mark.low)[1]
    half, tall = text_width(mark.name, LABEL) / 2, LABEL / 2
    side, over, under = MARK + 4 + half, high - MARK - 4 - tall, low + MARK + 4 + tall
    middles = [(x, over), (x, under), (x + side, y), (x - side, y)]
    middles += [(x + side * s, to) for to in (over, under) for s in (0.8, -0.8)]
    middles += [(x, over - 2 * LABEL), (x, under + 2 * LABEL)]
    frame = (field.left, field.top, field.left + WIDE, field.top + HIGH)

    def cost(middle: Place) -> float:
        box = _around(middle, half, tall)
        outside = 4 * half * tall - _overlap(box, frame)
        away = math.hypot(middle[0] - x, middle[1] - y)
        return outside + sum(_overlap(box, one) for one in taken) + away / 6

    best = min(middles, key=cost)
    taken.append(_around(best, half, tall))
    return Words(best, mark.name, size=LABEL, colour=FAINT, across=0.5)


def _around(middle: Place, half: float, tall: float) -> Box:
    x, y = middle
    return x - half, y - tall, x + half, y + tall


def _overlap(one: Box, other: Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    tall = min(one[3], other[3]) - max(one[1], other[1])
    return max(0.0, wide) * max(0.0, tall)


def _along(places: list[Place], apart: float = 6.0) -> Iterator[Place]:
    """Places on a line, so that names keep off it."""
    for (x0, y0), (x1, y1) in pairwise(places):
        count = max(1, round(math.hypot(x1 - x0, y1 - y0) / apart))
        yield from ((x0 + (x1 - x0) * i / count, y0 + (y1 - y0) * i / count) for i in range(count))
