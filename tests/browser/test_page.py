"""What holds for every view: safe, offline, dark and light, small and large, and comparable."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from saccade.app.look.document import VERSION, read_json
from saccade.app.look.html import framed, page_html
from tests.browser.conftest import Open, table
from tests.browser.documents import compared, language, recurrent, translation
from tests.browser.test_translation import groups, merge

pytestmark = pytest.mark.slow
EVIL = [
    "</script><script>window.hurt = 1</script>",
    "<img src=x onerror='window.hurt = 1'>",
    " <!--",
    "\u2028",
    "&lt;b&gt;",
    "javascript:window.hurt=1",
    " ]]>",
    "'\"`${window.hurt=1}",
]


def hurt(page: Any) -> Any:
    return page.evaluate("window.hurt ?? null")


@pytest.mark.parametrize("kind", ["language", "translation"])
def test_no_text_of_the_document_is_ever_run(open_page: Open, kind: str) -> None:
    if kind == "language":
        document = language(pieces=EVIL * 3, layers=1).document
    else:
        document = translation(layers=1).document
        look = document["looks"][0]
        pieces = look["axes"]["source"]["tokens"]
        look["axes"]["source"]["tokens"] = (EVIL * 3)[: len(pieces)]
        look["text"] = look["label"] = look["beam"][0][0]["text"] = EVIL[0]
    document["title"] = EVIL[0] + EVIL[1]
    document["notes"] = EVIL
    document["subject"] = EVIL[1]
    for look in document["looks"]:
        look["run"] = EVIL[1]
        for place, one in enumerate(look["sites"]):
            one["name"] = f"{EVIL[place % 2]}{place}"
    opened = open_page(document, state="#token=1&step=1")
    for node in opened.page.locator(".token, .word").all()[:6]:
        node.hover()
    opened.page.locator(".table-button").first.click()
    opened.settle()
    assert hurt(opened.page) is None
    assert opened.page.locator("main img").count() == 0
    assert opened.page.locator("h1").inner_text() == EVIL[0] + EVIL[1]


def test_the_policy_stops_what_is_not_the_page_itself(open_page: Open) -> None:
    opened = open_page(recurrent().document)
    opened.page.evaluate(
        "() => { const node = document.createElement('script');"
        " node.textContent = 'window.hurt = 1'; document.body.append(node); }"
    )
    assert hurt(opened.page) is None
    asked = opened.page.evaluate("fetch('https://example.org').then(() => 'out', () => 'stopped')")
    assert asked == "stopped"
    assert all("Content Security Policy" in said for said in opened.complaints)
    assert len(opened.complaints) >= 2
    opened.complaints.clear()


def test_dark_follows_the_system_and_the_switch(open_page: Open) -> None:
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    dark = open_page(translation().document, color_scheme="dark")
    light = open_page(translation().document, color_scheme="light")
    night, day = dark.page.evaluate(ground), light.page.evaluate(ground)
    assert sum(shade(night)) < 120
    assert sum(shade(day)) > 600
    dark.page.keyboard.press("d")
    assert dark.page.evaluate(ground) == day
    light.page.get_by_label("Dark or light").click()
    assert light.page.evaluate(ground) == night


def shade(colour: str) -> list[int]:
    return [int(part) for part in colour.strip("rgb()").split(",")]


@pytest.mark.parametrize("make", [translation, recurrent, language, compared])
def test_nothing_runs_off_a_narrow_page(open_page: Open, make: Any) -> None:
    opened = open_page(make().document, width=400)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400


def test_the_picture_of_a_matrix_is_sound_svg_with_every_word(open_page: Open) -> None:
    document = translation().document
    document["looks"][0]["axes"]["source"]["tokens"][0] = "<b>&"
    opened = open_page(document)
    with opened.page.expect_download() as waiting:
        opened.page.locator("#alignment").get_by_label("Download SVG").click()
    root = ET.parse(waiting.value.path()).getroot()
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"<b>&", "économique", "Economic"} <= texts
    with opened.page.expect_download() as waiting:
        opened.page.locator("#alignment").get_by_label("Download PNG").click()
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")


def test_the_numbers_can_be_copied(open_page: Open) -> None:
    document = recurrent().document
    spied = "navigator.clipboard.writeText = async text => { window.copied = text; };"
    opened = open_page(document, state="#unit=pieces", before=spied)
    opened.page.locator("#alignment").get_by_text("Copy CSV").click()
    lines = opened.page.evaluate("window.copied").strip().split("\n")
    assert len(lines) == 1 + len(document["looks"][0]["axes"]["target"]["tokens"])
    total = sum(float(part) for part in lines[3].split(",")[1:])
    assert total == pytest.approx(1.0, abs=0.01)


def test_two_runs_stand_side_by_side_with_their_difference(open_page: Open) -> None:
    made = compared()
    opened = open_page(made.document)
    opened.page.locator("#difference .table-button").click()
    opened.settle()
    _, _, shown = table(opened.page, "#difference")
    axes = made.document["looks"][0]["axes"]
    sides = [made.weights[at, "decoder.0.cross"].mean(axis=0) for at in (0, 1)]
    rows, columns = groups(axes["target"]), groups(axes["source"])
    a, b = (merge(side, rows, columns) for side in sides)
    np.testing.assert_allclose(np.array(shown), b - a, atol=0.0011)
    canvas = opened.page.locator("#arun canvas.heatmap")
    canvas.hover()
    opened.settle()
    assert "rnn-attention: " in opened.readout()
    assert "transformer-base: " in opened.readout()


def test_the_difference_is_drawn_as_far_as_two_runs_wrote_the_same(open_page: Open) -> None:
    made = compared(same_text=False)
    opened = open_page(made.document)
    shared = ["L", "'", "accord", "sur"]  # then one goes on with la, the other with l'
    words = opened.page.locator("#difference").inner_text()
    assert "Only the first 4 rows and 14 columns" in words
    assert "have different words along the rows" in words
    opened.page.locator("#difference .table-button").click()
    opened.settle()
    _, rows, shown = table(opened.page, "#difference")
    assert rows == shared
    sides = []
    for look in (0, 1):
        axes = made.document["looks"][look]["axes"]
        weights = made.weights[look, "decoder.0.cross"].mean(axis=0)
        sides.append(merge(weights, groups(axes["target"]), groups(axes["source"]))[: len(shared)])
    np.testing.assert_allclose(np.array(shown), sides[1] - sides[0], atol=0.0011)
    opened.page.locator("#arun canvas.heatmap").focus()
    for _ in range(6):  # to zone, which the other run does not say
        opened.page.keyboard.press("ArrowDown")
        opened.settle()
    assert "transformer-base: –" in opened.readout()
    opened.page.locator(".tabs").get_by_text("transformer-base").click()
    opened.settle()
    assert "espace" in opened.page.locator(".sentence.target").inner_text()


def test_a_shared_prompt_has_a_difference_whatever_was_written_after_it(open_page: Open) -> None:
    """Two language models that read the same text and went on differently."""
    pieces = ["Once", " upon", " a", " time", " there", " was", " a"]
    first = language(pieces=[*pieces, " cat", "."], layers=1).document
    second = language(pieces=[*pieces, " dog", " too", "."], layers=1).document
    other = second["looks"][0]
    other["run"] = "gpt-other"
    for one in other["sites"]:
        one["arrays"]["weights"]["blob"] += len(first["blobs"])
    looks, blobs = [first["looks"][0], other], first["blobs"] + second["blobs"]
    opened = open_page({**first, "looks": looks, "blobs": blobs})
    opened.page.locator("#difference .table-button").click()
    opened.settle()
    columns, rows, shown = table(opened.page, "#difference")
    assert rows == columns == [piece.strip() for piece in pieces]
    assert np.abs(shown).max() > 0.05


def test_runs_without_a_word_in_common_have_no_difference_and_say_why(open_page: Open) -> None:
    document = compared().document
    document["looks"][1]["axes"]["target"]["tokens"][0] = "Un"
    opened = open_page(document)
    words = opened.page.locator("#difference").inner_text()
    assert "No difference is drawn: the runs have different words along the rows" in words
    assert not opened.page.locator("#difference canvas").is_visible()


@pytest.mark.parametrize("make", [translation, language])
def test_in_a_notebook_the_page_lives_in_a_sandbox_and_works(
    open_page: Open, tmp_path: Path, make: Any
) -> None:
    opened = open_page(recurrent().document)
    page = opened.page
    path = tmp_path / "notebook.html"
    frame = framed(read_json(json.dumps(make().document)))
    path.write_text(f"<!doctype html><script>secret = 1</script>{frame}", encoding="utf-8")
    page.goto(path.as_uri())
    inner = page.frame_locator("iframe")
    inner.locator("html[data-ready]").wait_for()
    (child,) = page.main_frame.child_frames
    reach = "() => { try { return parent.secret } catch (error) { return error.name } }"
    assert child.evaluate(reach) == "SecurityError"
    inner.locator(".table-button").first.click()
    assert inner.locator("table.numbers").count() == 1
    page.frame_locator("iframe").locator("h1").click()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    opened.settle()
    assert "looks at" in inner.locator("#readout").inner_text()
    with page.expect_download() as waiting:
        inner.get_by_label("Download SVG").first.click()
    assert waiting.value.path().read_text().startswith("<svg")
    inner.get_by_label("Dark or light").click()
    assert inner.locator("html").get_attribute("data-theme") == "dark"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"version": VERSION + 7}, f"reads version {VERSION} of a look, not {VERSION + 7}"),
        ({"kind": "dance"}, 'knows no looks of the kind "dance"'),
    ],
)
def test_a_document_that_the_page_cannot_show_is_refused_in_words(
    open_page: Open, field: dict[str, Any], words: str
) -> None:
    opened = open_page(recurrent().document)
    other = replace(read_json(json.dumps(recurrent().document)), **field)
    path = opened.path.with_name("other.html")
    path.write_text(page_html(other))
    opened.page.goto(path.as_uri())
    assert words in opened.page.locator("main").inner_text()
