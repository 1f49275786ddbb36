"""Bars that lie: each with its name before it and its number behind it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from saccade.app.figures.charts.block import ChartBlock
from saccade.app.figures.finding import BarPanel
from saccade.app.look.draw.canvas import Canvas, Stroke, Words
from saccade.app.look.draw.chart import Mark
from saccade.app.look.draw.curves import pale
from saccade.app.look.draw.field import COLOURS, FAINT, GRID
from saccade.app.look.draw.scale import Scale, log_scale, plain_scale
from saccade.app.look.draw.text import text_width

WIDE, ROW, THICK = 280.0, 22.0, 13.0
HEADING, BETWEEN = 24.0, 8.0  # above a group, and between groups
ABOVE, BELOW, RIGHT = 40.0, 54.0, 16.0
SIZE = 12


class _Row(NamedTuple):
    """A heading, or a bar."""

    name: str
    mark: Mark | None
    colour: str
    height: float


def bar_block(panel: BarPanel, colours: Mapping[str, str]) -> ChartBlock:
    """Groups under headings; where there is one series only, its bars bear the groups' names.

    What is drawn as a line beside them has its colour here too.
    """
    rows = list(_rows(panel, colours))
    marks = [row.mark for row in rows if row.mark is not None]
    scale = _scale(marks, logarithmic=panel.log_x)
    labels = 24 + max(text_width(row.name, SIZE) for row in rows)
    numbers = 12 + max(text_width(_number(mark.mean), SIZE) for mark in marks)
    high = sum(row.height for row in rows)

    def paint(canvas: Canvas, left: float, top: float) -> None:
        x, y = left + labels, top + ABOVE
        _axis(canvas, scale, x, y, high, panel)
        for row in rows:
            _draw_row(canvas, scale, row, x, y)
            y += row.height

    return ChartBlock(labels + WIDE + numbers + RIGHT, ABOVE + high + BELOW, paint)


def _rows(panel: BarPanel, colours: Mapping[str, str]) -> Iterator[_Row]:
    several = len(panel.bars) > 1
    for at, group in enumerate(panel.groups):
        if several:
            yield _Row(group, None, FAINT, HEADING)
        for number, (name, marks) in enumerate(panel.bars.items()):
            shown = name if several else group
            colour = colours.get(shown, COLOURS[number % len(COLOURS)])
            yield _Row(shown, marks[at], colour, ROW)
        if several and at < len(panel.groups) - 1:
            yield _Row("", None, FAINT, BETWEEN)


def _scale(marks: list[Mark], *, logarithmic: bool) -> Scale:
    values = [value for mark in marks for value in (mark.low, mark.high)]
    if logarithmic:
        return log_scale(values)
    plain = plain_scale([0.0, *values], wanted=5)
    low = 0.0 if min(values) >= 0 else plain.low
    ticks = tuple((value, text) for value, text in plain.ticks if value >= low)
    return Scale(low, plain.high, ticks)


def _axis(
    canvas: Canvas, scale: Scale, left: float, top: float, high: float, panel: BarPanel
) -> None:
    bottom = top + high
    for value, text in scale.ticks:
        if text:
            x = left + scale.share(value) * WIDE
            canvas.strokes.append(Stroke(((x, top), (x, bottom)), GRID))
            canvas.words.append(Words((x, bottom + 14), text, colour=FAINT, across=0.5))
    canvas.words += [
        Words((left + WIDE / 2, top - 18), panel.title, size=14, across=0.5),
        Words((left + WIDE / 2, bottom + 36), panel.x_title, across=0.5),
    ]


def _draw_row(canvas: Canvas, scale: Scale, row: _Row, left: float, top: float) -> None:
    y = top + row.height / 2
    if row.mark is None:
        canvas.words.append(Words((left - 8, y + 3), row.name, size=SIZE, across=1.0))
        return
    mark, base = row.mark, 0.0 if scale.logarithmic else max(0.0, scale.share(0.0))
    start, end = left + base * WIDE, left + scale.share(mark.mean) * WIDE
    low, high = (left + scale.share(value) * WIDE for value in (mark.low, mark.high))
    up, down = y - THICK / 2, y + THICK / 2
    corners = ((start, up), (end, up), (end, down), (start, down))
    canvas.strokes.append(Stroke(corners, row.colour, 0.0, fill=row.colour))
    if mark.low < mark.high:
        canvas.strokes.append(Stroke(((low, y), (end, y)), pale(row.colour), 1.6))
        canvas.strokes.append(Stroke(((end, y), (high, y)), row.colour, 1.6))
    number = Words((max(start, end, high) + 6, y), _number(mark.mean), colour=row.colour)
    canvas.words += [number, Words((left - 8, y), row.name, colour=row.colour, across=1.0)]


def _number(value: float) -> str:
    """With as many digits as one reads at a glance."""
    if value and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.0e}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"
