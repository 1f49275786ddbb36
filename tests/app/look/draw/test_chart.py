"""Charts: every number where its axis says, names that do not cover one another, two forms."""

import io
from itertools import combinations
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from saccade.app.look.draw.canvas import PAPER, Canvas
from saccade.app.look.draw.chart import Mark, Panel, draw_chart
from saccade.app.look.draw.field import HIGH, LEFT, WIDE
from saccade.app.look.draw.scale import Scale, count_scale, log_scale, plain_scale
from saccade.app.look.draw.text import text_width

values = st.lists(st.floats(1e-3, 1e21), min_size=1, max_size=6)


def check_ticks(scale: Scale, drawn: list[float]) -> None:
    shares = [scale.share(tick) for tick, _ in scale.ticks]
    assert shares == sorted(shares)
    assert all(-1e-9 <= share <= 1 + 1e-9 for share in shares)
    assert all(0 < scale.share(value) < 1 for value in drawn)
    told = [text for _, text in scale.ticks if text]
    assert 2 <= len(told) <= 25
    assert len(set(told)) == len(told)


@given(values)
def test_a_logarithmic_axis_holds_its_values_and_has_ticks_to_read(drawn: list[float]) -> None:
    scale = log_scale(drawn)
    check_ticks(scale, drawn)
    assert scale.share((scale.low * scale.high) ** 0.5) == pytest.approx(0.5)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6))
def test_a_plain_axis_holds_its_values_and_has_ticks_to_read(drawn: list[float]) -> None:
    if 0 < max(drawn) - min(drawn) < 1e-6 * max(map(abs, drawn)) or 0 < max(map(abs, drawn)) < 1e-9:
        return  # as good as equal
    check_ticks(plain_scale(drawn), drawn)


@given(st.integers(1, 1 << 53))
def test_an_axis_of_counts_begins_with_none_and_ends_with_the_most(most: int) -> None:
    scale = count_scale(most)
    ticks = [value for value, _ in scale.ticks]
    assert (scale.share(0.0), scale.share(float(most)), ticks[0]) == (0.0, 1.0, 0.0)
    assert ticks == sorted(set(ticks))
    assert 2 <= len(ticks) <= 9
    assert max(ticks) <= scale.high
    assert all(text == f"{value:,.0f}" for value, text in scale.ticks)


def test_ticks_say_what_they_are() -> None:
    told = {value: text for value, text in log_scale([2e15, 9e15]).ticks if text}
    assert told == {1e15: "10¹⁵", 2e15: "2·10¹⁵", 5e15: "5·10¹⁵", 1e16: "10¹⁶", 2e16: "2·10¹⁶"}
    few = {value: text for value, text in log_scale([30.0, 4e4]).ticks if text}
    assert few == {100: "100", 1000: "1,000", 10_000: "10,000"}
    assert [text for _, text in plain_scale([0.91, 0.96]).ticks][:2] == ["0.91", "0.92"]


def chart(**more: Any) -> Canvas:
    marks = [
        Mark(f"vit-{n}", 10.0**n, 0.8 + n / 100, 0.79 + n / 100, 0.82 + n / 100) for n in (9, 10)
    ]
    close = [Mark(f"resnet-{n}", 1e9 * (1 + n / 50), 0.9, 0.9, 0.9) for n in range(4)]
    panels = [Panel("a & <b>", {"vit": marks, "resnet": close}), Panel("c", {"vit": marks[:1]})]
    return draw_chart(panels, x_title="compute", y_title="top-1", **more)


def test_a_mark_without_a_name_has_no_words() -> None:
    marks = [Mark(name, 10.0, value, value, value) for name, value in (("", 0.1), ("b", 0.2))]
    with_one = draw_chart([Panel("p", {"s": marks})], x_title="x", y_title="y")
    with_none = draw_chart([Panel("p", {"s": [marks[0]] * 2})], x_title="x", y_title="y")
    assert [words.text for words in with_one.words if words.text in ("", "b")] == ["b"]
    assert all(words.text for words in with_none.words)


def test_marks_lie_where_the_axes_say() -> None:
    canvas = chart()
    x9, x10 = (next(w.place[0] for w in canvas.words if w.text == t) for t in ("10⁹", "10¹⁰"))
    line = next(s for s in canvas.strokes if s.fill is None and s.width == 1.5)
    (x, _), (later, _) = line.points
    assert (x, later) == (pytest.approx(x9), pytest.approx(x10))
    assert LEFT <= x < later <= LEFT + WIDE


def test_names_of_close_points_keep_apart() -> None:
    named = [w for w in chart().words if w.text.startswith(("vit-", "resnet-"))]
    boxes = []
    for one in named:
        half = text_width(one.text, one.size) / 2
        boxes.append((one.place[0] - half, one.place[1] - 4, one.place[0] + half, one.place[1] + 4))
    for (x0, y0, x1, y1), (u0, v0, u1, v1) in combinations(boxes, 2):
        assert not (x0 < u1 and u0 < x1 and y0 < v1 and v0 < y1)


def test_both_forms_hold_the_same_page() -> None:
    canvas = chart()
    tree = ElementTree.fromstring(canvas.svg())
    image = Image.open(io.BytesIO(canvas.png()))
    size = int(tree.attrib["width"]), int(tree.attrib["height"])
    assert image.size == tuple(2 * side for side in size)
    assert size[1] > HIGH
    texts = [node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"a & <b>", "c", "vit", "resnet", "vit-9", "compute", "top-1"} <= set(texts)
    assert len(image.getcolors(1 << 24) or []) > 50  # something is drawn


def test_each_series_has_a_shape_and_a_colour_of_its_own() -> None:
    marks = [Mark("x", 1e3, 0.5, 0.5, 0.5)]
    panel = Panel("", {str(number): marks for number in range(8)})
    filled = [s for s in draw_chart([panel], x_title="", y_title="").strokes if s.fill][:8]

    def shape(points: tuple[tuple[float, float], ...]) -> tuple[tuple[int, int], ...]:
        return tuple((round(x - points[0][0]), round(y - points[0][1])) for x, y in points)

    assert len({(shape(one.points), one.fill == PAPER) for one in filled}) == 8  # in grey too
    assert len({one.colour for one in filled}) == 8
