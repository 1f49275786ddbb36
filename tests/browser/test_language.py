"""The language view."""

import re

import numpy as np
import pytest

from tests.browser.conftest import Open, table
from tests.browser.documents import language

pytestmark = pytest.mark.slow
HEAD = "#site=decoder.1.self&head=2"


def numbers(text: str) -> dict[str, float]:
    return {a.strip(): float(b) for a, b in re.findall(r"([^,:;]+) (\d?\.\d\d)", text)}


def test_pointing_at_a_token_tints_and_tells_what_it_looks_at(open_page: Open) -> None:
    made = language()
    opened = open_page(made.document, state=HEAD)
    row = made.weights[0, "decoder.1.self"][2][10]
    opened.page.locator('.token[data-at="10"]').hover()
    opened.settle()
    tokens = made.document["looks"][0]["axes"]["text"]["tokens"]
    found = numbers(opened.readout())
    assert found[tokens[int(row.argmax())].strip()] == pytest.approx(row.max(), abs=0.006)
    tinted = opened.page.locator(".token.lit").evaluate_all(
        "all => all.map(node => Number(node.dataset.at))"
    )
    assert set(tinted) == set(np.flatnonzero(row >= 0.01).tolist())


def test_the_listed_keys_and_other_make_the_whole(open_page: Open) -> None:
    made = language()
    opened = open_page(made.document, state=f"{HEAD}&token=30")
    shown = [float(text) for text in opened.page.locator("#token .key-weight").all_inner_texts()]
    row = np.sort(made.weights[0, "decoder.1.self"][2][30])[::-1]
    np.testing.assert_allclose(shown[:-1], row[: len(shown) - 1], atol=0.0051)
    assert sum(shown) == pytest.approx(1.0, abs=0.05)


def test_reverse_mode_tells_who_looks_at_a_token(open_page: Open) -> None:
    made = language()
    opened = open_page(made.document, state=HEAD)
    opened.page.get_by_text("is looked at by").first.click()
    opened.page.locator('.token[data-at="4"]').click()
    opened.page.mouse.move(5, 5)
    opened.settle()
    column = np.sort(made.weights[0, "decoder.1.self"][2][:, 4])[::-1]
    shown = [float(text) for text in opened.page.locator("#token .key-weight").all_inner_texts()]
    np.testing.assert_allclose(shown, column[: len(shown)], atol=0.0051)
    assert opened.readout().startswith("‘went’ is looked at by")


def test_hiding_the_sink_rescales_and_says_so(open_page: Open) -> None:
    made = language()
    opened = open_page(made.document, state="#site=decoder.0.self&head=0&unit=pieces&token=12")
    opened.page.get_by_label("Hide sink").click()
    opened.page.mouse.move(5, 5)
    opened.page.locator("#map .table-button").click()
    opened.settle()
    note = opened.page.locator(".note.warn").inner_text()
    assert note.startswith("The first token ‘When’ is hidden as a sink")
    *_, shown = table(opened.page, "#map")
    weights = made.weights[0, "decoder.0.self"][0]
    expected = weights[12, 1:] / (1 - weights[12, 0])
    np.testing.assert_allclose(shown[12][1 : len(expected) + 1], expected, atol=0.003)
    assert shown[12][0] == 0


def test_given_and_written_tokens_differ_by_more_than_colour(open_page: Open) -> None:
    opened = open_page(language().document)
    lines = "node => getComputedStyle(node).textDecorationLine"
    assert opened.page.locator('.token[data-at="0"]').evaluate(lines) == "none"
    assert opened.page.locator('.token[data-at="39"]').evaluate(lines) == "underline"


def test_probable_tokens_are_listed_with_the_one_taken_marked(open_page: Open) -> None:
    opened = open_page(language().document, state="#token=25")
    items = opened.page.locator(".choices li")
    assert items.count() == 4
    assert "81 %" in items.first.inner_text()
    assert "taken" in (items.first.get_attribute("class") or "")


def test_heads_are_ordered_by_a_trait_and_filtered_by_their_label(open_page: Open) -> None:
    made = language()
    opened = open_page(made.document)
    opened.page.locator("#heads").scroll_into_view_if_needed()
    opened.page.wait_for_selector(".trait:not(:empty)")
    opened.page.get_by_label("Order").select_option("previous")
    opened.settle()
    shown = opened.page.locator(".tile").evaluate_all(
        "all => all.map(node => [node.dataset.site, Number(node.dataset.head)])"
    )
    scores = {
        (name, head): np.diagonal(weights, offset=-1).mean()
        for (_, name), stack in made.weights.items()
        for head, weights in enumerate(stack)
    }
    values = [scores[name, head] for name, head in shown]
    assert values == pytest.approx(sorted(values, reverse=True), abs=1e-4)
    opened.page.get_by_label("Filter heads").fill("sink")
    opened.settle()
    left = opened.page.locator(".tile").evaluate_all(
        "all => all.map(node => node.getAttribute('aria-label'))"
    )
    assert left
    assert all("sink" in label for label in left)


def test_the_scrubber_walks_the_text_and_dims_what_is_not_yet_written(open_page: Open) -> None:
    opened = open_page(language().document)
    opened.page.keyboard.press("ArrowLeft")
    opened.page.keyboard.press("ArrowLeft")
    opened.settle()
    assert opened.page.locator(".token.later").count() == 2
    assert opened.page.locator(".strip .token.chosen").get_attribute("data-at") == "37"
