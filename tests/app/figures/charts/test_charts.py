"""A finding as a drawing: well-formed, inside its page, nothing over anything else."""

import io
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from PIL import Image

from saccade.app.figures.charts import WIDEST, draw_finding
from saccade.app.figures.charts.bars import bar_block
from saccade.app.figures.finding import BarPanel, Finding, over_seeds
from saccade.app.look.draw.canvas import Canvas
from saccade.app.look.draw.text import text_width
from tests.app.figures.reports import finding

MARK = over_seeds(1, [0.5, 0.7])


def drawn(**changes: object) -> Canvas:
    return draw_finding(replace(finding(MARK), **changes), title="C3  A title & more")  # type: ignore[arg-type]


def test_both_forms_are_whole_and_of_one_size() -> None:
    canvas = drawn()
    tree = ElementTree.fromstring(canvas.svg())
    image = Image.open(io.BytesIO(canvas.png()))
    assert abs(image.width / 2 - float(tree.attrib["width"])) <= 1
    texts = {node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert {"C3  A title & more", "<a>", "soft", "hard", "zone", "area", "lines"} <= texts


def test_all_is_drawn_inside_the_page() -> None:
    canvas = drawn()
    assert canvas.width <= WIDEST + 30
    for stroke in canvas.strokes:
        assert all(0 <= x <= canvas.width and 0 <= y <= canvas.height for x, y in stroke.points)
    for one in canvas.words:
        long, (x, y) = text_width(one.text, one.size), one.place
        if one.upwards:
            assert y - (1 - one.across) * long >= -1
        else:
            assert x - one.across * long >= -1
            assert x + (1 - one.across) * long <= canvas.width + 1


def test_no_text_covers_another() -> None:
    canvas = drawn()
    boxes: list[tuple[float, float, float, float]] = []
    for one in canvas.words:
        long, (x, y) = text_width(one.text, one.size), one.place
        if one.upwards:
            bottom = y + one.across * long
            boxes.append((x - 4, bottom - long, x + 4, bottom))
        else:
            boxes.append((x - one.across * long, y - 4, x + (1 - one.across) * long, y + 4))
    for (x0, y0, x1, y1), (u0, v0, u1, v1) in combinations(boxes, 2):
        assert not (x0 < u1 and u0 < x1 and y0 < v1 and v0 < y1)


def test_a_bar_is_as_long_as_its_number() -> None:
    marks = tuple(over_seeds(0, [value]) for value in (1.0, 2.0, 4.0))
    panel = BarPanel(title="", x_title="", groups=("a", "b", "c"), bars={"": marks})
    canvas = Canvas(800.0, 400.0, "")
    bar_block(panel).paint(canvas, 0.0, 0.0)
    filled = [one.points for one in canvas.strokes if one.fill]
    long = [points[1][0] - points[0][0] for points in filled]
    assert long[1] == pytest.approx(2 * long[0])
    assert long[2] == pytest.approx(4 * long[0])


def test_a_cell_is_as_dark_as_its_number() -> None:
    canvas = Canvas(0.0, 0.0, "")
    canvas = draw_finding(
        Finding(verdict="", holds=None, head=(), rows=(), heats=finding(MARK).heats), title=""
    )
    red = [int(one.fill[1:3], 16) for one in canvas.strokes if one.fill]
    assert red[1] < red[2] < red[3] < red[0]  # of 1, 0.5, 0.25 and 0
