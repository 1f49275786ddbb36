"""Columns of a text that runs to the left do so, in every picture."""

import io
import re
import warnings
import xml.etree.ElementTree as ET

import pytest
from PIL import Image

from saccade.app.look.draw.colour import shade
from saccade.app.look.draw.fonts import FontWarning, runs_left
from saccade.app.look.draw.layout import CELL, Layout
from saccade.app.look.draw.png import SCALE, draw_png
from saccade.app.look.draw.svg import draw_svg

SVG = "{http://www.w3.org/2000/svg}"
ROWS = ["le", "chat", "dort"]
LATIN, HEBREW = ["the", "cat", "sleeps"], ["החתול", "ישן", "."]
WEIGHTS = [[0.09, 0.06, 0.0], [0.0, 0.09, 0.03], [0.03, 0.0, 0.09]]


def cells(columns: list[str]) -> tuple[list[list[float]], ET.Element]:
    """The weights in an SVG's cells as they lie, row by row from left to right."""
    root = ET.fromstring(draw_svg(ROWS, columns, WEIGHTS, title="t"))
    places = [
        (float(r.attrib["y"]), float(r.attrib["x"]), float(r[0].text or ""))
        for r in root.iter(f"{SVG}rect")
        if len(r)
    ]
    flat = [weight for _, _, weight in sorted(places)]
    return [flat[i : i + 3] for i in range(0, 9, 3)], root


@pytest.mark.parametrize(
    ("columns", "step"), [(LATIN, 1), (HEBREW, -1), (["<s>", *HEBREW[:2]], -1)]
)
def test_cells_lie_in_the_order_in_which_their_words_are_read(
    columns: list[str], step: int
) -> None:
    found, root = cells(columns)
    assert found == [row[::step] for row in WEIGHTS]
    texts = {one.text: one.attrib for one in root.iter(f"{SVG}text")}
    feet = [re.findall(r"[-\d.]+", texts[word]["transform"]) for word in columns]
    across = [float(x) for x, *_ in feet]
    assert across == sorted(across)[::step]
    assert all((float(angle) < 0) == (step > 0) for _, _, angle in feet)  # leans as it runs
    left = min(float(r.attrib["x"]) for r in root.iter(f"{SVG}rect") if len(r))
    assert all(float(texts[word]["x"]) < left for word in ROWS)


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "step"), [(LATIN, 1), (HEBREW, -1)])
def test_a_png_has_the_same_cells(columns: list[str], step: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FontWarning)
        image = Image.open(io.BytesIO(draw_png(ROWS, columns, WEIGHTS, title="t")))
    darkest = [
        (x, y)
        for y in range(image.height)
        for x in range(image.width)
        if image.getpixel((x, y)) == shade(0.09)
    ]
    across = [x for x, y in sorted(darkest, key=lambda place: place[1])]  # on the diagonal
    assert len(across) > 3 * (CELL * SCALE - 2) ** 2
    assert (across[-1] - across[0]) * step > CELL * SCALE


def test_what_leans_to_the_left_has_room_there() -> None:
    long = Layout.of(["a"], ["ש" * 40], "", measure=lambda word: 8.0 * len(word))
    assert long.mirrored
    assert long.corner(0, 0)[0] + CELL / 2 > 0.57 * 8 * 40


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["<start>", "قهوة"], True),
        (["[CLS]", "coffee"], False),
        (["12", "שלום"], True),
        ([], False),
    ],
)
def test_what_nobody_wrote_has_no_direction(words: list[str], expected: bool) -> None:
    assert runs_left(words) is expected
