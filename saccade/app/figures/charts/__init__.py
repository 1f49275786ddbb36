"""A finding as a drawing: its panels side by side, as many to a row as fit."""

from collections.abc import Sequence

from saccade.app.figures.charts.bars import bar_block
from saccade.app.figures.charts.block import ChartBlock
from saccade.app.figures.charts.heat import heat_block
from saccade.app.figures.charts.lines import line_block
from saccade.app.figures.finding import BarPanel, Finding, HeatPanel, LinePanel
from saccade.app.look.draw.canvas import Canvas, Words
from saccade.app.look.draw.field import COLOURS
from saccade.app.look.draw.text import text_width

WIDEST = 1140.0  # of a row of panels
WIDTHS = (460.0, 340.0, 200.0)  # of the field of one line panel, of two, of more
EDGE = 12.0
TITLE = 17


def draw_finding(finding: Finding, *, title: str, headed: bool = True) -> Canvas:
    """All panels under the title; a page that has the title above leaves the head off."""
    lines, bars, heats = finding.lines, finding.bars, finding.heats
    return draw_panels(title, lines=lines, bars=bars, heats=heats, headed=headed)


def draw_panels(
    title: str,
    *,
    lines: Sequence[LinePanel] = (),
    bars: Sequence[BarPanel] = (),
    heats: Sequence[HeatPanel] = (),
    headed: bool = True,
) -> Canvas:
    """Lines and bars, then maps below them; a notebook shows what this returns."""
    wide = WIDTHS[min(len(WIDTHS), max(1, len(lines) + len(bars))) - 1]
    drawn = [line_block(panel, wide) for panel in lines]
    colours = {name: COLOURS[n % len(COLOURS)] for p in lines for n, name in enumerate(p.lines)}
    rows = _rows([*drawn, *(bar_block(panel, colours) for panel in bars)])
    rows += _rows([*map(heat_block, heats)])
    head = 48.0 if headed else EDGE
    widths = [sum(block.width for block in row) for row in rows]
    widths.append(text_width(title, TITLE) + 20 if headed else 0.0)
    height = head + sum(max(block.height for block in row) for row in rows)
    canvas = Canvas(max(widths) + 2 * EDGE, height + EDGE, title)
    if headed:
        canvas.words.append(Words((EDGE + 4, 24.0), title, size=TITLE))
    top = head
    for row in rows:
        left = EDGE
        for block in row:
            block.paint(canvas, left, top)
            left += block.width
        top += max(block.height for block in row)
    return canvas


def _rows(blocks: list[ChartBlock]) -> list[list[ChartBlock]]:
    rows: list[list[ChartBlock]] = []
    wide = WIDEST
    for block in blocks:
        if wide + block.width > WIDEST:
            rows.append([])
            wide = 0.0
        rows[-1].append(block)
        wide += block.width
    return rows
