"""The view of texts about images, driven in a browser and compared with what it was made of."""

from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import Open, Opened, table
from tests.browser.paired import paired, site_weights
from tests.browser.test_page import EVIL, hurt

pytestmark = pytest.mark.slow
PIXELS = "(canvas) => canvas.toDataURL()"
CARD = "#joint-0"
LAST, BACK = "joins.1.words.cross", "joins.1.regions.cross"


@pytest.fixture(autouse=True)
def few_scenes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.tasks.joint.data.HELD_BACK", 6)


def stage(opened: Opened) -> Any:
    return opened.page.locator(".stage-canvas").first


def drawn(opened: Opened) -> str:
    opened.settle()
    return stage(opened).evaluate(PIXELS)


def at(opened: Opened, x: float, y: float) -> tuple[float, float]:
    box = stage(opened).bounding_box()
    return box["x"] + x * box["width"], box["y"] + y * box["height"]


def looked(opened: Opened) -> list[float]:
    """How much each region is looked at, as the list says."""
    texts = opened.page.locator(f"{CARD} .region-item .looked").all_inner_texts()
    return [float(text) if text else -1.0 for text in texts]


def test_answers_regions_and_what_would_be_said_without_them_are_told(open_page: Open) -> None:
    document = paired()
    (look,) = document["looks"]
    opened = open_page(document)
    assert opened.page.locator(f"{CARD} .token-name b").inner_text() == look["text"]
    guesses = opened.page.locator(f"{CARD} .guess-name").all_inner_texts()
    assert guesses == [label for label, _ in look["classes"]["guesses"]]
    names = opened.page.locator(f"{CARD} .region-name").all_inner_texts()
    assert names == [token.strip() for token in look["axes"]["regions"]["tokens"]]
    expected = site_weights(document, LAST).mean(axis=(0, 1))
    np.testing.assert_allclose(looked(opened), expected, atol=0.006)
    told = opened.page.locator(f"{CARD} .lost").all_inner_texts()
    for text, p in zip(told, look["regions"]["without"], strict=True):
        change = 100 * (p - look["regions"]["with_all"])
        assert float(text.split("%")[1].replace("−", "-").replace("±", "")) == pytest.approx(
            change, abs=0.051
        )
    assert "all words, on average" in opened.readout()


def test_a_word_shows_its_regions_and_a_region_its_words(open_page: Open) -> None:
    document = paired()
    opened = open_page(document)
    plain = drawn(opened)
    opened.page.locator(f"{CARD} .token[data-at='2']").click()
    assert drawn(opened) != plain
    weights = site_weights(document, LAST).mean(axis=0)
    np.testing.assert_allclose(looked(opened), weights[2], atol=0.006)
    assert "token=2" in opened.address()
    opened.page.locator(f"{CARD} .region-item[data-number='1']").click()
    opened.settle()
    assert looked(opened) == [-1.0] * weights.shape[1]
    assert "looked at: joins.1.regions.cross, mean of its heads" in opened.readout()
    back = site_weights(document, BACK).mean(axis=0)[1]
    tokens = document["looks"][0]["axes"]["words"]["tokens"]
    most = tokens[int(back.argmax())].strip()
    assert f"{most} {back.max():.2f}".replace("0.", ".") in opened.readout()
    lit = opened.page.locator(f"{CARD} .token.lit").count()
    assert lit == int((back >= 0.01).sum())
    state = opened.address().partition("#")[2]
    assert open_page(document, state=f"#{state}").readout() == opened.readout()


def test_the_pointer_asks_a_box_and_lets_go_of_it(open_page: Open) -> None:
    document = paired()
    boxes = document["looks"][0]["regions"]["boxes"]
    opened = open_page(document)
    before = opened.readout()
    left, top, right, bottom = boxes[1]
    opened.page.mouse.move(*at(opened, (left + right) / 2, (top + bottom) / 2))
    opened.settle()
    assert opened.readout().startswith("Which words ‘")
    opened.page.mouse.move(2, 2)
    opened.settle()
    assert opened.readout() == before


def test_layers_heads_and_keys(open_page: Open) -> None:
    document = paired()
    opened = open_page(document)
    opened.page.get_by_label("Layer").first.select_option("joins.0.words.cross")
    opened.page.get_by_label("Head", exact=True).first.select_option("1")
    opened.settle()
    weights = site_weights(document, "joins.0.words.cross")
    np.testing.assert_allclose(looked(opened), weights[1].mean(axis=0), atol=0.006)
    opened.page.keyboard.press("]")
    opened.settle()
    assert "joins.1.words.cross, head 0" in opened.readout()
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    np.testing.assert_allclose(looked(opened), site_weights(document, LAST)[0][0], atol=0.006)
    opened.page.keyboard.press("ArrowDown")
    opened.settle()
    assert "found=0" in opened.address()
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert "found" not in opened.address()
    opened.page.keyboard.press("t")
    columns, rows, numbers = table(opened.page, CARD)
    assert (len(rows), len(columns)) == weights.shape[1:]
    np.testing.assert_allclose(numbers, site_weights(document, LAST)[0], atol=0.006)


def test_every_layer_and_head_of_both_streams_can_be_opened(open_page: Open) -> None:
    document = paired()
    sites = document["looks"][0]["sites"]
    opened = open_page(document)
    assert opened.page.locator("#heads .tile").count() == sum(site["heads"] for site in sites)
    names = {site["name"] for site in sites}
    assert {"encoder.0.self", "region_encoder.1.self", LAST, BACK} <= names
    opened.page.locator("#heads .tile[data-site='region_encoder.1.self'][data-head='1']").click()
    opened.page.locator("#map .table-button").click()
    opened.settle()
    expected = site_weights(document, "region_encoder.1.self")[1]
    np.testing.assert_allclose(table(opened.page, "#map")[2], expected, atol=0.006)


