"""The translation view, driven in a browser and compared with numpy."""

import re

import numpy as np
import pytest

from tests.browser.conftest import Open, table
from tests.browser.documents import Array, Made, recurrent, translation
from tests.browser.scripts import TEXTS, translated

pytestmark = pytest.mark.slow
FOCUSED = """() => {
  const { className, tagName } = document.activeElement;
  return `${className.baseVal ?? className} ${tagName}`;
}"""


def groups(axis: dict[str, object]) -> list[tuple[int, int]]:
    """Words, and pieces in no word alone: as the page must merge them."""
    pieces, words = axis["tokens"], axis["words"]
    assert isinstance(pieces, list)
    assert isinstance(words, list)
    found: list[tuple[int, int]] = []
    at = 0
    for start, end in words:
        found += [(i, i + 1) for i in range(at, start)] + [(start, end)]
        at = end
    return found + [(i, i + 1) for i in range(at, len(pieces))]


def merge(weights: Array, rows: list[tuple[int, int]], columns: list[tuple[int, int]]) -> Array:
    summed = np.stack([weights[:, a:b].sum(axis=1) for a, b in columns], axis=1)
    return np.stack([summed[a:b].mean(axis=0) for a, b in rows])


def labels(axis: dict[str, object]) -> list[str]:
    pieces = axis["tokens"]
    assert isinstance(pieces, list)
    return ["".join(pieces[a:b]).strip() for a, b in groups(axis)]


def mean_words(made: Made, look: int = 0) -> tuple[list[str], list[str], Array]:
    """Target words, source words, and the mean over all cross heads."""
    axes = made.document["looks"][look]["axes"]
    cross = [w for (at, name), w in made.weights.items() if at == look and "cross" in name]
    mean = np.concatenate(cross).mean(axis=0)
    merged = merge(mean, groups(axes["target"]), groups(axes["source"]))
    return labels(axes["target"]), labels(axes["source"]), merged


def short(value: float) -> str:
    return f"{value:.2f}".removeprefix("0")


def spoken(word: str, names: list[str], row: Array, threshold: float = 0.1) -> str:
    order = [j for j in np.argsort(-row, kind="stable") if row[j] >= threshold][:5]
    parts = [f"{names[j]} {short(row[j])}" for j in order]
    other = 1 - sum(row[j] for j in order)
    return f"‘{word}’ looks at: {', '.join([*parts, f'other {short(other)}'])}"


def read(text: str) -> dict[str, float]:
    """The names and numbers of a read-out."""
    return {
        name.strip(): float(number) for name, number in re.findall(r"([^,:;]+) (\d?\.\d\d)", text)
    }


def test_hovering_a_target_word_reads_out_what_it_looks_at(open_page: Open) -> None:
    made = translation(layers=2)
    opened = open_page(made.document)
    target, source, weights = mean_words(made)
    row = target.index("économique")
    opened.page.locator('.word[data-side="target"]', has_text="économique").hover()
    opened.settle()
    expected = read(spoken("économique", source, weights[row]))
    assert read(opened.readout()) == pytest.approx(expected, abs=0.0101)
    assert opened.readout().startswith("‘économique’ looks at: Economic .")
    linked = opened.page.locator(".word.linked text").all_text_contents()
    assert set(linked) == {name for name, w in zip(source, weights[row]) if w >= 0.1}


def test_hovering_a_source_word_tells_who_looks_at_it_and_how_much_in_all(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document)
    target, source, weights = mean_words(made)
    column = source.index("was")
    opened.page.locator('.word[data-side="source"]', has_text="was").hover()
    opened.settle()
    text = opened.readout()
    assert text.startswith("‘was’ is looked at by: ")
    found = re.search(r"([\d.]+) in all", text)
    assert found is not None
    assert float(found[1]) == pytest.approx(weights[:, column].sum(), abs=0.006)
    best = target[int(weights[:, column].argmax())]
    assert read(text.split("by:")[1])[best] == pytest.approx(weights[:, column].max(), abs=0.006)


def test_words_are_summed_over_columns_and_averaged_over_rows(open_page: Open) -> None:
    made = translation(layers=2)
    opened = open_page(made.document)
    opened.page.locator("#alignment .table-button").click()
    columns, rows, numbers = table(opened.page, "#alignment")
    target, source, weights = mean_words(made)
    assert (rows, columns) == (target, source)
    np.testing.assert_allclose(np.array(numbers), weights, atol=0.0011)


def test_pieces_are_shown_as_they_are(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document)
    opened.page.locator("#flow").get_by_text("pieces").click()
    opened.page.keyboard.press("t")
    opened.settle()
    _, rows, numbers = table(opened.page, "#alignment")
    assert "europé" in rows
    expected = made.weights[0, "decoder.0.cross"].mean(axis=0)
    np.testing.assert_allclose(np.array(numbers), expected, atol=0.0011)


