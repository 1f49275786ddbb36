"""The view of objects, driven in a browser and compared with what it was made of."""

from base64 import b64encode
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.browser.conftest import Open, Opened, table
from tests.browser.found import BOXES, LABELS, objects, weights
from tests.browser.test_page import EVIL, hurt

pytestmark = pytest.mark.slow
PIXELS = "(canvas) => canvas.toDataURL()"
CARD = "#objects-0"


def stage(opened: Opened) -> Any:
    return opened.page.locator(".stage-canvas").first


def told(opened: Opened) -> list[str]:
    return opened.page.locator(
        ".object-list[aria-label='Objects found'] .object-name"
    ).all_inner_texts()


def item(opened: Opened, number: int) -> Any:
    return opened.page.locator(f".object-item[data-number='{number}']")


def slide(opened: Opened, value: float) -> None:
    slider = opened.page.get_by_label("Score from")
    slider.evaluate(
        "(node, to) => { node.value = to; node.dispatchEvent(new Event('input')); }", value
    )
    opened.settle()


def at(opened: Opened, x: float, y: float) -> tuple[float, float]:
    box = stage(opened).bounding_box()
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def numbers(opened: Opened) -> Any:
    opened.settle()
    return np.array(table(opened.page, CARD)[2])


def cells(document: dict[str, Any], values: Any) -> Any:
    grid = document["looks"][0]["axes"]["image"]["grid"]
    return values.reshape(grid["height"], grid["width"])


def test_objects_are_listed_judged_and_what_is_missed_is_told(open_page: Open) -> None:
    opened = open_page(objects())
    assert told(opened) == list(LABELS[:3])
    verdicts = opened.page.locator(".object-verdict").all_inner_texts()
    assert [words.strip() for words in verdicts] == ["✓", "✗ it is circle", "✗ nothing is there"]
    assert opened.page.locator(".object-tally").inner_text() == "3 found, 2 wrong, 1 missed"
    assert opened.page.locator(".object-missed .object-name").all_inner_texts() == ["cross"]
    there = opened.page.locator(".there-canvas").get_attribute("aria-label")
    assert there == "What is there: ring, circle, cross (missed)"
    assert opened.readout().startswith("1 ring, 1 star, 1 moon")


def test_a_lower_score_tells_more_and_finds_what_was_missed(open_page: Open) -> None:
    opened = open_page(objects())
    slide(opened, 0.25)
    assert told(opened) == list(LABELS[:4])
    assert opened.page.locator(".object-tally").inner_text() == "4 found, 2 wrong"
    assert opened.page.locator(".among tbody tr").count() >= 1
    slide(opened, 0.95)
    assert told(opened) == ["ring"]
    assert "sure=0.95" in opened.address()
    state = opened.address().partition("#")[2]
    assert told(open_page(objects(), state=f"#{state}")) == ["ring"]


def test_an_object_shows_where_its_query_looked_by_mouse_list_and_keys(open_page: Open) -> None:
    document = objects()
    opened = open_page(document)
    everything = stage(opened).evaluate(PIXELS)
    rows = [one["row"] for one in document["looks"][0]["objects"]["found"]]
    seen = weights(document, "decoder.1.cross")
    item(opened, 1).click()
    opened.page.mouse.move(0, 0)
    opened.page.locator(f"{CARD} .table-button").click()
    np.testing.assert_allclose(
        numbers(opened), cells(document, seen.mean(axis=0)[rows[1]]), atol=1e-3
    )
    assert item(opened, 1).get_attribute("aria-pressed") == "true"
    assert "Where ‘star’ looked: decoder.1.cross, mean of its heads" in opened.readout()
    opened.page.get_by_label("Head", exact=True).select_option("1")
    np.testing.assert_allclose(numbers(opened), cells(document, seen[1][rows[1]]), atol=1e-3)
    opened.page.get_by_label("Layer", exact=True).select_option("decoder.0.cross")
    first = weights(document, "decoder.0.cross")
    np.testing.assert_allclose(
        numbers(opened), cells(document, first.mean(axis=0)[rows[1]]), atol=1e-3
    )
    opened.page.locator("body").press("ArrowDown")
    np.testing.assert_allclose(
        numbers(opened), cells(document, first.mean(axis=0)[rows[2]]), atol=1e-3
    )
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert opened.readout().startswith("1 ring")
    opened.page.keyboard.press("[")  # other heads, through all layers
    left, top, right, bottom = BOXES[0]
    opened.page.mouse.move(*at(opened, (left + right) / 2, (top + bottom) / 2))
    opened.settle()
    assert "Where ‘ring’ looked" in opened.readout()
    opened.page.mouse.click(*at(opened, (left + right) / 2, (top + bottom) / 2))
    opened.page.mouse.move(0, 0)
    opened.settle()
    assert "found=0" in opened.address()
    assert stage(opened).evaluate(PIXELS) != everything


