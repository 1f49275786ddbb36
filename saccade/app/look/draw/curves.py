"""Curves, each with its name where it ends: no legend to look things up.

Names stand in a column on the right; thin lines lead there, level from the end of each curve to the
edge of the field and slanting from there on.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from saccade.app.look.draw.canvas import Canvas, Place, Stroke, Words
from saccade.app.look.draw.chart import marker
from saccade.app.look.draw.field import (
    ABOVE,
    BELOW,
    COLOURS,
    HIGH,
    LEFT,
    RIGHT,
    WIDE,
    ChartField,
    draw_axes,
)
from saccade.app.look.draw.scale import Scale
from saccade.app.look.draw.text import text_width
from saccade.printable import printable

SIZE, LINE = 12, 15.0  # of a name, and from one to the next
DOT = 3.0  # half a marker
LEADER = 44.0  # from the field to the names
INK, QUIET = "#141820", "#ccd2da"
MOST = int(HIGH / LINE)  # names in a column
SHARES = Scale(0.0, 1.0, tuple((n / 5, f"{n / 5:.1f}") for n in range(6)))


@dataclass(frozen=True)
class Curve:
    """Some points with a name; one that is not `named` stays in the background.

    Those that are `marked` are seen; around them may be a band, from `low` to `high`.
    """

    name: str
    points: list[Place]
    main: bool = False
    named: bool = True
    marked: bool = False
    low: tuple[Place, ...] = ()
    high: tuple[Place, ...] = ()


@dataclass(frozen=True)
class CurvePanel:
    """Curves on the same axes, which are of shares unless said otherwise."""

    title: str
    curves: list[Curve]
    x: Scale = SHARES
    y: Scale = SHARES


def draw_curves(panels: list[CurvePanel], *, title: str, x_title: str, y_title: str) -> Canvas:
    """Panels, two in a row; what stands at the same place in each has the same colour."""
    names = [curve.name for panel in panels for curve in panel.curves if curve.named]
    room = LEADER + max((text_width(printable(name), SIZE) for name in names), default=0.0) + RIGHT
    wide, high = LEFT + WIDE + room, ABOVE + HIGH + BELOW
    head, columns = 40.0, min(2, len(panels)) or 1
    width = max(columns * wide, 32.0 + text_width(printable(title), 14))
    canvas = Canvas(width, head + -(-len(panels) // columns) * high, title)
    canvas.words.append(Words((16.0, 22.0), title, size=14))
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        left, top = column * wide + LEFT, head + row * high + ABOVE
        field = ChartField(left, top, panel.x, panel.y)
        draw_axes(canvas, field, panel.title, x_title, y_title)
        draw_panel(canvas, field, panel)
    return canvas


def draw_panel(
    canvas: Canvas, field: ChartField, panel: CurvePanel, *, leader: float = LEADER
) -> None:
    """Curves, and their names so far from the field; the main one in front, bands behind all."""
    drawn = [(curve, _colour(curve, number)) for number, curve in enumerate(panel.curves)]
    canvas.strokes += _bands(field, drawn)
    drawn.sort(key=lambda one: (one[0].main, one[0].named))
    named = [(curve, colour) for curve, colour in drawn if curve.named]
    ends = [field.place(*curve.points[-1]) for curve, _ in named]
    order = sorted(range(len(ends)), key=lambda at: (ends[at][1], -ends[at][0]))
    heights = spread([ends[at][1] for at in order], field.top, field.top + field.high)
    x = field.left + field.wide + leader
    for at, y in zip(order, heights):
        curve, colour = named[at]
        edge, level = field.left + field.wide, ends[at][1]
        led = (ends[at], (edge, level), (x - 10, y), (x - 4, y))
        canvas.strokes.append(Stroke(led, pale(colour), 0.8))
        canvas.words.append(Words((x, y), curve.name, size=SIZE, colour=colour))
    for curve, colour in drawn:
        points = tuple(field.place(*point) for point in curve.points)
        canvas.strokes.append(Stroke(points, colour, 3.0 if curve.main else 1.5))
    for number, curve in enumerate(panel.curves):
        if curve.marked and curve.named:
            places = (field.place(*point) for point in curve.points)
            canvas.strokes += [marker(place, number, DOT) for place in places]


def _bands(field: ChartField, drawn: list[tuple[Curve, str]]) -> Iterator[Stroke]:
    """All areas, then all edges, so that no band hides how far another reaches."""
    banded = [(curve, pale(colour)) for curve, colour in drawn if curve.low]
    for curve, colour in banded:
        around = tuple(field.place(*point) for point in (*curve.low, *reversed(curve.high)))
        yield Stroke(around, pale(colour), 0.0, fill=pale(colour))
    for curve, colour in banded:
        for edge in (curve.low, curve.high):
            yield Stroke(tuple(field.place(*point) for point in edge), colour, 0.8)


def _colour(curve: Curve, number: int) -> str:
    if curve.main:
        return INK
    return COLOURS[number % len(COLOURS)] if curve.named else QUIET


def spread(wanted: list[float], low: float, high: float) -> list[float]:
    """Places a line apart or more, in order and within bounds, as near as can be to the wanted.

    Neighbours that would be too close are a block, around the mean of what its members want.
    """
    assert (len(wanted) - 1) * LINE <= high - low
    starts, blocks = list[float](), list[list[float]]()  # what each would have its block start at
    for place in wanted:
        blocks.append([place])
        while True:
            mean = sum(blocks[-1]) / len(blocks[-1])
            start = min(max(mean, low), high - (len(blocks[-1]) - 1) * LINE)
            if not starts or starts[-1] + len(blocks[-2]) * LINE <= start:
                break
            starts.pop()
            last = blocks.pop()
            before = len(blocks[-1]) * LINE
            blocks[-1] += [one - before for one in last]
        starts.append(start)
    return [start + at * LINE for start, one in zip(starts, blocks) for at in range(len(one))]


def pale(colour: str) -> str:
    """Two thirds of the way to white."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{(part + 2 * 255) // 3:02x}" for part in parts)