def test_one_head_can_be_picked_and_the_next_one_by_key(open_page: Open) -> None:
    made = translation(layers=2)
    opened = open_page(made.document, state="#unit=pieces")
    opened.page.get_by_label("Layer").select_option("decoder.1.cross")
    opened.page.get_by_label("Head", exact=True).select_option("2")
    opened.page.locator("#alignment .table-button").click()
    opened.settle()
    *_, numbers = table(opened.page, "#alignment")
    weights = made.weights[0, "decoder.1.cross"]
    np.testing.assert_allclose(np.array(numbers), weights[2], atol=0.0011)
    opened.page.locator("h1").click()
    opened.page.keyboard.press("]")
    opened.settle()
    *_, numbers = table(opened.page, "#alignment")
    np.testing.assert_allclose(np.array(numbers), weights[3], atol=0.0011)


def test_the_highest_of_all_heads_is_the_highest(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document, state="#unit=pieces&head=max")
    opened.page.locator("#alignment .table-button").click()
    *_, numbers = table(opened.page, "#alignment")
    expected = made.weights[0, "decoder.0.cross"].max(axis=0)
    np.testing.assert_allclose(np.array(numbers), expected, atol=0.0011)
    assert "need not sum to one" in opened.page.locator("#flow").inner_text()


def test_the_best_aligned_head_is_sharp_and_moves_forward(open_page: Open) -> None:
    made = translation(layers=2)
    costs = {}
    for (look, name), weights in made.weights.items():
        if look or "cross" not in name:
            continue
        for head, w in enumerate(weights):
            entropy = -(w * np.log(np.maximum(w, 1e-9))).sum(axis=1).mean() / np.log(w.shape[1])
            forward = (np.diff(w.argmax(axis=1)) >= 0).mean()
            costs[f"{name} head {head}"] = entropy + 1 - forward
    opened = open_page(made.document, state="#head=best")
    assert min(costs, key=lambda key: costs[key]) in opened.page.locator("#flow").inner_text()


def test_a_higher_threshold_moves_weight_into_other(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document, state="#threshold=0.5")
    target, source, weights = mean_words(made)
    row = target.index("zone")
    opened.page.locator('.word[data-side="target"]', has_text="zone").hover()
    opened.settle()
    kept = weights[row][weights[row] >= 0.5].sum() or weights[row].max()
    assert read(opened.readout())["other"] == pytest.approx(1 - kept, abs=0.0101)
    ribbons = opened.page.locator(".ribbon").count()
    assert ribbons == int((weights >= 0.5).sum())
    assert source  # the columns are the same words as before


def test_steps_follow_the_keys_and_later_words_are_dim(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document)
    page = opened.page
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    opened.settle()
    assert "step=2" in opened.address()
    later = page.locator('.word.later[data-side="target"] text').all_text_contents()
    assert later[0] == "sur"
    assert len(later) == len(mean_words(made)[0]) - 3
    assert opened.readout().startswith("‘accord’ looks at")
    beam = made.document["looks"][0]["beam"][2]
    shown = page.locator(".candidates tbody tr .text").all_inner_texts()
    assert [text.strip() for text in shown] == [one["text"].strip() for one in beam]
    page.keyboard.press("ArrowLeft")
    opened.settle()
    assert "step=1" in opened.address()


@pytest.mark.parametrize(
    ("unit", "step", "word"), [("words", 6, "économique"), ("pieces", 4, "la")]
)
def test_the_arrows_step_by_what_is_shown(open_page: Open, unit: str, step: int, word: str) -> None:
    opened = open_page(translation().document, state=f"#unit={unit}")
    opened.page.keyboard.press("End")
    for _ in range({"words": 9, "pieces": 14}[unit]):
        opened.page.keyboard.press("ArrowLeft")
    opened.settle()
    assert f"step={step}" in opened.address()
    assert opened.readout().startswith(f"‘{word}’ looks at")
    assert opened.page.locator(".step-name b").inner_text() == word
    opened.page.keyboard.press("w")  # the other unit: the same place
    opened.settle()
    assert f"step={step}" in opened.address()
    assert opened.page.locator(".step-name b").inner_text() == word


@pytest.mark.parametrize("finished", [True, False])
def test_the_beam_opens_where_the_best_was_complete(open_page: Open, finished: bool) -> None:
    made = translation(looks=1)
    look = made.document["looks"][0]
    pieces = look["axes"]["target"]["tokens"]
    beam = look["beam"]
    end = len(pieces) - 1
    if finished:  # those that go on come first, and the search goes on
        beam[end] = [*beam[end][1:], beam[end][0]]
    else:
        look["finished"] = beam[end][0]["ended"] = False
    beam += [[{**one, "ended": False} for one in beam[end][:3]] for _ in range(4)]
    opened = open_page(made.document)
    panel = opened.page.locator("#beam")
    assert f"Candidates after step {end + 1}" in panel.inner_text()
    best = panel.locator("tr.first .text")
    assert best.inner_text().removesuffix("ended").strip() == look["text"]
    assert ("ended" in best.inner_text()) == finished
    assert panel.locator(".node.on").count() == panel.locator(".step").count()
    opened.page.keyboard.press("End")
    opened.page.keyboard.press("ArrowLeft")
    opened.settle()
    assert f"Candidates after step {end}" in panel.inner_text()