def test_a_point_shows_where_the_encoder_looks_from_there(open_page: Open) -> None:
    document = objects()
    opened = open_page(document)
    opened.page.keyboard.press("e")
    opened.settle()
    assert "Choose a point of the image" in opened.readout()
    grid = document["looks"][0]["axes"]["points"]["grid"]
    row, column = grid["height"] // 2, grid["width"] // 2
    opened.page.mouse.click(*at(opened, grid["across"][column], grid["down"][row]))
    opened.page.locator(f"{CARD} .table-button").click()
    seen = weights(document, "encoder.0.self")
    point = row * grid["width"] + column
    np.testing.assert_allclose(
        numbers(opened), cells(document, seen.mean(axis=0)[point]), atol=1e-3
    )
    opened.page.get_by_label("Points: Head").select_option("0")
    np.testing.assert_allclose(numbers(opened), cells(document, seen[0][point]), atol=1e-3)
    stage(opened).focus()
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("Enter")
    opened.settle()
    assert f"patch={point + 1}" in opened.address() or f"patch={point}" in opened.address()
    opened = open_page(objects(kind="blind"))
    assert opened.page.get_by_text("a point looks", exact=True).count() == 0


def test_objects_look_at_one_another(open_page: Open) -> None:
    document = objects()
    opened = open_page(document)
    found = document["looks"][0]["objects"]["found"][:3]
    rows = sorted({one["row"] for one in found})
    seen = weights(document, "decoder.1.self").mean(axis=0)[np.ix_(rows, rows)]
    lines = opened.page.locator(".among tbody tr")
    shown = [[float(cell) for cell in line.locator("td").all_inner_texts()] for line in lines.all()]
    np.testing.assert_allclose(np.array(shown)[:, :-1], seen, atol=0.006)
    np.testing.assert_allclose(np.array(shown).sum(axis=1), 1, atol=0.03)


def test_many_images_are_sorted_by_mistakes_and_opened_by_keys(open_page: Open) -> None:
    opened = open_page(objects(3))
    order = opened.page.locator(".class-thumb").evaluate_all(
        "all => all.map(one => one.dataset.item)"
    )
    assert sorted(order) == ["0", "1", "2"]
    assert "of 3" in opened.page.locator(".class-count").inner_text()
    opened.page.locator(".class-item").first.focus()
    opened.page.keyboard.press("Enter")
    opened.settle()
    assert opened.page.locator(".object-tally").count() == 1
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    assert f"item={order[1]}" in opened.address() or order[1] == "0"
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert opened.page.locator(".object-tally").count() == 0


def test_two_runs_stand_side_by_side(open_page: Open) -> None:
    opened = open_page(objects(1, ("a", "b")))
    assert opened.page.locator(".stage-canvas").count() == 2
    assert "a: 1 ring" in opened.readout()
    assert "b: 1 ring" in opened.readout()


def test_without_the_truth_nothing_is_judged(open_page: Open) -> None:
    opened = open_page(objects(known=False))
    assert opened.page.locator(".object-tally").inner_text() == "3 found"
    assert opened.page.locator(".there-canvas").count() == 0
    assert (
        opened.page.get_by_label("Missed").count() == 0
        or opened.page.get_by_label("Missed").is_hidden()
    )


@pytest.mark.parametrize("width", [1440, 800, 390])
def test_nothing_sticks_out_and_the_dark_page_works(open_page: Open, width: int) -> None:
    opened = open_page(objects(), width=width, color_scheme="dark")
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    opened.page.keyboard.press("d")
    opened.settle()
    assert opened.page.locator("html").get_attribute("data-theme") == "light"


def test_names_are_only_ever_text(open_page: Open) -> None:
    document = objects()
    for one in document["looks"][0]["objects"]["found"]:
        one["label"] = " ".join(EVIL)
    for one in document["looks"][0]["objects"]["truth"]:
        one["label"] = " ".join(EVIL)
    opened = open_page(document)
    item(opened, 0).click()
    opened.settle()
    assert hurt(opened.page) is None


@pytest.mark.parametrize(("size", "most"), [((1, 300), 1300), ((3000, 2), 2)])
def test_an_image_that_is_nearly_a_line_is_drawn_and_fits_the_page(
    open_page: Open, size: tuple[int, int], most: int
) -> None:
    document, file = objects(), BytesIO()
    Image.new("RGB", size, "red").save(file, "PNG")
    source = "data:image/png;base64," + b64encode(file.getvalue()).decode()
    document["images"][0]["source"] = source
    opened = open_page(document)
    assert 1 <= stage(opened).bounding_box()["height"] <= most
    assert stage(opened).evaluate("(c) => c.getContext('2d').getImageData(0, 0, 1, 1).data[3]")
