"""Two thousand tokens, twelve layers of twelve heads."""

import base64
import re
import time
import zlib
from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import Open, Opened
from tests.browser.documents import Made, language, long_language

pytestmark = pytest.mark.slow
EXACT = re.compile(r"\((\d+)\) looks at ‘.*’ \((\d+)\): ([\d.]+) · (.+)")


def hover_map(opened: Opened, across: float, down: float) -> tuple[int, int, float, str]:
    """Point at a share of the map's width and height; what the read-out says of that cell."""
    opened.page.locator("canvas.long").scroll_into_view_if_needed()
    box = opened.page.locator("canvas.long").bounding_box()
    size = box["width"] - 118 - 8
    opened.page.mouse.move(box["x"] + 118 + across * size, box["y"] + 96 + down * size)
    opened.settle()
    found = EXACT.search(opened.readout())
    assert found is not None, opened.readout()
    return int(found[1]), int(found[2]), float(found[3]), found[4]


def test_opens_within_three_seconds_from_less_than_fifteen_megabytes(
    open_page: Open, long_made: Made
) -> None:
    began = time.monotonic()
    opened = open_page(long_made.document)
    took = opened.page.evaluate("performance.now()")
    assert time.monotonic() - began < 10
    assert took < 3000
    assert opened.path.stat().st_size < 15e6


def test_a_dragged_rectangle_shows_exact_weights(open_page: Open, long_made: Made) -> None:
    opened = open_page(long_made.document)
    page = opened.page
    page.locator("canvas.long").scroll_into_view_if_needed()
    box = page.locator("canvas.long").bounding_box()
    size = box["width"] - 126
    page.mouse.move(box["x"] + 118 + 0.2 * size, box["y"] + 96 + 0.2 * size)
    page.mouse.down()
    page.mouse.move(box["x"] + 118 + 0.24 * size, box["y"] + 96 + 0.24 * size, steps=4)
    page.mouse.up()
    page.wait_for_selector(".long-tools .badge[data-kind=exact]")
    opened.settle()
    weights = long_made.weights[0, "decoder.11.self"][0]
    for across, down in ((0.5, 0.52), (0.3, 0.33), (0.71, 0.73)):
        row, column, value, how = hover_map(opened, across, down)
        assert how == "exact"
        assert 380 < row < 500
        assert value == pytest.approx(weights[row, column], abs=0.002)


def test_the_same_weights_come_without_a_worker(open_page: Open, long_made: Made) -> None:
    state = "#zoom=600,640,600,640"
    forbidden = "window.Worker = class { constructor() { throw new Error('no workers here'); } };"
    opened = open_page(long_made.document, state=state, before=forbidden)
    row, column, value, how = hover_map(opened, 0.5, 0.53)
    assert how == "exact"
    expected = long_made.weights[0, "decoder.11.self"][0][row, column]
    assert value == pytest.approx(expected, abs=0.002)
    assert value > 0


