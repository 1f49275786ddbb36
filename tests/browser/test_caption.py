"""The caption view, driven in a browser and compared with numpy."""

from typing import Any

import numpy as np
import pytest

from tests.browser.captioned import SIDE, captions
from tests.browser.conftest import Open, Opened, table
from tests.browser.documents import Array, Made
from tests.browser.test_page import EVIL, hurt

pytestmark = pytest.mark.slow
THIRDS = (
    ("top left", "top", "top right"),
    ("left", "centre", "right"),
    ("bottom left", "bottom", "bottom right"),
)
# From a copy: who reads a canvas often is told so on the console.
COPIED = """const copy = new OffscreenCanvas(canvas.width, canvas.height);
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);"""
INK = f"""(canvas) => {{
  {COPIED}
  const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  let sum = 0;
  for (let i = 0; i < data.length; i += 4) sum += data[i] + data[i + 1] + data[i + 2];
  return sum / (data.length / 4) / 3;
}}"""
PIXELS = """(canvas) => canvas.toDataURL()"""


def words(made: Made, look: int = 0) -> list[str]:
    return [piece.strip() for piece in made.document["looks"][look]["axes"]["target"]["tokens"]]


def mean(made: Made, look: int = 0) -> Array:
    """(words, cells), over all layers and heads that look at the picture."""
    cross = [w for (at, name), w in made.weights.items() if at == look and "cross" in name]
    return np.concatenate(cross).astype(float).mean(axis=0)


def places(row: Array) -> dict[str, float]:
    sums: dict[str, float] = {}
    for cell, weight in enumerate(row):
        y, x = divmod(cell, SIDE)
        name = THIRDS[int(3 * (y + 0.5) / SIDE)][int(3 * (x + 0.5) / SIDE)]
        sums[name] = sums.get(name, 0.0) + float(weight)
    return dict(sorted(sums.items(), key=lambda one: -one[1]))


def spoken(word: str, row: Array) -> str:
    heavy = [(n, m) for i, (n, m) in enumerate(list(places(row).items())[:3]) if i < 1 or m >= 0.05]
    return f"‘{word}’ looks at: {heavy[0][0]} "


def stage(opened: Opened) -> Any:
    return opened.page.locator("#where .stage-canvas")


def test_hovering_a_word_shows_and_says_where_it_looked(open_page: Open) -> None:
    made = captions(layers=2, heads=2)
    opened = open_page(made.document)
    before = stage(opened).evaluate(PIXELS)
    row = words(made).index("square")
    opened.page.locator(".told-word").nth(row).hover()
    opened.settle()
    assert opened.readout().startswith(spoken("square", mean(made)[row]))
    assert stage(opened).evaluate(PIXELS) != before
    shown = opened.page.locator("#where .places").first.locator("li").all_inner_texts()
    for line, (name, mass) in zip(shown[:2], places(mean(made)[row]).items()):
        assert line.split("\n")[0] == name
        assert float(line.split("\n")[-1]) == pytest.approx(mass, abs=0.006)


def test_the_table_has_the_mean_over_all_heads_and_every_row_sums_to_one(open_page: Open) -> None:
    made = captions(layers=2, heads=3)
    opened = open_page(made.document)
    opened.page.keyboard.press("t")
    columns, rows, shown = table(opened.page, "#film")
    assert rows == words(made)
    assert (columns[0], columns[SIDE]) == ("1,1", "2,1")
    np.testing.assert_allclose(np.array(shown), mean(made), atol=6e-4)


def test_arrow_keys_step_and_space_plays(open_page: Open) -> None:
    made = captions()
    opened = open_page(made.document, state="#step=1")
    chosen = opened.page.locator('.told-word[aria-pressed="true"]')
    assert chosen.inner_text() == words(made)[1]
    opened.page.keyboard.press("ArrowRight")
    assert chosen.inner_text() == words(made)[2]
    assert (
        opened.page.locator('.frame[aria-pressed="true"] .frame-word').inner_text()
        == (words(made)[2])
    )
    opened.page.keyboard.press("End")
    assert chosen.inner_text() == "<end>"
    opened.page.keyboard.press("Home")
    assert "step=0" in opened.address()
    opened.page.keyboard.press(" ")
    opened.page.wait_for_selector('.told-word:nth-child(3)[aria-pressed="true"]')
    opened.page.get_by_label("Pause").click()
    assert opened.page.get_by_label("Play").count() == 1


