"""The view of a text with blanks."""

from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import Open, table
from tests.browser.documents import Array, Blobs, axis, document_of, self_weights, site

pytestmark = pytest.mark.slow
PIECES = ["<start>", " The", " old", " cas", "tle", " is", " not", " ___", ", and", " ___"]
PIECES += [" sleeps", ".", "<end>"]
FILLED = "The old castle is not here, and she sleeps."
WORDS = {7: [["here", 0.6], ["old", 0.25], ["far", 0.05]], 9: [["she", 0.5], ["he", 0.4]]}


def masked(pieces: list[str], words: dict[int, Any]) -> tuple[dict[str, Any], dict[str, Array]]:
    """A document and its weights; with a site that is worked out from the others."""
    blobs, sites, kept = Blobs(), list[Any](), dict[str, Array]()
    for name, heads in (("rollout", 1), ("encoder.0.self", 3), ("encoder.1.self", 3)):
        weights = self_weights(len(pieces), heads, causal=False, seed=len(name))
        arrays = {"weights": blobs.add(weights, "f16")}
        made = site(name, "text", "text", heads=heads, arrays=arrays)
        sites.append({**made, "derived": name == "rollout"})
        kept[name] = weights.astype(np.float64)
    choices = [words.get(at, []) for at in range(len(pieces))]
    log_p = [float(np.log(some[0][1])) if some else None for some in choices]
    text = axis(pieces, prompt=len(pieces), log_p=log_p, choices=choices if words else None)
    said = {"run": "bert", "label": "best", "text": FILLED, "beam": None}
    plain = {"score": None, "log_probability": None, "finished": None}
    look = {**said, **plain, "axes": {"text": text}, "sites": sites}
    return document_of("masked", "bert · The old castle …", [look], blobs), kept


def test_the_sentence_is_filled_and_each_blank_has_its_words(open_page: Open) -> None:
    opened = open_page(masked(PIECES, WORDS)[0])
    page = opened.page
    assert page.locator(".sentence").inner_text().splitlines()[-1].strip() == FILLED
    assert page.locator(".sentence .blank").all_inner_texts() == ["here", "she"]
    lists = page.locator("#blanks .choices")
    assert lists.count() == 2
    assert lists.nth(0).locator(".choice-text").all_inner_texts() == ["here", "old", "far"]
    assert lists.nth(1).locator(".number").all_inner_texts() == ["50 %", "40 %"]
    assert page.locator(".legend .made").count() == 0


def test_the_first_blank_is_asked_first_and_a_click_asks_another(open_page: Open) -> None:
    document, kept = masked(PIECES, WORDS)
    opened = open_page(document, state="#site=encoder.1.self&head=2")
    page = opened.page
    assert page.locator('.token[data-at="7"]').get_attribute("aria-selected") == "true"
    assert "token 7 · blank" in page.locator("#token").inner_text()
    page.locator(".sentence .blank").nth(1).click()
    opened.settle()
    assert page.locator('.token[data-at="9"]').get_attribute("aria-selected") == "true"
    pressed = page.locator('.blank[aria-pressed="true"]').all_inner_texts()
    assert pressed == ["she"]
    best = int(kept["encoder.1.self"][2][9].argmax())
    assert PIECES[best].strip() in opened.readout().split(":")[1].split(",")[0]
    page.locator('.token[data-at="2"]').click()
    opened.settle()
    assert "token 2 · given" in page.locator("#token").inner_text()


def test_words_look_both_ways_and_the_rollout_can_be_chosen(open_page: Open) -> None:
    document, kept = masked(PIECES, WORDS)
    opened = open_page(document, state="#site=rollout&unit=pieces")
    opened.page.locator("#map .table-button").click()
    *_, shown = table(opened.page, "#map")
    np.testing.assert_allclose(np.array(shown), kept["rollout"][0], atol=0.006)
    names = opened.page.locator("#text .picks select").first.locator("option").all_inner_texts()
    assert names == ["all layers", "rollout", "encoder.0.self", "encoder.1.self"]
    assert opened.page.locator("#heads .layer").count() == 2


def test_a_text_without_blanks_and_two_runs_are_shown(open_page: Open) -> None:
    plain = masked([piece.replace("___", "x") for piece in PIECES], {})[0]
    opened = open_page(plain)
    assert opened.page.locator("#blanks").count() == 0
    assert opened.page.locator(".sentence .blank").count() == 0
    both = masked(PIECES, WORDS)[0]
    both["looks"] = [both["looks"][0], {**both["looks"][0], "run": "other"}]
    opened = open_page(both)
    assert opened.page.locator(".card h2").all_inner_texts()[:2] == ["bert", "other"]
