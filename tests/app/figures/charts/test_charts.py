"""A finding as a drawing: well-formed, inside its page, nothing over anything else."""

import io
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import pytest
from PIL import Image

from saccade.app.figures.charts import WIDEST, draw_finding, draw_panels
from saccade.app.figures.charts.bars import bar_block
from saccade.app.figures.finding import BarPanel, HeatPanel, LinePanel, over_seeds
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
    bar_block(panel, {}).paint(canvas, 0.0, 0.0)
    filled = [one.points for one in canvas.strokes if one.fill]
    long = [points[1][0] - points[0][0] for points in filled]
    assert long[1] == pytest.approx(2 * long[0])
    assert long[2] == pytest.approx(4 * long[0])


def test_a_cell_is_as_dark_as_its_number() -> None:
    canvas = draw_panels("", heats=finding(MARK).heats)
    red = {place: int(one.colour[1:3], 16) for one in canvas.tiles for place in one.places}
    by_place = [red[place] for place in sorted(red, key=lambda place: (place[1], place[0]))]
    assert by_place[1] < by_place[2] < by_place[3] < by_place[0]  # of 1, 0.5, 0.25 and 0


def test_cells_of_one_shade_are_one_path_and_fill_their_map() -> None:
    panel = HeatPanel(
        title="", rows=("a", "b"), columns=("x", "y"), values=((0.0, 1.0), (1.0, 0.0))
    )
    canvas = draw_panels("", heats=[panel])
    tree = ElementTree.fromstring(canvas.svg())
    paths = list(tree.iter("{http://www.w3.org/2000/svg}path"))
    assert [path.attrib["d"].count("z") for path in paths] == [2, 2]
    image = Image.open(io.BytesIO(canvas.png()))
    for tiles in canvas.tiles:
        for x, y, wide, high in tiles.places:
            middle = image.getpixel((int(2 * (x + wide / 2)), int(2 * (y + high / 2))))
            assert "#{:02x}{:02x}{:02x}".format(*middle) == tiles.colour


def test_neighbours_of_one_shade_are_one_tile() -> None:
    values = ((0.5, 0.5, 1.0), (1.0, 1.0, 1.0))
    panel = HeatPanel(title="", rows=("a", "b"), columns=("x", "y", "z"), values=values)
    tiles = {one.colour: one.places for one in draw_panels("", heats=[panel]).tiles}
    (half,), (single, row) = sorted(tiles.values(), key=len)
    assert (half[2], single[2], row[2]) == pytest.approx((2 * single[2], row[2] / 3, row[2]))
    assert single[0] == pytest.approx(half[0] + half[2])
    assert row[0] == half[0]


def test_a_bar_has_the_colour_of_the_line_of_its_name() -> None:
    line = LinePanel(title="", x_title="", y_title="", lines={"soft": (MARK,), "hard": (MARK,)})
    bars = BarPanel(title="", x_title="", groups=("hard", "soft"), bars={"": (MARK, MARK)})
    canvas = draw_panels("", lines=[line], bars=[bars])
    colours = {name: {w.colour for w in canvas.words if w.text == name} for name in line.lines}
    assert all(len(found) == 1 for found in colours.values())
    assert colours["soft"] != colours["hard"]
