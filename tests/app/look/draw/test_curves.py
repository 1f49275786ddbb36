"""Curves lie where the axes say, and each has its name beside it, clear of the others."""

from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.app.look.draw.canvas import Canvas
from saccade.app.look.draw.curves import LINE, MOST, Curve, CurvePanel, draw_curves, spread
from saccade.app.look.draw.field import COLOURS, HIGH, LEFT, WIDE
from saccade.app.look.draw.text import text_width

places = st.lists(st.floats(0, HIGH), max_size=MOST).map(sorted)


def drawn(count: int, *, named: bool = True) -> Canvas:
    curves = [
        Curve(f"class {n}", [(0.0, 1.0), (0.5, 0.5), (0.6, 0.3 + n / 1000)], named=named)
        for n in range(count)
    ]
    panels = [CurvePanel("a & b", [*curves, Curve("all", [(0.0, 0.9)], main=True)])] * 2
    return draw_curves(panels, title="<t>", x_title="recall", y_title="precision")


@given(places)
def test_names_keep_apart_and_within_bounds(wanted: list[float]) -> None:
    found = spread(wanted, 0.0, HIGH)
    assert len(found) == len(wanted)
    assert all(later - one >= LINE - 1e-6 for one, later in pairwise(found))
    assert all(-1e-6 <= one <= HIGH + 1e-6 for one in found)


@given(st.sets(st.integers(0, MOST - 1)))
def test_names_that_have_room_stay_where_they_are_wanted(lines: set[int]) -> None:
    wanted = [line * LINE for line in sorted(lines)]
    assert spread(wanted, 0.0, HIGH) == pytest.approx(wanted)


def test_names_that_are_close_part_around_their_middle_where_the_bounds_let_them() -> None:
    assert spread([50.0, 50.0, 200.0], 0.0, HIGH) == [50 - LINE / 2, 50 + LINE / 2, 200.0]
    assert spread([HIGH, HIGH], 0.0, HIGH) == [HIGH - LINE, HIGH]


@pytest.mark.parametrize("count", [1, 3, MOST - 1])
def test_every_curve_has_its_name_once_in_each_panel(count: int) -> None:
    canvas = drawn(count)
    names = [words for words in canvas.words if words.text.startswith("class ")]
    assert [words.text for words in names].count("class 0") == 2
    assert len(names) == 2 * count
    for words in names:
        x, y = words.place
        assert x + text_width(words.text, words.size) < canvas.width
        assert 0 < y < canvas.height
        assert words.colour == COLOURS[int(words.text.split()[1]) % len(COLOURS)]
    boxes = sorted((x > canvas.width / 2, y) for x, y in (words.place for words in names))
    assert all(q - p >= LINE - 1e-6 for (a, p), (b, q) in pairwise(boxes) if a == b)


def test_curves_lie_where_the_axes_say() -> None:
    canvas = drawn(1)
    ticks = {words.text: words.place for words in canvas.words[:20]}
    first = next(stroke for stroke in canvas.strokes if stroke.width == 1.5)
    (x0, y0), (x1, y1), _ = first.points
    assert (x0, x1) == (pytest.approx(LEFT), pytest.approx(LEFT + WIDE / 2))
    assert y1 - y0 == pytest.approx(HIGH / 2)
    assert ticks["<t>"] == (16.0, 22.0)


def test_what_is_not_named_stays_behind() -> None:
    canvas = drawn(30, named=False)
    assert not any(words.text.startswith("class") for words in canvas.words)
    widths = [stroke.width for stroke in canvas.strokes if stroke.width >= 1.5]
    assert widths == [*[1.5] * 30, 3.0] * 2


def test_both_forms_are_whole() -> None:
    canvas = drawn(2)
    texts = [one.text for one in ElementTree.fromstring(canvas.svg()).iter() if one.text]
    assert {"<t>", "a & b", "class 1", "recall", "precision"} <= set(texts)
    assert canvas.png().startswith(b"\x89PNG")


def test_a_long_title_has_room() -> None:
    title = "a run with a name " * 20
    canvas = draw_curves([CurvePanel("", [])], title=title, x_title="x", y_title="y")
    assert canvas.width > 16 + text_width(title, 14)
