"""The view of images drawn for a text, driven in a browser and compared with its numbers."""

import base64
import io
import re
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.browser.conftest import Open, Opened
from tests.browser.painted import painted
from tests.browser.paired import site_weights
from tests.browser.test_page import EVIL, hurt
from tests.tasks.text_to_image.drawers import PROMPT, TINY_DALLE

pytestmark = pytest.mark.slow
PIXELS = "(canvas) => canvas.toDataURL()"
WORDS = ["<start>", *PROMPT.split(), "<end>", "…"]


def stage(opened: Opened) -> Any:
    opened.settle()
    return opened.page.locator(".stage-canvas")


def mean_weights(document: dict[str, Any]) -> Any:
    names = [site["name"] for site in document["looks"][0]["sites"]]
    return np.stack([site_weights(document, name).mean(axis=0) for name in names]).mean(axis=0)


def bars(opened: Opened) -> dict[str, float]:
    """What the side says of each name; the last of equal ones."""
    items = opened.page.locator(".word-host .places li").all_inner_texts()
    return {name: float(number) for name, number in (item.split("\n") for item in items)}


def colours(opened: Opened) -> list[tuple[int, ...]]:
    """In the middle of each cell."""
    raw = stage(opened).evaluate(PIXELS).partition(",")[2]
    image = Image.open(io.BytesIO(base64.b64decode(raw))).convert("RGB")
    middles = image.resize((TINY_DALLE.grid, TINY_DALLE.grid), Image.Resampling.NEAREST)
    return [tuple(one) for one in np.asarray(middles).reshape(-1, 3).tolist()]


def test_the_whole_image_comes_first_with_the_words_that_cells_looked_at(open_page: Open) -> None:
    document = painted()
    opened = open_page(document)
    assert opened.page.locator(".told-word").all_inner_texts() == WORDS
    special = len(WORDS)
    expected = mean_weights(document)[:, :special].mean(axis=0)
    shown = bars(opened)
    for word in ("circle", "blue", "square"):
        if word in shown:
            assert shown[word] == pytest.approx(expected[WORDS.index(word)], abs=0.006)
    assert opened.readout().startswith("All cells looked at: ")
    assert opened.page.locator("#heads").is_hidden()


def test_it_is_painted_cell_by_cell_with_what_each_looked_at(open_page: Open) -> None:
    document = painted()
    opened = open_page(document)
    opened.page.keyboard.press("Home")
    for _ in range(5):
        opened.page.keyboard.press("ArrowRight")
    assert "step=5" in opened.address()
    assert "row 2, column 2" in opened.page.locator(".word-host .token-name").inner_text()
    shown = colours(opened)
    blank = shown[-1]
    assert set(shown[6:]) == {blank}
    assert blank not in shown[:6]
    weights, special = mean_weights(document)[5], len(WORDS)
    text, cells = weights[:special], weights[special:]
    note = opened.page.locator(".word-host p.note").first.inner_text()
    shares = [float(one) for one in re.findall(r"([\d.]+) %", note)]
    assert shares == pytest.approx([100 * text.sum(), 100 * cells.sum()], abs=0.6)
    assert bars(opened)["…"] == pytest.approx(text[-1], abs=0.006)
    peak = int(cells.argmax())
    assert f"Most at row {peak // 4 + 1}, column {peak % 4 + 1}" in stage_side(opened)
    opened.page.keyboard.press("End")
    assert blank not in colours(opened)


def stage_side(opened: Opened) -> str:
    return opened.page.locator(".word-host").inner_text()


def test_play_paints_it_to_the_end(open_page: Open) -> None:
    opened = open_page(painted(), state="#step=13")
    before = stage(opened).evaluate(PIXELS)
    opened.page.locator(".play").click()
    assert opened.page.locator(".play").get_attribute("aria-label") == "Pause"
    opened.page.wait_for_selector(".play[aria-label=Play]")
    assert "step=15" in opened.address()
    assert stage(opened).evaluate(PIXELS) != before


def test_a_cell_shows_its_words_and_a_word_its_cells(open_page: Open) -> None:
    document = painted()
    opened = open_page(document)
    box = stage(opened).bounding_box()
    opened.page.mouse.click(box["x"] + 0.6 * box["width"], box["y"] + 0.6 * box["height"])
    assert "cell=10" in opened.address()
    opened.page.mouse.move(2, 2)
    weights = mean_weights(document)
    opened.settle()
    assert "row 3, column 3" in stage_side(opened)
    assert bars(opened)["…"] == pytest.approx(weights[10, len(WORDS) - 1], abs=0.006)
    assert opened.page.locator("#heads .tile").count() == 6
    at = WORDS.index("circle")
    opened.page.locator(".told-word").nth(at).click()
    opened.page.mouse.move(2, 2)
    opened.settle()
    assert "cell=" not in opened.address()
    peak = int(weights[:, at].argmax())
    assert opened.readout() == (
        f"‘circle’ was looked at most by the cell at row {peak // 4 + 1}, column {peak % 4 + 1}, "
        f"{short(weights[peak, at])}; by a cell on average {short(weights[:, at].mean())}"
    )
    assert opened.page.locator(".told-word[aria-pressed=true]").inner_text() == "circle"
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert opened.readout().startswith("All cells")


def short(weight: float) -> str:
    return f"{weight:.3f}".removeprefix("0")


def test_layers_show_what_they_may_see_and_are_chosen_there(open_page: Open) -> None:
    document = painted()
    opened = open_page(document, state="#cell=9")
    kinds = opened.page.locator(".mask .trait").all_inner_texts()
    assert kinds == ["row", "column", "neighbourhood"]
    drawn = [one.evaluate(PIXELS) for one in opened.page.locator(".mask-canvas").all()]
    assert len(set(drawn)) == 3
    opened.page.locator(".mask").nth(1).click()
    opened.settle()
    assert "site=decoder.1.self" in opened.address()
    expected = site_weights(document, "decoder.1.self").mean(axis=0)[9, len(WORDS) - 1]
    assert bars(opened)["…"] == pytest.approx(expected, abs=0.006)


def test_a_hostile_prompt_stays_text(open_page: Open) -> None:
    document = painted()
    document["subject"] = document["title"] = document["looks"][0]["text"] = EVIL[0]
    document["looks"][0]["axes"]["seen"]["tokens"][2] = EVIL[1]
    opened = open_page(document, state="#token=2")
    assert hurt(opened.page) is None
    assert EVIL[1] in opened.page.locator(".told-word").nth(2).inner_text()
    assert EVIL[1] in stage_side(opened)
