"""Scores of a CLIP: retrieval on a split, and classes that nobody has learnt."""

from pathlib import Path

import pytest

from saccade.errors import ConfigError, DataError
from saccade.tasks.classification import data as classification
from saccade.tasks.classification.data import read_split
from saccade.tasks.matching.evaluate import (
    SHAPES,
    check_template,
    evaluate_classes,
    evaluate_matching,
    spelt,
)
from saccade.tasks.matching.tool import MatchingTool
from tests.data.images_made import in_folder, picture, rows
from tests.tasks.joint.made import VALID, user_captions
from tests.tasks.matching.made import tool


@pytest.fixture(scope="module")
def clip() -> MatchingTool:
    return tool()


def test_retrieval_is_told_both_ways_and_how_many_captions_are_shared(
    clip: MatchingTool, tmp_path: Path
) -> None:
    found = evaluate_matching(clip, split="test", settings=clip.settings)
    assert (found["split"], found["images"]) == ("test", VALID)
    for way in ("image", "sentence"):
        strict, lenient = found[f"{way}_recall"], found[f"{way}_recall_or_same"]
        assert list(strict) == ["R@1", "R@5", "R@10"]
        assert all(strict[k] <= lenient[k] for k in strict)
    data = user_captions(tmp_path / "mine", 6)  # of which 0 and 5 have a caption in common
    own = tool(data=str(data)).settings
    found = evaluate_matching(clip, split=None, settings=own)
    assert (found["images"], found["sentences"]) == (6, 12)
    assert found["shared"] == 2 + 6


def test_classes_of_shapes_are_kinds_of_single_objects(
    clip: MatchingTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classification, "HELD_BACK", 20)
    settings = clip.class_settings()
    found = evaluate_classes(clip, split="test", settings=settings, template=SHAPES)
    assert (found["images"], found["classes"], found["chance"]) == (20, 8, 1 / 8)
    assert found["unknown"] == []
    assert 0 <= found["top1"] <= found["top5"] <= 1
    monkeypatch.setattr("saccade.tasks.matching.evaluate.read_split", seen := Reads())
    evaluate_classes(clip, split="test", settings=settings, template=SHAPES)
    assert {len(scene.objects) for scene in seen.scenes} == {1}


class Reads:
    """Reads a split, and keeps its scenes."""

    def __call__(self, *given: object) -> object:
        read = read_split(*given)  # type: ignore[arg-type]
        self.scenes = read.scenes
        return read


def test_a_template_makes_a_text_of_each_class(clip: MatchingTool, tmp_path: Path) -> None:
    files = {
        f"test/{name}/{n}.png": picture(n) for name in ("red_star", "zeppelin") for n in (1, 2)
    }
    data = in_folder(tmp_path / "classes", files)
    settings = clip.class_settings(str(data))
    found = evaluate_classes(clip, split="test", settings=settings, template="a {}")
    assert (found["images"], found["classes"], found["template"]) == (4, 2, "a {}")
    assert found["unknown"] == ["zeppelin"]
    assert spelt("a {} or a {}", "red_star") == "a red star or a red star"


def test_what_gives_no_classes_is_refused(clip: MatchingTool, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"template='a dog' has no \{\} where the name of a"):
        check_template("a dog")
    said = [{"image": f"{n}.png", "label": ["a", "b"]} for n in (1, 2)]
    files = {**{f"{n}.png": picture(n) for n in (1, 2)}, "test.jsonl": rows(*said)}
    settings = clip.class_settings(str(in_folder(tmp_path / "several", files)))
    with pytest.raises(DataError, match="some images have several labels or none, and texts are"):
        evaluate_classes(clip, split="test", settings=settings, template="a {}")
