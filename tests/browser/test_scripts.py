"""Text of every script: it fits, it runs its own way, and it is shown as it was written."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import pytest

from tests.browser.conftest import Open, table
from tests.browser.documents import compared, language, long_language, translation
from tests.browser.scripts import TEXTS, read, text, translated

pytestmark = pytest.mark.slow
FAMILY = "👨‍👩‍👧‍👦"
ENDLESS = {
    "Latin": "x" * 300,
    "Chinese": "老猫在厨房里喝温牛奶" * 30,
    "Arabic": "القطة" * 60,
    "emoji": FAMILY * 60,
    "unreadable": "�" * 300,
}
LEFTWARDS = {"Arabic–English": (True, False), "Hebrew–Arabic": (True, True)}
BOXES = """side => [...document.querySelectorAll(`.word[data-side="${side}"] text`)].map(node => {
  const { x, width } = node.getBBox();
  return [x, x + width];
})"""


def spoil(document: dict[str, Any], words: str) -> dict[str, Any]:
    """Put a text without spaces wherever a text of others may stand."""
    document["title"] = f"{words} · {words}"
    document["subject"] = words
    document["notes"] = [words]
    runs = sorted({look["run"] for look in document["looks"]})
    for look in document["looks"]:
        look["run"] = f"{runs.index(look['run'])}{words}"
        look["text"] = words
        for axis in look["axes"].values():
            axis["tokens"] = [words, *axis["tokens"][1:]]
            if axis["choices"]:
                axis["choices"] = [[[words, 0.5]] for _ in axis["choices"]]
        for place, site in enumerate(look["sites"]):
            site["name"] = f"{place}{words}"
        for step in look["beam"] or []:
            step[0]["text"] = step[0]["token"] = words
    return document


@pytest.mark.parametrize("words", ENDLESS.values(), ids=ENDLESS)
@pytest.mark.parametrize("make", [translation, language, compared])
def test_no_text_widens_the_page(open_page: Open, make: Any, words: str) -> None:
    opened = open_page(spoil(make().document, words), state="#step=1&token=0")
    for width in (1400, 1000, 400):
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.settle()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", TEXTS)
def test_the_heading_is_the_text_as_it_was_written(open_page: Open, name: str) -> None:
    given, _, made, _ = TEXTS[name]
    opened = open_page(translated(name).document)
    shown = opened.page.locator(".sentence span:not(.eyebrow)")
    assert shown.all_text_contents() == [text(given.split("|")), text(made.split("|"))]
    ways = opened.page.locator(".sentence").evaluate_all(
        "all => all.map(node => getComputedStyle(node).direction === 'rtl')"
    )
    assert tuple(ways) == LEFTWARDS.get(name, (False, False))


def test_without_the_text_its_tokens_are_the_heading_and_none_is_left_out(open_page: Open) -> None:
    document = translated("emoji").document
    document["subject"] = None
    opened = open_page(document)
    tokens = document["looks"][0]["axes"]["source"]["tokens"]
    shown = opened.page.locator(".sentence.source span:not(.eyebrow)")
    assert shown.text_content() == "".join(tokens)


@pytest.mark.parametrize("name", TEXTS)
def test_words_lie_beside_one_another_in_the_way_they_are_read(open_page: Open, name: str) -> None:
    opened = open_page(translated(name).document)
    for side, leftwards in zip(("source", "target"), LEFTWARDS.get(name, (False, False))):
        boxes = opened.page.evaluate(BOXES, side)
        assert boxes == sorted(boxes, reverse=leftwards)
        ordered = sorted(boxes)
        assert all(a[1] <= b[0] for a, b in pairwise(ordered))


@pytest.mark.parametrize("name", TEXTS)
def test_the_columns_of_a_map_run_as_their_text_does(open_page: Open, name: str) -> None:
    opened = open_page(translated(name).document)
    with opened.page.expect_download() as waiting:
        opened.page.locator("#alignment").get_by_label("Download SVG").click()
    nodes = ET.parse(waiting.value.path()).getroot().iter("{http://www.w3.org/2000/svg}text")
    slanted = [node for node in nodes if "rotate" in node.get("transform", "")]
    places = [float(node.attrib["transform"].split()[0][len("translate(") :]) for node in slanted]
    leftwards, _ = LEFTWARDS.get(name, (False, False))
    assert places == sorted(places, reverse=leftwards)
    assert len(places) >= 7
    opened.page.locator("#alignment .table-button").click()
    way = opened.page.locator("table.numbers").evaluate("node => getComputedStyle(node).direction")
    assert (way == "rtl") == leftwards


def test_pointing_at_a_mirrored_map_finds_the_word_that_is_seen_there(open_page: Open) -> None:
    opened = open_page(translated("Arabic–English").document)
    box = opened.page.locator("#alignment canvas").bounding_box()
    opened.page.locator("#alignment canvas").hover(
        position={"x": box["width"] - 20, "y": box["height"] - 40}
    )
    opened.settle()
    assert "تشرب" in opened.readout().split("looked at by")[0]
    opened.page.locator("#alignment canvas").focus()
    opened.page.keyboard.press("ArrowLeft")
    opened.settle()
    assert "القطة" in opened.readout().split("here")[1]


def test_words_that_run_left_do_not_turn_the_line_around_them(open_page: Open) -> None:
    opened = open_page(translated("Arabic–English").document)
    opened.page.locator('.word[data-side="target"]', has_text="milk").hover()
    opened.settle()
    assert "\u2068الحليب\u2069 ." in opened.readout()
    opened.page.locator('.word[data-side="source"]', has_text="الحليب").hover()
    opened.settle()
    assert opened.readout().startswith("‘\u2068الحليب\u2069’ is looked at by")


def test_a_long_word_leaves_room_for_the_map_whatever_its_letters(open_page: Open) -> None:
    widths: dict[str, float] = {}
    for name, words in ENDLESS.items():
        document = translated("Latin").document
        for axis in document["looks"][0]["axes"].values():
            axis["tokens"][2] = f" {words}"
        opened = open_page(document, width=400)
        widths[name] = opened.page.locator("#alignment canvas").evaluate("node => node.clientWidth")
    assert max(widths.values()) - min(widths.values()) < 40, widths
    assert max(widths.values()) < 520


def test_a_character_is_never_cut_in_two(open_page: Open) -> None:
    document = translated("emoji").document
    document["looks"][0]["axes"]["source"]["tokens"][0] = FAMILY * 30
    opened = open_page(document)
    shown = opened.page.locator('.word[data-side="source"] text').first.text_content()
    assert shown.endswith("…")
    assert set(shown.removesuffix("…").split(FAMILY)) == {""}


def test_what_cannot_be_seen_is_made_visible(open_page: Open) -> None:
    seen = {
        "\u0301": "◌\u0301",
        "\u200d": "·",
        "\ufe0f": "·",
        "": "·",
        " ": "␣",
        "\n": "↵",
        "a\u202eb": "a·b",
        "می\u200cخواهم": "می\u200cخواهم",
        FAMILY: FAMILY,
    }
    opened = open_page(language(pieces=list(seen), layers=1).document, state="#unit=pieces")
    opened.page.locator("#map .table-button").click()
    opened.settle()
    assert opened.page.locator("#map tbody th").all_text_contents() == list(seen.values())


@pytest.mark.parametrize("name", ["Latin", "Arabic–English"])
def test_the_arrows_of_the_strip_go_where_they_point(open_page: Open, name: str) -> None:
    opened = open_page(read(name).document, state="#unit=pieces&token=5")
    opened.page.locator(".strip").focus()
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    expected = {"Latin": "6", "Arabic–English": "4"}[name]
    assert opened.page.locator(".strip .token.chosen").get_attribute("data-at") == expected
    boxes = opened.page.locator(".strip .token").evaluate_all(
        "all => all.map(node => node.getBoundingClientRect().x)"
    )
    assert (boxes[0] > boxes[6]) == (name != "Latin")


@pytest.mark.parametrize("name", TEXTS)
def test_the_numbers_are_those_of_the_model_in_every_script(open_page: Open, name: str) -> None:
    made = translated(name)
    opened = open_page(made.document, state="#unit=pieces")
    opened.page.locator("#alignment .table-button").click()
    opened.settle()
    *_, shown = table(opened.page, "#alignment")
    expected = made.weights[0, "decoder.0.cross"].mean(axis=0)
    assert abs(expected - shown).max() < 0.0011


@pytest.mark.parametrize("leftwards", [False, True])
def test_a_long_map_runs_as_its_text_does(open_page: Open, leftwards: bool) -> None:
    document = long_language(length=400, layers=1, heads=4).document
    if leftwards:
        document["looks"][0]["axes"]["text"]["tokens"] = [f" كلمة{i}" for i in range(400)]
    opened = open_page(document, state="#site=decoder.0.self&head=2")
    canvas = opened.page.locator("canvas.long")
    wide = canvas.evaluate("node => node.clientWidth")
    edge = wide - 12 if leftwards else 122
    canvas.hover(position={"x": edge, "y": 300})
    opened.settle()
    found = re.search(r"looks at .*?\((\d+)\)", opened.readout())
    assert found is not None
    assert int(found[1]) < 8  # the first column
    canvas.focus()
    opened.page.keyboard.press("+")
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    moved = [int(part) for part in re.findall(r"zoom=([\d%C,]+)", opened.address())[0].split("%2C")]
    middle = (moved[2] + moved[3]) / 2
    assert (middle < 200) == leftwards