def test_the_image_may_be_shaded_by_what_is_needed_or_meant(open_page: Open) -> None:
    document = paired("referring")
    opened = open_page(document)
    images = {drawn(opened)}
    for words, told in (
        ("without this region", "How much less likely that this region is meant is"),
        ("what is meant", "How likely each region is meant"),
    ):
        opened.page.get_by_text(words, exact=True).click()
        images.add(drawn(opened))
        assert opened.readout().startswith(told)
    assert len(images) == 3
    assert opened.page.locator(f"{CARD} .guess-note").all_inner_texts().count("true region") <= 1


def test_cells_are_pointed_at_one_by_one(open_page: Open) -> None:
    document = paired("answering", "cells")
    grid = document["looks"][0]["axes"]["regions"]["grid"]
    opened = open_page(document)
    opened.page.mouse.click(*at(opened, grid["across"][1] + 0.01, grid["down"][2] + 0.01))
    opened.settle()
    number = grid["special"] + 2 * grid["width"] + 1
    assert f"found={number}" in opened.address()
    assert "‘row 3, column 2’" in opened.readout()
    assert opened.page.locator(f"{CARD} .region-item").count() == 9


def test_many_texts_are_judged_sorted_and_opened(open_page: Open) -> None:
    document = paired(count=5)
    opened = open_page(document)
    assert opened.page.locator(".joint-item").count() == 5
    wrong = sum(look["classes"]["said"] != look["classes"]["truth"] for look in document["looks"])
    assert opened.page.locator(".class-count").inner_text() == f"5 of 5, {wrong} wrong"
    asked = opened.page.locator(".joint-asked").first.inner_text()
    opened.page.locator(".joint-item").first.click()
    opened.settle()
    words = opened.page.locator(f"{CARD} .strip").inner_text()
    assert asked.split()[0] in words
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    assert opened.page.locator(".pager .number").inner_text() == "2 / 5"
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert opened.page.locator(CARD).count() == 0


def test_blanks_have_their_words_and_two_runs_stand_side_by_side(open_page: Open) -> None:
    document = paired("joint", runs=("one", "other"), count=2)
    opened = open_page(document, state="#opened=true")
    assert opened.page.locator(".halves .card").count() == 2
    assert opened.readout().startswith("one: ")
    assert " | other: " in opened.readout()
    words = document["looks"][0]["axes"]["words"]
    words["choices"] = [
        [["ring", 0.6], ["star", 0.4]] if n == 2 else [] for n in range(len(words["tokens"]))
    ]
    opened = open_page({**document, "looks": document["looks"][:1]})
    assert opened.page.locator(".joint-blank h3").inner_text() == "Blank 1"
    assert opened.page.locator(".joint-blank li").count() == 2


def test_the_sentences_of_a_row_stand_together_and_each_can_be_opened(open_page: Open) -> None:
    document = paired("choosing")
    looks = document["looks"]
    assert len(looks) == 4
    guesses = looks[0]["classes"]["guesses"]
    opened = open_page(document)
    names = opened.page.locator(f"{CARD} .guess-name")
    assert names.all_inner_texts() == [label for label, _ in guesses]
    notes = opened.page.locator(f"{CARD} .guess-note").all_inner_texts()
    truth = looks[0]["classes"]["truth"]
    assert [note == "true sentence" for note in notes] == [[x] == truth for x, _ in guesses]
    expected = site_weights(document, LAST).mean(axis=(0, 1))
    np.testing.assert_allclose(looked(opened), expected, atol=0.006)
    for number in (2, 3):
        opened.page.locator(f"{CARD} .guess-name", has_text=guesses[number][0]).last.click()
        opened.settle()
        assert looks[number]["regions"]["asked"] == guesses[number][0]
        expected = site_weights(document, LAST, number).mean(axis=(0, 1))
        np.testing.assert_allclose(looked(opened), expected, atol=0.006)
        assert opened.page.locator(f"{CARD} .token-name b").inner_text() == guesses[0][0]
    assert f"sentence={looks[0]['regions']['among'].index(guesses[3][0])}" in opened.address()
    again = open_page(document, state=f"#{opened.address().partition('#')[2]}")
    assert again.readout() == opened.readout()


def test_many_rows_of_sentences_are_one_item_each(open_page: Open) -> None:
    document = paired("choosing", count=3)
    opened = open_page(document)
    assert opened.page.locator(".joint-item").count() == 3
    firsts = document["looks"][::4]
    wrong = sum(look["classes"]["said"] != look["classes"]["truth"] for look in firsts)
    assert opened.page.locator(".class-count").inner_text() == f"3 of 3, {wrong} wrong"
    assert opened.page.locator(".joint-asked").first.inner_text() == "which of 4 sentences?"


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_that_is_written_becomes_markup(open_page: Open, evil: str) -> None:
    document = paired(count=2)
    for look in document["looks"]:
        look["regions"]["asked"] = look["text"] = evil
        look["classes"] |= {"said": [evil], "truth": [evil], "target": evil}
        look["classes"]["guesses"][0][0] = evil
        look["axes"]["regions"]["tokens"][1] = evil
        look["axes"]["words"]["tokens"][1] = evil
    for state in ("", "#opened=true"):
        opened = open_page(document, state=state)
        assert hurt(opened.page) is None
