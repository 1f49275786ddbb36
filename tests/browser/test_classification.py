"""The view of classes, driven in a browser and compared with what it was made of."""

from typing import Any

import numpy as np
import pytest

from tests.browser.classified import GRIDS, NAMES, classes, truth_of
from tests.browser.conftest import Open, Opened, table
from tests.browser.documents import Array, Made
from tests.browser.test_page import EVIL, hurt

pytestmark = pytest.mark.slow
PIXELS = "(canvas) => canvas.toDataURL()"
RUNS = ("vit", "swin")


def stage(opened: Opened) -> Any:
    return opened.page.locator(".stage-canvas").first


def shown(opened: Opened) -> list[int]:
    """The numbers of the images that are listed, in order."""
    return [
        int(item) for item in opened.page.locator(".class-thumb").evaluate_all(
            "all => all.map(one => one.dataset.item)"
        )
    ]  # fmt: skip


def choose(opened: Opened, label: str, option: str) -> None:
    opened.page.get_by_label(label, exact=True).select_option(option)
    opened.settle()


def wrong(made: Made, item: int, look: int = 0) -> bool:
    of = made.document["looks"][look * len(made.document["images"]) + item]["classes"]
    return of["said"] != of["truth"]


def square(weights: Array, columns: str) -> Array:
    return weights.reshape(GRIDS[columns], GRIDS[columns]).astype(float)


def test_the_guesses_are_told_and_the_true_class_is_marked(open_page: Open) -> None:
    made = classes()
    opened = open_page(made.document)
    of = made.document["looks"][0]["classes"]
    told = opened.page.locator(".guess-name").all_inner_texts()
    assert told == [label for label, _ in of["guesses"]]
    assert "wrong: it is circle" in opened.page.locator(".word-part .token-name").inner_text()
    assert "True class: circle, not among these." in opened.page.locator(".word-part").inner_text()
    assert opened.page.locator(".word-part").inner_text().count("What ‘square’ came from") == 1
    opened = open_page(classes(3).document, state="#opened=true&item=1")
    assert opened.page.locator(".guess.true").inner_text().split("\n")[0] == truth_of(1)
    assert "right" in opened.page.locator(".word-part .token-name").inner_text()


def test_every_map_can_be_chosen_and_its_table_has_its_weights(open_page: Open) -> None:
    made = classes()
    opened = open_page(made.document)
    opened.page.keyboard.press("t")
    card = "section.card"
    fine, coarse = GRIDS

    def numbers() -> Array:
        opened.settle()
        return np.array(table(opened.page, card)[2])

    np.testing.assert_allclose(
        numbers(), square(made.weights[0, "relevance"], fine), atol=6e-4
    )  # first of all
    before = stage(opened).evaluate(PIXELS)
    choose(opened, "Map", "Grad-CAM")
    np.testing.assert_allclose(numbers(), square(made.weights[0, "Grad-CAM"], coarse), atol=6e-4)
    assert stage(opened).evaluate(PIXELS) != before
    heads = made.weights[0, "encoder.1.self"]
    choose(opened, "Map", "encoder.1.self")
    np.testing.assert_allclose(numbers(), square(heads.mean(axis=0), coarse), atol=1e-3)
    assert "Where the model looks" in opened.page.locator(".map-name").inner_text()
    opened.page.locator('.tile[data-site="encoder.1.self"][data-head="2"]').click()
    np.testing.assert_allclose(numbers(), square(heads[2], coarse), atol=6e-4)
    assert "site=encoder.1.self" in opened.address()
    assert "head=2" in opened.address()
    opened.page.keyboard.press("[")
    np.testing.assert_allclose(numbers(), square(heads[1], coarse), atol=6e-4)


def test_pointing_at_a_cell_says_its_weight_by_mouse_and_by_keys(open_page: Open) -> None:
    made = classes()
    opened = open_page(made.document)
    weights = square(made.weights[0, "relevance"], next(iter(GRIDS)))
    box = stage(opened).bounding_box()
    stage(opened).hover(position={"x": box["width"] * 2.5 / 8, "y": box["height"] * 1.5 / 8})
    opened.settle()
    text = f"{weights[1, 2]:.3f}".removeprefix("0")
    assert opened.readout() == f"relevance of ‘square’: {text} at row 2, column 3"
    stage(opened).focus()
    opened.page.keyboard.press("ArrowRight")
    assert f"{weights[1, 3]:.3f} at row 2, column 4".removeprefix("0") in opened.readout()


def test_many_images_are_sorted_by_mistakes_and_by_how_sure_they_were(open_page: Open) -> None:
    made = classes(12)
    opened = open_page(made.document)
    sure = [look["score"] for look in made.document["looks"]]
    every = range(12)
    expected = sorted(every, key=lambda i: (-sure[i] if wrong(made, i) else 1 + sure[i], i))
    assert shown(opened) == expected
    bad = sum(wrong(made, i) for i in every)
    assert opened.page.locator(".class-count").inner_text() == f"12 of 12, {bad} wrong"
    for order, sign in (("least", 1), ("most", -1), ("given", 0)):
        choose(opened, "Order", order)
        assert shown(opened) == sorted(every, key=lambda i: (sign * sure[i], i))
    marks = opened.page.locator(".class-item .verdict").all_inner_texts()
    assert marks == ["✗" if wrong(made, i) else "✓" for i in every]


