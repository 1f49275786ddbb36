"""A detector's scores for people: tables whose numbers are those of the JSON, and two pictures."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from saccade.app.cli.scores.detection import (
    draw_box_confusion,
    draw_precision_recall,
    print_detection_scores,
)
from saccade.errors import ConfigError
from saccade.metrics.box_matching import best_threshold, box_confusion
from saccade.metrics.detection import detection_scores
from tests.metrics.boxes import CLASSES, found_of, objects_of, random_scene


def found_in(seed: int = 1, classes: tuple[str, ...] = CLASSES) -> dict[str, Any]:
    scene = random_scene(seed, images=20)
    point = best_threshold(scene.found, scene.truth, len(classes))
    counts = box_confusion(scene.found, scene.truth, len(classes), threshold=point.threshold)
    return {
        **detection_scores(*scene, classes).as_dict(),
        **point._asdict(),
        "confusion": counts.tolist(),
        "split": "test",
        "seconds": 2.0,
    }


def printed(found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    print_detection_scores(found)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_the_table_says_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    found = found_in()
    lines = printed(found, capsys)
    assert lines[0] == (
        f"test: {found['objects']} objects of 3 classes in 20 images, 2.0 s (10 images/s)"
    )
    assert f"AP (IoU 0.50 to 0.95) {found['ap']:.3f}" in lines
    assert f"AP50 (IoU 0.50) {found['ap50']:.3f}" in lines
    assert f"AR, a hundred boxes {found['ar100']:.3f}" in lines
    assert f"F1 at a confidence of {found['threshold']:.2f} {found['f1']:.3f}" in lines
    assert "class AP AP50 objects" in lines
    dog = found["by_class"]["dog"]
    assert f"dog {dog['ap']:.3f} {dog['ap50']:.3f} {dog['objects']}" in lines


def test_what_there_is_none_of_is_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    found = found_in()
    found["ap_small"] = None
    found["by_class"]["owl"] = {"ap": None, "ap50": None, "objects": 0}
    lines = printed(found, capsys)
    assert "AP, small (to 32² pixels) –" in lines
    assert "owl – – 0" in lines


def test_mistakes_are_told_in_words_most_frequent_first(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = found_in()
    found["confusion"] = [[9, 3, 0, 1], [0, 9, 0, 0], [0, 0, 9, 0], [0, 0, 5, 0]]
    lines = printed(found, capsys)
    at = lines.index("most often boxes")
    assert lines[at + 1 :] == ["owl where nothing is 5", "cat taken for dog 3", "cat not found 1"]


def test_without_mistakes_and_without_a_threshold_nothing_is_said_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = found_in()
    found["confusion"] = [[int(row == column < 3) for column in range(4)] for row in range(4)]
    del found["threshold"], found["f1"]
    lines = printed(found, capsys)
    assert not [line for line in lines if "most often" in line or "F1" in line]


def test_of_many_classes_the_worst_that_have_objects_are_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = found_in()
    figures = [{"ap": n / 100, "ap50": n / 50, "objects": 1} for n in range(29, 0, -1)]
    found["by_class"] = {f"kind-{one['ap']:.2f}": one for one in figures}
    found["by_class"]["absent"] = {"ap": None, "ap50": None, "objects": 0}
    del found["confusion"]
    lines = printed(found, capsys)
    assert "the 20 of lowest AP AP AP50 objects" in lines
    kinds = [line.split()[0] for line in lines if line.startswith("kind")]
    assert kinds == [f"kind-{n / 100:.2f}" for n in range(1, 21)]
    assert not [line for line in lines if line.startswith("absent")]


def svg_texts(path: Path) -> list[str]:
    return [one.text for one in ElementTree.parse(path).iter() if one.text]


def test_curves_are_named_with_their_average_precision(tmp_path: Path) -> None:
    found = found_in()
    texts = svg_texts(draw_precision_recall(tmp_path / "pr.svg", found, "a run"))
    for name, one in found["by_class"].items():
        assert f"{name} {one['ap50']:.2f}" in texts
    assert {f"all classes {found['ap50']:.2f}", f"all classes {found['ap75']:.2f}"} <= set(texts)
    assert {"a run", "IoU 0.50", "IoU 0.75", "recall", "precision"} <= set(texts)


def test_of_more_classes_than_fit_the_best_and_the_worst_are_named(tmp_path: Path) -> None:
    found = found_in()
    by_class = {f"kind-{n}": [n / 40] * 101 for n in range(40)}
    at = {"mean": [0.5] * 101, "by_class": by_class}
    found["precision_recall"] = {"recall": [n / 100 for n in range(101)], "0.50": at}
    texts = svg_texts(draw_precision_recall(tmp_path / "pr.svg", found, ""))
    named = {int(found[1]) for text in texts if (found := re.match(r"kind-(\d+) ", text))}
    assert len(named) == 21
    assert named == {*range(11), *range(30, 40)}
    assert "IoU 0.50; 19 classes in grey" in texts


def test_a_class_that_is_never_found_is_named_too(tmp_path: Path) -> None:
    truth = [objects_of([([0.0, 0.0, 0.5, 0.5], 0, False)])]
    scores = detection_scores([found_of([])], truth, random_scene(0).sizes[:1], ["cat"])
    for ending in ("svg", "png"):
        draw_precision_recall(tmp_path / f"pr.{ending}", scores.as_dict(), "a run")
    assert "cat 0.00" in svg_texts(tmp_path / "pr.svg")


def test_the_confusion_matrix_has_a_row_and_a_column_for_nothing(tmp_path: Path) -> None:
    found = found_in()
    texts = svg_texts(draw_box_confusion(tmp_path / "confusion.svg", found, "a run"))
    assert [texts.count(name) for name in (*CLASSES, "nothing")] == [2, 2, 2, 2]
    whole = draw_box_confusion(tmp_path / "confusion.png", found, "a run")
    assert whole.read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_drawn_is_refused_with_the_way_out(tmp_path: Path) -> None:
    found = found_in()
    with pytest.raises(ConfigError, match=r"^pr.gif: a look is saved as \.png, \.svg, not \.gif$"):
        draw_precision_recall(tmp_path / "pr.gif", found, "")
    found["by_class"] = {f"kind-{n}": None for n in range(100)}
    with pytest.raises(ConfigError, match=r"^101 classes do not fit on a picture, .* --json has"):
        draw_box_confusion(tmp_path / "confusion.png", found, "")