@pytest.mark.parametrize("first", [0.5, 1 / 16])
def test_true_cells_shade_each_square_evenly(first: float, open_page: Open) -> None:
    made = captions(hard=True, first=first)
    made.document["images"][0]["boxes"] = []
    row = words(made).index("red")
    opened = open_page(made.document, state=f"#step={row}&opacity=1")
    smooth = stage(opened).evaluate(INK)
    opened.page.keyboard.press("c")
    opened.settle()
    assert opened.page.get_by_label("true cells").is_checked()
    inside = f"""(canvas, [cell, side, off]) => {{
      {COPIED}
      const [y, x] = [Math.floor(cell / side), cell % side];
      const w = canvas.width / side;
      const part = (a, b) => pen.getImageData(
        Math.round((x + a + off) * w), Math.round((y + b + off) * w), 2, 2).data[0];
      return [part(0.3, 0.3), part(0.7, 0.7), part(1.5, 0.5)];
    }}"""
    cell = int(mean(made)[row].argmax())
    lit, also, dark = stage(opened).evaluate(inside, [cell, SIDE, first - 0.5])
    assert dark < 30
    assert min(lit, also) > 60
    assert stage(opened).evaluate(INK) != smooth


def test_less_opacity_lets_more_of_the_picture_through(open_page: Open) -> None:
    opened = open_page(captions().document)
    slider = opened.page.get_by_label("Opacity")
    light: list[float] = []
    for value in ("0", "0.5", "1"):
        slider.fill(value)
        opened.settle()
        light.append(stage(opened).evaluate(INK))
    assert light[0] > light[1] > light[2]


def test_a_head_is_picked_from_the_list_and_from_its_picture(open_page: Open) -> None:
    made = captions(layers=2, heads=3)
    row = words(made).index("square")
    opened = open_page(made.document, state=f"#step={row}")
    opened.page.locator('#heads .tile[data-site="decoder.1.cross"][data-head="2"]').click()
    opened.settle()
    weights = made.weights[0, "decoder.1.cross"][2].astype(float)
    assert opened.page.get_by_label("Head", exact=True).input_value() == "2"
    opened.page.keyboard.press("t")
    *_, shown = table(opened.page, "#film")
    np.testing.assert_allclose(np.array(shown), weights, atol=6e-4)
    opened.page.keyboard.press("Escape")
    opened.settle()
    *_, shown = table(opened.page, "#film")
    np.testing.assert_allclose(np.array(shown), mean(made), atol=6e-4)
    opened.page.get_by_label("Layer", exact=True).select_option("decoder.0.cross")
    opened.page.get_by_label("Head", exact=True).select_option("0")
    opened.settle()
    *_, shown = table(opened.page, "#film")
    np.testing.assert_allclose(np.array(shown), made.weights[0, "decoder.0.cross"][0], atol=6e-4)


