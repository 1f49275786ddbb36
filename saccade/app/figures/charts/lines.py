"""Lines with their spread over seeds, each named where it ends."""

from saccade.app.figures.charts.block import ChartBlock
from saccade.app.figures.finding import LinePanel
from saccade.app.look.draw.canvas import Canvas
from saccade.app.look.draw.chart import Mark, error_bar
from saccade.app.look.draw.curves import SIZE, Curve, CurvePanel, draw_panel
from saccade.app.look.draw.field import ABOVE, BELOW, COLOURS, LEFT, ChartField, draw_axes
from saccade.app.look.draw.scale import Scale, log_scale, plain_scale
from saccade.app.look.draw.text import text_width

HIGH = 200.0
LEADER, RIGHT = 20.0, 14.0
MARKED = 16  # points that are seen one by one


def line_block(panel: LinePanel, wide: float) -> ChartBlock:
    """Axes of the panel's own, on a field so wide, and names in a column on the right."""
    names = max(text_width(name, SIZE) for name in panel.lines)
    marks = [mark for line in panel.lines.values() for mark in line]
    across = _scale([mark.x for mark in marks], logarithmic=panel.log_x)
    up = _scale([y for mark in marks for y in (mark.low, mark.high)], logarithmic=panel.log_y)
    bands = panel.spread == "band"
    curves = [_curve(name, line, banded=bands) for name, line in panel.lines.items()]

    def paint(canvas: Canvas, left: float, top: float) -> None:
        field = ChartField(left + LEFT, top + ABOVE, across, up, wide, HIGH)
        draw_axes(canvas, field, panel.title, panel.x_title, panel.y_title)
        if not bands:
            for number, line in enumerate(panel.lines.values()):
                for mark in line:
                    canvas.strokes += error_bar(field, mark, COLOURS[number % len(COLOURS)])
        drawn = CurvePanel(panel.title, curves, across, up)
        draw_panel(canvas, field, drawn, leader=LEADER)

    return ChartBlock(LEFT + wide + LEADER + names + RIGHT, ABOVE + HIGH + BELOW, paint)


def _scale(values: list[float], *, logarithmic: bool) -> Scale:
    return log_scale(values) if logarithmic else plain_scale(values, wanted=6)


def _curve(name: str, line: tuple[Mark, ...], *, banded: bool) -> Curve:
    banded = banded and any(mark.low < mark.high for mark in line)
    return Curve(
        name,
        [(mark.x, mark.mean) for mark in line],
        marked=len(line) <= MARKED,
        low=tuple((mark.x, mark.low) for mark in line) if banded else (),
        high=tuple((mark.x, mark.high) for mark in line) if banded else (),
    )
