"""The view of texts that were understood, driven in a browser and compared with what it is of."""

from typing import Any

import numpy as np
import pytest

from tests.browser.conftest import Open, Opened, table
from tests.browser.documents import Array
from tests.browser.test_page import EVIL, hurt
from tests.browser.understood import TAGS, number, pairs, tagged

pytestmark = pytest.mark.slow


def choose(opened: Opened, label: str, option: str) -> None:
    opened.page.get_by_label(label, exact=True).select_option(option)
    opened.settle()


def lit(opened: Opened) -> dict[int, str]:
    """The tokens that are tinted, with their colours."""
    return {
        int(at): colour for at, colour in opened.page.locator(".token.lit").evaluate_all(
            "all => all.map(one => [one.dataset.at, one.style.backgroundColor])"
        )
    }  # fmt: skip


def merged(weights: Array, words: list[list[int]], length: int) -> Array:
    """Columns of pieces summed over words; special tokens stand alone."""
    inside = {place for start, end in words for place in range(start, end)}
    groups = sorted([*words, *([i, i + 1] for i in range(length) if i not in inside)])
    return np.stack([weights[:, start:end].sum(axis=1) for start, end in groups], axis=1)


def test_both_texts_are_shown_and_the_guesses_are_told(open_page: Open) -> None:
    made = pairs()
    opened = open_page(made.document)
    texts = opened.page.locator(".read-text .strip").all_inner_texts()
    assert "A man is playing the cello." in texts[0]
    assert "Someone plays an instrument." in texts[1]
    assert opened.page.locator(".read-text .eyebrow").all_inner_texts() == ["FIRST", "SECOND"]
    told = made.document["looks"][0]["classes"]
    names = opened.page.locator(".guess-name").all_inner_texts()
    assert names == [label for label, _ in told["guesses"]]
    assert opened.page.locator(".token-name b").inner_text() == "entails"
    assert "What ‘entails’ came from: relevance" in opened.page.locator(".map-name").inner_text()


def test_tokens_are_tinted_by_the_map_that_is_chosen(open_page: Open) -> None:
    made = pairs(single=True)
    opened = open_page(made.document)
    seen: list[dict[int, str]] = []
    for name, row in (("relevance", 0), ("rollout", 0), ("encoder.1.self", 0)):
        choose(opened, "Map", name)
        weights = made.weights[0, name].astype(float).mean(axis=0)[row]
        assert set(lit(opened)) == {i for i, weight in enumerate(weights) if weight >= 0.01}
        seen.append(lit(opened))
        top = int(weights.argmax())
        assert opened.page.locator(f"#token-{top}").count() == 1
    assert seen[0] != seen[1]
    opened.page.locator('.tile[data-site="encoder.0.self"][data-head="2"]').click()
    opened.settle()
    assert "site=encoder.0.self" in opened.address()
    assert "encoder.0.self, head 2" in opened.page.locator(".map-name").inner_text()
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert lit(opened) == seen[0]


def test_the_table_of_a_map_has_its_weights(open_page: Open) -> None:
    made = pairs(single=True)
    opened = open_page(made.document)
    opened.page.keyboard.press("t")
    text = made.document["looks"][0]["axes"]["text"]
    weights = made.weights[0, "relevance"].astype(float)[0]
    expected = merged(weights, text["words"], len(text["tokens"]))
    opened.settle()
    found = np.array(table(opened.page, "#map")[2])[:, : expected.shape[1]]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    opened.page.keyboard.press("w")
    opened.settle()
    found = np.array(table(opened.page, "#map")[2])[:, : weights.shape[1]]
    np.testing.assert_allclose(found, weights, atol=1e-3)


def test_pointing_at_a_token_says_its_weight(open_page: Open) -> None:
    made = pairs()
    opened = open_page(made.document)
    weight = float(made.weights[0, "relevance"][0, 0, 2])
    opened.page.locator("#token-2").hover()
    opened.settle()
    expected = f"relevance of ‘entails’: {f'{weight:.3f}'.removeprefix('0')} at man"
    assert opened.readout() == expected