@pytest.mark.parametrize(("first", "off"), [(0.5, 0.0), (1 / 16, 0.45), (1 / 16, -0.45)])
def test_pointing_at_a_cell_says_which_words_look_at_it(
    first: float, off: float, open_page: Open
) -> None:
    made = captions(first=first)
    opened = open_page(made.document)
    row = words(made).index("red")
    cell = int(mean(made)[row].argmax())
    box = stage(opened).bounding_box()
    x, y = (cell % SIDE + first + off) / SIDE, (cell // SIDE + first + off) / SIDE
    opened.page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    opened.settle()
    best = words(made)[int(mean(made)[:, cell].argmax())]
    at = f"row {cell // SIDE + 1}, column {cell % SIDE + 1}"
    share = f"{mean(made)[:, cell].max():.2f}".removeprefix("0")
    said = opened.readout()
    assert said.startswith(f"The cell at {at} is looked at by: {best} {share}")


@pytest.mark.parametrize("first", [0.5, 1 / 16])
def test_the_box_that_holds_the_peak_is_named(first: float, open_page: Open) -> None:
    made = captions(first=first)
    row = words(made).index("red")
    opened = open_page(made.document, state=f"#step={row}")
    cell = int(mean(made)[row].argmax())
    x, y = (cell % SIDE + first) / SIDE, (cell // SIDE + first) / SIDE
    boxes = made.document["images"][0]["boxes"]
    hit = [
        b["label"]
        for b in boxes
        if b["box"][0] <= x <= b["box"][2] and b["box"][1] <= y <= b["box"][3]
    ]
    assert hit
    assert opened.readout().endswith(f"its peak is on {' and '.join(hit)}")
    assert set(opened.page.locator(".places .hit .place-name").all_inner_texts()) == set(hit)


def test_a_gallery_is_chosen_from_by_click_and_by_key(open_page: Open) -> None:
    made = captions(3)
    opened = open_page(made.document)
    texts = [look["text"] for look in made.document["looks"]]

    def told() -> str:
        opened.page.wait_for_selector(".told-word")
        opened.settle()
        parts = opened.page.locator(".told-word:not(.ending)").all_inner_texts()
        return " ".join(parts)

    assert told() == texts[0]
    opened.page.locator(".gallery-item").nth(2).click()
    assert told() == texts[2]
    opened.page.keyboard.press("ArrowUp")
    assert told() == texts[1]
    pressed = opened.page.locator('.gallery-item[aria-pressed="true"]')
    assert pressed.get_attribute("aria-label") == f"Image 2, test 1: {texts[1]}"
    again = open_page(made.document, state="#item=2")
    again.page.wait_for_selector(".told-word")
    assert again.page.locator(".gallery-item").nth(2).get_attribute("aria-pressed") == "true"


def test_a_patch_of_the_encoder_shows_what_it_looks_at(open_page: Open) -> None:
    made = captions(encoder=True)
    opened = open_page(made.document, state="#encoder=image_encoder.encoder.1.self/2&patch=10")
    title = opened.page.locator("#encoder .caption .note")
    opened.page.wait_for_selector('#encoder .tile[aria-pressed="true"]')
    weights = made.weights[0, "image_encoder.encoder.1.self"][2].astype(float)
    heavy = next(iter(places(weights[1 + 10, 1:])))
    expected = f"image_encoder.encoder.1.self head 2: the patch at row 2, column 3 looks at {heavy}"
    assert title.inner_text().startswith(expected)
    opened.page.locator("#encoder").get_by_role("button", name="Class token").click()
    opened.settle()
    heavy = next(iter(places(weights[0, 1:])))
    assert f"the class token looks at {heavy}" in title.inner_text()
    opened.page.locator('#encoder .tile[data-site="rollout"]').click()
    opened.settle()
    assert title.inner_text().startswith("rollout: the class token looks at")


def test_two_runs_stand_side_by_side_on_the_same_word(open_page: Open) -> None:
    made = captions(2, runs=("one", "two"))
    row = words(made).index("square")
    opened = open_page(made.document, state=f"#step={row}")
    said = opened.readout()
    first, second = said.split(" | ")
    assert first.strip().startswith(f"one: {spoken('square', mean(made, 0)[row])}")
    assert second.strip().startswith(f"two: {spoken('square', mean(made, 2)[row])}")
    opened.page.keyboard.press("ArrowRight")
    chosen = opened.page.locator('.told-word[aria-pressed="true"]').all_inner_texts()
    assert chosen == [words(made)[row + 1]] * 2
    opened.page.get_by_text("two", exact=True).first.click()
    opened.page.wait_for_selector("#where")


def test_a_model_without_attention_says_so(open_page: Open) -> None:
    made = captions(layers=0)
    opened = open_page(made.document)
    assert "there is no attention to show" in opened.page.locator("#where").inner_text()
    opened.page.keyboard.press("ArrowRight")
    assert opened.readout().endswith("was said without looking back at the image.")


def test_no_text_of_a_caption_is_ever_run(open_page: Open) -> None:
    made = captions(2, best=2)
    for look in made.document["looks"]:
        tokens = look["axes"]["target"]["tokens"]
        look["axes"]["target"]["tokens"] = (EVIL * 9)[: len(tokens)]
        look["text"] = EVIL[0]
    for image in made.document["images"]:
        image["name"] = image["boxes"][0]["label"] = EVIL[1]
        image["references"] = EVIL
    opened = open_page(made.document)
    opened.page.locator(".told-word").first.hover()
    assert hurt(opened.page) is None
    assert opened.page.locator("main img").count() == 0


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_sticks_out_of_the_page(open_page: Open, width: int, scheme: str) -> None:
    made = captions(6, layers=2, heads=4, best=3, encoder=True)
    opened = open_page(made.document, width=width, color_scheme=scheme)
    wide = opened.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