def test_a_head_without_zoom_stays_coarse_and_says_so(open_page: Open, long_made: Made) -> None:
    opened = open_page(long_made.document, state="#site=decoder.2.self&head=1&zoom=600,640,600,640")
    row, column, value, how = hover_map(opened, 0.5, 0.5)
    assert how == "8×8 mean"
    assert "no exact zoom in this file" in opened.page.locator("#map").inner_text()
    mean = decoded(long_made, "decoder.2.self", "mean_map")
    assert value == pytest.approx(mean[1, row // 8, column // 8], abs=1e-3)


def decoded(made: Made, name: str, array: str) -> Any:
    site = next(one for one in made.document["looks"][0]["sites"] if one["name"] == name)
    ref = site["arrays"][array]
    raw = zlib.decompress(base64.b64decode(made.document["blobs"][ref["blob"]]))
    if ref["code"] == "sqrt":
        return (np.frombuffer(raw, np.uint8).reshape(ref["shape"]) / 255.0) ** 2
    kind = {"u16": np.uint16, "f16": np.float16}[ref["dtype"]]
    return np.frombuffer(raw, kind).reshape(ref["shape"])


def test_top_weights_are_listed_with_their_share_and_the_rest(
    open_page: Open, long_made: Made
) -> None:
    opened = open_page(long_made.document, state="#site=decoder.3.self&head=4&token=777")
    top = decoded(long_made, "decoder.3.self", "top_weights")[4, 777].astype(float)
    badge = opened.page.locator("#text .badge").inner_text()
    assert f"top 8, {round(100 * top.sum())} % of the mass" in badge
    shown = [float(text) for text in opened.page.locator("#token .key-weight").all_inner_texts()]
    assert shown[0] == pytest.approx(top[0], abs=0.006)
    assert sum(shown) == pytest.approx(1.0, abs=0.03)


def test_keys_zoom_pan_and_reset_the_map(open_page: Open, long_made: Made) -> None:
    opened = open_page(long_made.document)
    page = opened.page
    page.locator("canvas.long").focus()
    page.keyboard.press("+")
    opened.settle()
    first = window(opened)
    assert first[1] - first[0] < 2000
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    opened.settle()
    moved = window(opened)
    assert moved[0] > first[0]
    assert moved[2] < first[2]
    page.keyboard.press("-")
    page.keyboard.press("0")
    opened.settle()
    assert "zoom=" not in opened.address()


def window(opened: Opened) -> list[int]:
    found = re.search(r"zoom=([\d%C,]+)", opened.address())
    assert found is not None
    return [int(part) for part in found[1].replace("%2C", ",").split(",")]


def test_a_listed_key_is_a_link_to_its_place(open_page: Open, long_made: Made) -> None:
    opened = open_page(long_made.document, state="#token=900")
    opened.page.locator("#token button.key").nth(1).click()
    opened.settle()
    first, last, *_ = window(opened)
    assert first <= 900 < last
    assert "token=900" not in opened.address()


def test_other_heads_and_the_highest_of_a_cell_can_be_shown(open_page: Open) -> None:
    made = long_language(length=400, layers=2, heads=4)
    opened = open_page(made.document, state="#site=decoder.0.self&head=3&map=max")
    row, column, value, how = hover_map(opened, 0.4, 0.6)
    assert how == "8×8 max"
    high = decoded(made, "decoder.0.self", "max_map")
    assert value == pytest.approx(high[3, row // 8, column // 8], abs=1e-3)
    opened.page.locator('.tile[data-site="decoder.1.self"][data-head="2"]').click()
    opened.settle()
    assert "decoder.1.self · head 2" in opened.page.locator("#map").inner_text()


def test_a_few_hundred_tokens_with_all_their_weights_are_exact_throughout(open_page: Open) -> None:
    made = language(layers=1, heads=2, pieces=[f" w{i}" for i in range(150)])
    opened = open_page(made.document, state="#site=decoder.0.self&head=1")
    weights = made.weights[0, "decoder.0.self"][1]
    row, column, value, how = hover_map(opened, 0.61, 0.613)
    assert how == "exact"
    assert value == pytest.approx(weights[row, column], abs=6e-4)
    opened.page.get_by_label("Head", exact=True).select_option("mean")
    opened.settle()
    row, column, value, how = hover_map(opened, 0.3, 0.4)
    expected = made.weights[0, "decoder.0.self"].mean(axis=0)
    assert value == pytest.approx(expected[row, column], abs=6e-4)


def test_an_address_without_a_head_falls_back_to_one_that_can_be_read(
    open_page: Open, long_made: Made
) -> None:
    opened = open_page(long_made.document, state="#site=decoder.2.self&head=1")
    opened.page.evaluate("location.hash = '#zoom=900,940,900,940'")
    opened.page.wait_for_selector(".long-tools .badge[data-kind=exact]")
    assert "decoder.11.self · head 3" in opened.page.locator("#map").inner_text()