@pytest.mark.parametrize("name", TEXTS)
def test_no_void_is_left_beside_or_under_the_map(open_page: Open, name: str) -> None:
    made = translated(name, hypotheses=5)
    opened = open_page(made.document, width=1400)
    bottoms = opened.page.locator(".columns > *").evaluate_all(
        "all => all.map(node => node.getBoundingClientRect().bottom)"
    )
    assert abs(bottoms[0] - bottoms[1]) < 80
    wide, card = opened.page.evaluate(
        "['#alignment canvas', '#alignment'].map(one => document.querySelector(one).clientWidth)"
    )
    assert wide > 0.5 * card


def test_space_plays_and_pauses(open_page: Open) -> None:
    opened = open_page(translation().document)
    page = opened.page
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.wait_for_url(re.compile("step=2"))
    page.keyboard.press(" ")
    held = opened.address()
    page.wait_for_timeout(900)
    assert opened.address() == held
    assert page.locator(".play").get_attribute("aria-label") == "Play"


def test_another_hypothesis_can_be_chosen(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document)
    opened.page.locator(".hypothesis").nth(1).click()
    opened.settle()
    assert "espace" in opened.page.locator(".sentence.target").inner_text()
    opened.page.locator("#alignment .table-button").click()
    opened.settle()
    _, rows, numbers = table(opened.page, "#alignment")
    target, _, weights = mean_words(made, look=1)
    assert rows == target
    np.testing.assert_allclose(np.array(numbers), weights, atol=0.0011)


def test_any_head_opens_in_full(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document, state="#unit=pieces")
    opened.page.locator('.tile[data-site="encoder.0.self"][data-head="1"]').click()
    opened.settle()
    assert "encoder.0.self · head 1" in opened.page.locator("#heads").inner_text()
    opened.page.locator("#heads .table-button").click()
    opened.settle()
    *_, numbers = table(opened.page, "#heads")
    expected = made.weights[0, "encoder.0.self"][1]
    np.testing.assert_allclose(np.array(numbers), expected, atol=0.0011)


def test_what_a_model_lacks_is_not_offered(open_page: Open) -> None:
    opened = open_page(recurrent().document)
    page = opened.page
    assert page.get_by_label("Head", exact=True).count() == 0
    assert page.locator("#heads, #beam, #nbest").count() == 0
    assert "null" not in page.locator("main").inner_text()
    assert page.locator("#flow .badge").inner_text().endswith("exact")


def test_everything_can_be_reached_by_keyboard(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document)
    page = opened.page
    reached: list[str] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(FOCUSED))
        if "tile" in reached[-1]:
            break
    tags = " ".join(reached)
    for part in ("word", "heatmap", "tile", "hypothesis", "SELECT", "INPUT"):
        assert part in tags
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    opened.settle()
    assert (
        page.locator('.tile[aria-pressed="true"]')
        .get_attribute("aria-label")
        .startswith("encoder.0.self head 1")
    )


def test_the_cursor_moves_through_the_matrix_by_arrow_keys(open_page: Open) -> None:
    made = translation()
    opened = open_page(made.document)
    _, source, weights = mean_words(made)
    opened.page.locator("canvas.heatmap").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        opened.page.keyboard.press(key)
        opened.settle()
    text = opened.readout()
    found = re.search(r"here ‘(.+)’ (\.\d+)", text)
    assert found is not None
    row = 1
    assert float(found[2]) == pytest.approx(weights[row, source.index(found[1])], abs=0.0006)


def test_help_opens_and_closes(open_page: Open) -> None:
    opened = open_page(translation().document)
    opened.page.keyboard.press("?")
    assert opened.page.locator("dialog.help").is_visible()
    opened.page.keyboard.press("Escape")
    assert not opened.page.locator("dialog.help").is_visible()


def test_a_reload_brings_back_what_was_chosen(open_page: Open) -> None:
    opened = open_page(translation(layers=2).document)
    page = opened.page
    page.get_by_label("Layer").select_option("decoder.0.cross")
    page.get_by_label("Head", exact=True).select_option("1")
    page.locator("#flow").get_by_text("pieces").click()
    page.locator("h1").click()
    page.keyboard.press("ArrowLeft")
    opened.settle()
    before = opened.readout()
    page.reload()
    page.wait_for_selector("html[data-ready]")
    opened.settle()
    assert opened.readout() == before
    assert page.get_by_label("Head", exact=True).input_value() == "1"
    assert page.locator("#flow").get_by_label("pieces").is_checked()
