"""A matrix of numbers as shades, with words on both sides where it has them."""

from collections import defaultdict
from itertools import groupby

from saccade.app.figures.charts.block import ChartBlock
from saccade.app.figures.finding import HeatPanel
from saccade.app.look.draw.canvas import Canvas, Stroke, Tiles, Words
from saccade.app.look.draw.colour import shade
from saccade.app.look.draw.field import COLOURS, FAINT
from saccade.app.look.draw.text import text_width

LARGEST = 26.0  # of a cell
WIDEST, HIGHEST = 480.0, 360.0  # of a map whose cells have names
SMALL = 145.0  # of a side whose cells have none
SIZE, GAP = 12, 8.0
TITLE, FOOT = 30.0, 30.0
LEVELS = 32  # shades


def heat_block(panel: HeatPanel) -> ChartBlock:
    """Cells are squares, unless there are many of one side."""
    wide = min(LARGEST, (WIDEST if any(panel.columns) else SMALL) / len(panel.columns))
    high = min(LARGEST, (HIGHEST if all(panel.rows) else SMALL) / len(panel.rows))
    beside = GAP + max(text_width(row, SIZE) for row in panel.rows) + (18 if panel.y_title else 0)
    over = GAP + max(text_width(column, SIZE) for column in panel.columns)
    width = max(wide * len(panel.columns), text_width(panel.title, 14))
    height = TITLE + over + high * len(panel.rows) + (FOOT if panel.x_title else GAP)

    def paint(canvas: Canvas, left: float, top: float) -> None:
        x, y = left + GAP + beside, top + TITLE + over
        canvas.words.append(Words((x, top + 14), panel.title, size=14))
        canvas.tiles += _tiles(panel, (x, y), (wide, high))
        for i, j in panel.outlined:
            place = x + j * wide + 1, y + i * high + 1, wide - 2, high - 2
            canvas.strokes.append(Stroke(_outline(*place), COLOURS[1], 2.0))
        for i, name in enumerate(panel.rows):
            middle = x - GAP, y + (i + 0.5) * high
            canvas.words.append(Words(middle, name, size=SIZE, across=1.0))
        for j, name in enumerate(panel.columns):
            foot = x + (j + 0.5) * wide, y - GAP
            canvas.words.append(Words(foot, name, size=SIZE, upwards=True))
        _axis_titles(canvas, panel, (x, y), (wide * len(panel.columns), high * len(panel.rows)))

    return ChartBlock(GAP + beside + width + 3 * GAP, height + GAP, paint)


def _axis_titles(
    canvas: Canvas, panel: HeatPanel, corner: tuple[float, float], size: tuple[float, float]
) -> None:
    (x, y), (wide, high) = corner, size
    if panel.x_title:
        below = x + wide / 2, y + high + 16
        canvas.words.append(Words(below, panel.x_title, size=SIZE, colour=FAINT, across=0.5))
    if panel.y_title:
        names = max(text_width(row, SIZE) for row in panel.rows)
        before = x - GAP - names - 12, y + high / 2
        title = Words(before, panel.y_title, size=SIZE, colour=FAINT, across=0.5, upwards=True)
        canvas.words.append(title)


def _tiles(panel: HeatPanel, corner: tuple[float, float], cell: tuple[float, float]) -> list[Tiles]:
    """Cells by their shade; neighbours in a row that share one are one tile."""
    (x, y), (wide, high) = corner, cell
    shades: dict[str, list[tuple[float, float, float, float]]] = defaultdict(list)
    for i, line in enumerate(panel.values):
        levels = ((value - panel.low) / (panel.high - panel.low) for value in line)
        left = x
        for colour, cells in groupby(levels, key=_shade):
            long = wide * len(list(cells))
            shades[colour].append((left, y + i * high, long, high))
            left += long
    return [Tiles(tuple(places), colour) for colour, places in sorted(shades.items())]


def _shade(level: float) -> str:
    """One of some shades, so that few colours are told."""
    return "#{:02x}{:02x}{:02x}".format(*shade(round(level * LEVELS) / LEVELS))


def _outline(x: float, y: float, wide: float, high: float) -> tuple[tuple[float, float], ...]:
    corners = ((x, y), (x + wide, y), (x + wide, y + high), (x, y + high))
    return (*corners, (x, y), (x + wide, y))
