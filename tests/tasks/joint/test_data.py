"""The user's questions, phrases and captions: regions where data give them, and what is refused."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.data.images.regions import fitted_boxes
from saccade.errors import ConfigError, DataError
from saccade.models import PRESETS
from saccade.tasks.base import LengthBound
from saccade.tasks.joint.answering import AnsweringSettings, read_questions
from saccade.tasks.joint.asked import square_boxes
from saccade.tasks.joint.batch import SightedTexts, seen_regions
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.evaluate import (
    evaluate_answers,
    evaluate_choices,
    evaluate_fitting,
    evaluate_referring,
)
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.pretraining import JointPretrainingSettings
from saccade.tasks.joint.tool import JointTool
from saccade.tasks.kept_texts import KeptTexts
from tests.data.images_made import picture, rows
from tests.marks import one_fast
from tests.tasks import total_loss
from tests.tasks.joint.made import (
    TASKS,
    TINY,
    model_for,
    prepared,
    user_captions,
    user_choices,
    user_phrases,
    user_questions,
)

CPU = torch.device("cpu")
CELLS = replace(TINY, regions="cells")
WRITE = {
    "answering": user_questions,
    "referring": user_phrases,
    "fitting": user_captions,
    "choosing": user_choices,
    "pretraining": user_captions,
}


@pytest.mark.parametrize("kind", TASKS)
def test_data_without_splits_hold_every_so_manieth_image_out(kind: str, tmp_path: Path) -> None:
    task = prepared(kind, data=str(WRITE[kind](tmp_path, 45)), image=32)
    sizes = len(task._train.sighted), len(task._valid.sighted)
    assert sum(sizes) == 45
    assert sizes[1] in (2, 3)
    pixels = [
        image.numpy().tobytes()
        for data in (task._train, task._valid)
        for image in data.sighted.images[torch.arange(len(data.sighted))]
    ]
    assert len(set(pixels)) == 45  # none is in both
    assert any("45" in line for line in task.report)


@pytest.mark.parametrize("kind", one_fast(TASKS))
@pytest.mark.parametrize("regions", one_fast(["cells", "boxes"]))
def test_one_learns_from_them(kind: str, regions: Any, tmp_path: Path) -> None:
    task = prepared(kind, data=str(WRITE[kind](tmp_path)), image=32)
    if regions == "boxes" and WRITE[kind] is user_captions:
        with pytest.raises(DataError, match="they give no boxes"):
            task.fit(TINY)
        return
    model = model_for(task, replace(TINY, regions=regions))
    loss = total_loss(task, model, task.batch(0))
    loss.backward()
    assert loss.isfinite()
    assert loss.item() > 0
    figures = task.validate(model, CPU)
    assert task.deciding.figure in figures
    assert all(map(math.isfinite, figures.values()))


def test_boxes_lie_on_the_square_where_they_lay_on_the_image(tmp_path: Path) -> None:
    task = prepared("answering", data=str(user_questions(tmp_path)), image=32)
    sighted = task._train.sighted
    assert sighted.counts[:3].tolist() == [1, 2, 3]
    expected = torch.tensor([4, 8, 20, 36]) / 40
    torch.testing.assert_close(sighted.boxes[0, 0], expected)
    regions = seen_regions(model_for(task), task._train.glimpse(torch.tensor([2, 0])))
    assert regions.starts.tolist() == [0, 4, 6]
    torch.testing.assert_close(regions.boxes[1], expected)


@pytest.mark.parametrize("fit", ["crop", "squeeze", "pad"])
def test_boxes_of_images_that_are_not_square(fit: Any) -> None:
    """Checked at a point: where a corner lies on the image that was made square."""
    box, (height, width) = [0.25, 0.1, 0.5, 0.9], (100, 200)
    found = square_boxes([box], (height, width), fit)
    side = {"crop": 100, "pad": 200}.get(fit)
    if side is None:
        expected = box
    else:
        left, top = (width - side) / 2, (height - side) / 2
        pixels = [box[0] * width - left, box[1] * height - top]
        pixels += [box[2] * width - left, box[3] * height - top]
        expected = [min(1.0, max(0.0, pixel / side)) for pixel in pixels]
    torch.testing.assert_close(found[0], torch.tensor(expected))
    assert square_boxes((), (height, width), fit).shape == (0, 4)
    assert fitted_boxes(torch.zeros(0, 4), height, width, fit).shape == (0, 4)


def test_captions_without_boxes_are_learnt_from_cells_and_the_message_says_so(
    tmp_path: Path,
) -> None:
    task = prepared("pretraining", data=str(user_captions(tmp_path)), image=32)
    with pytest.raises(DataError) as raised:
        task.fit(TINY)
    said = str(raised.value)
    assert "they give no boxes, and regions=boxes looks at nothing else" in said
    assert "give each image its boxes" in said
    assert "--model.regions cells" in said
    assert "\n" not in said
    fitted = task.fit(CELLS)
    assert (fitted.regions, fitted.region_classes) == ("cells", 0)


def test_questions_without_any_boxes_are_refused_where_boxes_are_wanted(tmp_path: Path) -> None:
    data = user_questions(tmp_path, boxes=False)
    task = prepared("answering", data=str(data), image=32)
    with pytest.raises(DataError, match=r"they give no boxes.*pass --model\.regions cells"):
        task.fit(TINY)
    assert task.fit(CELLS).labels == 2


@pytest.mark.slow
def test_so_is_a_model_of_boxes_that_is_scored_on_data_without(tmp_path: Path) -> None:
    task = prepared("answering", data=str(user_questions(tmp_path / "a")), image=32)
    settings = AnsweringSettings(data=str(user_questions(tmp_path / "b", boxes=False)), image=32)
    tool = JointTool(model_for(task), task.vocabulary, settings)
    with pytest.raises(DataError, match="they give no boxes"):
        evaluate_answers(tool, task.answers, split="train", settings=settings)
    fits = prepared("fitting")
    tool = JointTool(model_for(fits), fits.vocabulary, fits.settings)
    captions = FittingSettings(data=str(user_captions(tmp_path / "c")), image=32)
    with pytest.raises(DataError, match="they give no boxes"):
        evaluate_fitting(tool, split=None, settings=captions)


def test_an_image_without_boxes_among_others_is_seen_as_a_whole(tmp_path: Path) -> None:
    root = user_questions(tmp_path, 24, boxes=True)
    more = rows({"image": "lone.png", "question": "what is it?", "answer": "cat"})
    (root / "lone.png").write_bytes(picture(99, side=40))
    (root / "train.jsonl").write_bytes((root / "train.jsonl").read_bytes() + more)
    task = prepared("answering", data=str(root), image=32)
    counts = task._train.sighted.counts
    assert int((counts == 0).sum()) == 1
    model = model_for(task)
    lone = counts.argmin()[None]
    regions = seen_regions(model, task._train.glimpse(lone))
    assert regions.boxes.tolist() == [[0, 0, 1, 1]]


@pytest.mark.parametrize("kind", ["answering", "referring", "choosing"])
def test_the_users_test_split_is_scored(kind: str, tmp_path: Path) -> None:
    root = WRITE[kind](tmp_path, 24)
    lines = (root / "train.jsonl").read_bytes().splitlines(keepends=True)
    each = len(lines) // 24
    for name, some in (
        ("train", lines[: 12 * each]),
        ("valid", lines[12 * each : 18 * each]),
        ("test", lines[18 * each :]),
    ):
        (root / f"{name}.jsonl").write_bytes(b"".join(some))
    task = prepared(kind, data=str(root), image=32)
    assert (len(task._train.sighted), len(task._valid.sighted)) == (12, 6)
    tool = JointTool(model_for(task), task.vocabulary, task.settings)
    if kind == "answering":
        found = evaluate_answers(tool, task.answers, split="test", settings=task.settings)
        assert (found["questions"], found["by_kind"]) == (6, {})
    elif kind == "choosing":
        found = evaluate_choices(tool, split="test", settings=task.settings)
        assert (found["choices"], found["sentences"]) == (12, 6 * 2 + 3 * 3 + 3 * 4)
        assert found["chance"] == pytest.approx((6 / 2 + 3 / 3 + 3 / 4) / 12)
    else:
        found = evaluate_referring(tool, split="test", settings=task.settings)
        assert (found["phrases"], found["chance"]) == (6, 0.5)
    assert 0 <= found["accuracy"] <= 1


GOOD = {"image": "00.png", "question": "what is it?", "answer": "cat"}
CHOICE = {"image": "00.png", "sentences": ["a dog", "a cat"], "right": 0}
BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "empty question": ("answering", {**GOOD, "question": " "}, "empty: 'question' has nothing"),
    "no answers": ("answering", {**GOOD, "answer": None}, "no answers: neither 'answers' nor"),
    "missing image": ("answering", {**GOOD, "image": "lost.png"}, "missing image"),
    "no box": ("referring", {"image": "00.png", "phrase": "it"}, "box"),
    "wrong box": (
        "referring",
        {"image": "00.png", "phrase": "it", "box": [30, 8, 20, 36]},
        "swapped corners",
    ),
    "empty sentence": ("choosing", {**CHOICE, "sentences": ["a dog", " "]}, "empty: 'sentences'"),
    "one sentence": ("choosing", {**CHOICE, "sentences": ["a dog"]}, "fewer than two sentences"),
    "no such sentence": ("choosing", {**CHOICE, "right": 2}, "no such sentence: 'right' is 2"),
    "no right one": ("choosing", {**CHOICE, "right": None}, "'right'"),
    "sentences about a lost image": ("choosing", {**CHOICE, "image": "lost.png"}, "missing image"),
    "box outside the image": (
        "choosing",
        {**CHOICE, "boxes": [[4, 8, 20, 36], [30, 8, 90, 36]]},
        "box 2",
    ),
    "missing captioned image": (
        "fitting",
        {"file_name": "lost.png", "captions": ["a dog"]},
        "missing image",
    ),
    "no captions": ("fitting", {"file_name": "00.png", "captions": []}, "caption"),
    "empty caption": ("pretraining", {"file_name": "00.png", "captions": [" "]}, "caption"),
}


@pytest.mark.parametrize("which", one_fast(BAD))
def test_a_bad_row_is_named_with_its_line_or_skipped_and_counted(
    which: str, tmp_path: Path
) -> None:
    kind, row, message = BAD[which]
    root = WRITE[kind](tmp_path)
    path = root / ("metadata.jsonl" if WRITE[kind] is user_captions else "train.jsonl")
    path.write_bytes(path.read_bytes() + rows(row))
    with pytest.raises(DataError) as raised:
        prepared(kind, data=str(root), image=32)
    said = str(raised.value)
    assert f"{path.name}:{49 if kind == 'choosing' else 25}: " in said
    assert message in said
    assert "--skip-bad 1" in said
    task = prepared(kind, data=str(root), image=32, skip_bad=1)
    assert any("1" in line and "skip" in line for line in task.report)
    model = model_for(task, CELLS)
    assert total_loss(task, model, task.batch(0)).isfinite()


def test_images_of_which_nothing_is_said_are_no_trouble(tmp_path: Path) -> None:
    root = user_captions(tmp_path)
    (root / "unsaid.png").write_bytes(picture(77, side=40))
    task = prepared("fitting", data=str(root), image=32)
    assert len(task._train.sighted) + len(task._valid.sighted) == 24


def test_too_few_images_to_hold_some_out(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="too few images to hold some out; add a valid split"):
        prepared("answering", data=str(user_questions(tmp_path, 5)), image=32)


def test_texts_without_a_word_are_left_out_and_counted() -> None:
    task = prepared("fitting")
    texts: list[tuple[str, ...]] = [("a red circle", ""), *([("a blue square",)] * 22)]
    found, told, kept = SightedTexts.of(
        task._train.sighted,
        KeptTexts(texts),
        task.vocabulary,
        LengthBound(9, "--longest"),
        "captions",
    )
    assert told == ["left out: 1 captions without a word"]
    assert kept.tolist() == [0, *range(2, 24)]
    assert len(found.texts) == 23
    with pytest.raises(DataError, match="no captions has a word to learn from"):
        SightedTexts.of(
            task._train.sighted,
            KeptTexts([("",)] * 23),
            task.vocabulary,
            LengthBound(9, ""),
            "captions",
        )


def test_texts_that_are_all_too_long_are_refused(tmp_path: Path) -> None:
    data = str(user_questions(tmp_path))
    with pytest.raises(
        DataError, match=r"none of the training questions has under 3 tokens; raise"
    ):
        prepared("answering", data=data, image=32, longest=3)


WRONG: dict[str, tuple[type[Any], dict[str, Any], str]] = {
    "image": (AnsweringSettings, {"image": 0}, "image=0 must be at least 1"),
    "texts": (FittingSettings, {"texts": 0}, "texts=0 must be at least 1"),
    "masked": (
        JointPretrainingSettings,
        {"masked": 1.0},
        "masked=1.0 must be above 0 and below 1, as 0.15",
    ),
    "answers": (AnsweringSettings, {"answers": 0}, "answers=0 must be at least 1"),
    "shortlist": (FittingSettings, {"shortlist": -1}, "shortlist=-1 must be 0 or more"),
    "validated": (FittingSettings, {"validated": 0}, "validated=0 must be at least 1"),
}


@pytest.mark.parametrize("which", WRONG)
def test_settings_that_cannot_be_are_refused(which: str) -> None:
    kind, changes, message = WRONG[which]
    with pytest.raises(ConfigError, match=re.escape(message)):
        kind(**changes)


def test_other_models_and_unknown_splits_are_refused() -> None:
    settings: JointSettings = AnsweringSettings()
    settings.check(TINY)
    with pytest.raises(ConfigError) as raised:
        settings.check(PRESETS["bert-nano"])
    assert str(raised.value) == (
        "BertConfig does not read images and texts together; take one that does: vilbert-nano"
    )
    with pytest.raises(DataError, match="shapes has no split 'prod'; there are: train, valid"):
        read_questions(AnsweringSettings(), "prod", lambda done, total: None)
    assert AnsweringSettings(data="x").announcement == "reading x"
    assert "20,000 scenes" in settings.announcement
