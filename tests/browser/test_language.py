"""The language view."""

import json
import re
from typing import Any

import numpy as np
import pytest
import torch
from transformers import CLIPConfig, CLIPModel

import saccade
from saccade.app.look.document import to_json
from tests.browser.conftest import Open, table
from tests.browser.documents import Blobs, language

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


@pytest.mark.parametrize(
    ("unit", "chosen", "later"), [("words", "34", 4), ("pieces", "36", 3)]
)  # from "together": by words past " home", by pieces past "toge"
def test_the_arrows_step_by_what_is_shown(
    open_page: Open, unit: str, chosen: str, later: int
) -> None:
    opened = open_page(language().document, state=f"#unit={unit}")
    for _ in range(2):
        opened.page.keyboard.press("ArrowLeft")
    opened.settle()
    assert opened.page.locator(".strip .token.chosen").get_attribute("data-at") == chosen
    assert opened.page.locator(".token.later").count() == later
    steps = {"words": 35, "pieces": 40}[unit]
    assert f"/ {steps}" in opened.page.locator(".step-name .count").inner_text()


@pytest.mark.parametrize("causal", [True, False])
def test_a_text_opens_on_a_word_that_says_something(open_page: Open, causal: bool) -> None:
    pieces = ["[CLS]", "The", " cat", " sleeps", ".", "[SEP]"]
    made = language(pieces=pieces, layers=1)
    made.document["looks"][0]["sites"][0]["causal"] = causal
    opened = open_page(made.document)
    assert opened.page.locator("#token .token-name b").inner_text() == "sleeps"
    assert opened.readout().startswith("‘sleeps’ looks at")


def clip() -> dict[str, Any]:
    """A model with a tower for images and one for text, as others' pages show it."""
    small = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 16}
    small["intermediate_size"] = 16
    text = {**small, "vocab_size": 40, "max_position_embeddings": 16}
    text |= {"bos_token_id": 33, "eos_token_id": 39}
    vision = {**small, "image_size": 32, "patch_size": 8}
    torch.manual_seed(0)
    model = CLIPModel(CLIPConfig(text_config=text, vision_config=vision, projection_dim=8)).eval()
    with torch.no_grad(), saccade.looking(model) as trace:
        model(input_ids=torch.arange(33, 40)[None], pixel_values=torch.rand(1, 3, 32, 32))
    words = ["<start>", " a", " photo", " of", " a", " cat", "<end>"]
    return json.loads(to_json(saccade.show(trace, {"text": words}, title="clip").document))


def test_each_tower_of_a_model_has_its_own_words(open_page: Open) -> None:
    opened = open_page(clip())
    page = opened.page
    layers = page.get_by_label("Layer", exact=True)
    assert layers.locator("option").all_inner_texts()[:2] == [
        "all layers of image",
        "all layers of text",
    ]
    for choice, count, last, heading in (
        ("all", 17, "3,3", "Image"),
        ("text.1.self", 7, "cat", "Text"),
        ("all of text", 7, "cat", "Text"),
        ("vision.0.self", 17, "3,3", "Image"),
    ):
        layers.select_option(choice)
        opened.settle()
        assert page.locator(".strip .token").count() == count
        assert page.locator("#text h2").inner_text() == heading
        assert page.locator("#token .token-name b").inner_text() == last
        page.locator("#map .table-button").click()
        opened.settle()
        columns, rows, numbers = table(page, "#map")
        assert columns == rows
        assert len(rows) == count
        assert last in rows
        np.testing.assert_allclose(np.array(numbers).sum(axis=1), 1, atol=0.02)
        page.locator("#map .table-button").click()
    assert layers.input_value() == "vision.0.self"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.locator(".strip .token").count() == 17


def test_even_attention_on_a_short_text_is_not_called_local(open_page: Open) -> None:
    pieces = [f" word{i}" for i in range(9)]
    made = language(pieces=pieces, layers=1, heads=2)
    blobs, site = Blobs(), made.document["looks"][0]["sites"][0]
    near = np.abs(np.subtract.outer(np.arange(9), np.arange(9))) <= 1
    even = np.tri(9) / np.tri(9).sum(axis=1, keepdims=True)
    local = np.tri(9) * near / (np.tri(9) * near).sum(axis=1, keepdims=True)
    site["arrays"] = {"weights": blobs.add(np.stack([even, local]), "f16")}
    opened = open_page({**made.document, "blobs": blobs.packed})
    opened.page.locator("#heads").scroll_into_view_if_needed()
    opened.page.wait_for_selector(".trait:not(:empty)")
    labels = opened.page.locator(".tile .trait").all_inner_texts()
    assert labels == ["spread out", "local 1.00"]  # even attention is just that