def test_filters_count_and_arrow_keys_go_through_what_is_left(open_page: Open) -> None:
    made = classes(12)
    opened = open_page(made.document, state="#order=given")
    choose(opened, "Show", "wrong")
    left = [i for i in range(12) if wrong(made, i)]
    assert shown(opened) == left
    opened.page.locator(".class-item").first.click()
    opened.page.wait_for_selector(".stage-canvas")
    assert "opened=true" in opened.address()
    title = opened.page.locator("section.card h2")
    assert title.inner_text() == f"test {left[0]}"
    opened.page.keyboard.press("ArrowRight")
    opened.settle()
    assert title.inner_text() == f"test {left[1]}"
    assert opened.page.locator(".pager .number").inner_text() == f"2 / {len(left)}"
    opened.page.keyboard.press("End")
    opened.settle()
    assert title.inner_text() == f"test {left[-1]}"
    opened.page.keyboard.press("Escape")
    opened.settle()
    assert title.count() == 0
    choose(opened, "Show", "")
    choose(opened, "True class", "007")
    assert [NAMES[i % len(NAMES)] for i in shown(opened)] == ["007", "007"]
    opened.page.get_by_text("Show all").click()
    choose(opened, "Class said", "heart")
    said = [i for i in range(12) if made.document["looks"][i]["text"] == "heart"]
    assert shown(opened) == said
    again = open_page(made.document, state="#" + opened.address().partition("#")[2])
    assert shown(again) == said  # the address keeps it all
    assert shown(open_page(made.document, state="#truth=007&order=given")) == [5, 11]


def test_two_runs_on_the_same_image_and_where_they_disagree(open_page: Open) -> None:
    made = classes(6, RUNS)
    opened = open_page(made.document, state="#order=given")
    looks = made.document["looks"]
    differ = [i for i in range(6) if looks[i]["text"] != looks[i + 6]["text"]]
    assert f"they disagree on {len(differ)}" in opened.page.locator(".class-count").inner_text()
    choose(opened, "Show", "differ")
    assert shown(opened) == differ
    opened.page.locator(".class-item").first.click()
    opened.page.wait_for_selector(".halves .stage-canvas")
    assert opened.page.locator(".halves h2").all_inner_texts() == list(RUNS)
    choose(opened, "Map", "rollout")
    assert (
        opened.page.locator(".map-name").all_inner_texts()
        == ["Where the model looks: rollout\nexact"] * 2
    )
    stage(opened).hover(position={"x": 20, "y": 20})
    opened.settle()
    here = [square(made.weights[differ[0] + 6 * i, "rollout"], next(iter(GRIDS))) for i in (0, 1)]
    for run, weights in zip(RUNS, here):
        number = f"{weights[0, 0]:.3f}".removeprefix("0")
        assert f"{run}: rollout: {number} at row 1, column 1" in opened.readout()


def test_without_attention_there_is_grad_cam_and_it_is_said(open_page: Open) -> None:
    opened = open_page(classes(runs=("resnet",), layers=0).document)
    assert "This model has no attention." in opened.page.locator(".word-part").inner_text()
    assert opened.page.get_by_label("Map", exact=True).count() == 0
    assert opened.page.locator(".tile").count() == 0
    assert opened.readout().startswith("Grad-CAM of ‘square’: ")


def test_without_the_truth_nothing_is_called_right_or_wrong(open_page: Open) -> None:
    opened = open_page(classes(4, known=False, boxes=False).document)
    assert opened.page.locator(".class-count").inner_text() == "4 of 4"
    assert opened.page.locator(".verdict").count() == 0
    assert shown(opened) == [0, 1, 2, 3]
    assert opened.page.get_by_label("True class", exact=True).count() == 0


def test_a_class_that_was_asked_for_is_named(open_page: Open) -> None:
    opened = open_page(classes(target="triangle").document)
    assert "What ‘triangle’ came from" in opened.page.locator(".map-name").inner_text()
    assert "asked for" in opened.page.locator(".guess", has_text="triangle").inner_text()


@pytest.mark.parametrize("state", ["", "#opened=true&item=2"])
def test_names_of_any_length_do_not_widen_the_page(open_page: Open, state: str) -> None:
    document = classes(4, RUNS).document
    for look in document["looks"]:
        of = look["classes"]
        of["said"] = of["truth"] = ["".join(EVIL)]
        of["guesses"][0][0] = of["target"] = "".join(EVIL)
        for site in look["sites"]:
            site["name"] += "x" * 200
    for image in document["images"]:
        image["name"] = "y" * 300
    opened = open_page(document, state=state)
    for width in (1400, 800, 380):
        opened.page.set_viewport_size({"width": width, "height": 900})
        opened.settle()
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    assert hurt(opened.page) is None