def test_ribbons_flow_between_the_texts_and_turn_round(open_page: Open) -> None:
    made = pairs()
    opened = open_page(made.document, state="#least=0")
    text = made.document["looks"][0]["axes"]["text"]
    (a, b), (c, d) = text["texts"]
    words = [[w for w in text["words"] if start <= w[0] < end] for start, end in ((a, b), (c, d))]
    flow = opened.page.locator("#flow")

    def labels(side: str) -> list[str]:
        return flow.locator(f'.word[data-side="{side}"] text').all_text_contents()

    names = [["".join(text["tokens"][s:e]).strip() for s, e in side] for side in words]
    assert (labels("source"), labels("target")) == (names[0], names[1])
    assert flow.locator(".ribbon").count() == len(words[0]) * len(words[1])
    mean = np.mean(
        [made.weights[0, f"encoder.{i}.self"].astype(float).mean(axis=0) for i in range(2)], axis=0
    )
    (s, e), (p, q) = words[1][0], words[0][0]
    weight = mean[s:e, p:q].sum(axis=1).mean()
    told = flow.locator('.ribbon[data-row="0"][data-column="0"] title').text_content()
    assert float(f"0{told}") == pytest.approx(weight, abs=0.006)
    opened.page.keyboard.press("r")
    opened.settle()
    assert (labels("source"), labels("target")) == (names[1], names[0])
    assert "mode=in" in opened.address()


def test_one_text_has_no_flow(open_page: Open) -> None:
    opened = open_page(pairs(single=True).document)
    assert opened.page.locator("#flow").count() == 0
    assert opened.page.locator(".read-text .eyebrow").count() == 0


def test_words_have_their_tags_and_are_stepped_through(open_page: Open) -> None:
    made = tagged()
    opened = open_page(made.document)
    assert opened.page.locator(".tagged-word .tag").all_inner_texts() == list(TAGS)
    chosen = opened.page.locator('.tagged-word[aria-pressed="true"] .tagged-text')
    assert chosen.inner_text() == "She"
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    assert chosen.inner_text() == "signing"
    assert opened.page.locator(".token-name b").inner_text() == "signing"
    assert "What ‘verb’ came from" in opened.page.locator(".map-name").inner_text()
    weights = made.weights[0, "relevance"][0, 2].astype(float)
    words = made.document["looks"][0]["axes"]["text"]["words"]
    best = max(words, key=lambda word: weights[word[0] : word[1]].sum())
    assert f"{weights[best[0] : best[1]].sum():.2f}".removeprefix("0") in opened.readout()
    opened.page.locator(".tagged-word", has_text="letter").click()
    opened.settle()
    assert "token=5" in opened.address()
    assert opened.page.locator(".scrubber b").inner_text() == "letter"


def test_a_number_is_told_as_one(open_page: Open) -> None:
    opened = open_page(number().document)
    assert opened.page.locator(".token-name b").inner_text() == "3.81"
    assert opened.page.locator(".guess").count() == 0


def test_two_runs_stand_side_by_side_and_share_the_map(open_page: Open) -> None:
    opened = open_page(pairs(("one", "two")).document)
    assert opened.page.locator(".halves .card h2").all_inner_texts() == ["one", "two"]
    assert opened.page.locator(".token-name b").all_inner_texts() == ["entails", "neutral"]
    choose(opened, "Map", "rollout")
    told = opened.page.locator(".map-name").all_inner_texts()
    assert [("rollout" in one) for one in told] == [True, True]
    assert opened.readout().startswith("one: rollout of ‘entails’")
    opened.page.get_by_text("two", exact=True).first.click()
    opened.settle()
    assert opened.page.locator("#flow").count() == 1


@pytest.mark.parametrize("make", [pairs, tagged])
def test_hostile_texts_are_text(open_page: Open, make: Any) -> None:
    document = make().document
    (look,) = document["looks"]
    look["axes"]["text"]["tokens"][2] = EVIL[0]
    look["axes"]["decision"]["tokens"][0] = EVIL[0]
    if look.get("classes"):
        look["classes"]["guesses"][0][0] = EVIL[0]
        look["classes"]["said"] = [EVIL[0]]
    opened = open_page(document)
    assert hurt(opened.page) is None


@pytest.mark.parametrize("width", [390, 900, 1440])
@pytest.mark.parametrize("make", [pairs, tagged, number])
def test_nothing_sticks_out_of_the_page(open_page: Open, make: Any, width: int) -> None:
    opened = open_page(make().document, width=width)
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
