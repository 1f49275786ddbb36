"""Regions of the user's images from a file or a detector, where their rows do not give them."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.data import shapes
from saccade.errors import ConfigError, DataError
from saccade.tasks.base import silent
from saccade.tasks.joint.answering import AnsweringSettings, read_questions
from saccade.tasks.joint.boxes import RegionPlaces
from saccade.tasks.joint.captions import read_captions
from saccade.tasks.joint.data import JointSettings, Sighted
from saccade.tasks.joint.evaluate import evaluate_answers, evaluate_pretraining
from saccade.tasks.joint.pretraining import JointPretrainingSettings
from saccade.tasks.joint.tool import JointTool
from tests.data.images_made import in_folder, in_zip, picture, rows
from tests.marks import one_fast
from tests.tasks import total_loss
from tests.tasks.joint.made import (
    TASKS,
    TINY,
    KnownRuns,
    file_of_boxes,
    model_for,
    prepared,
    user_captions,
    user_choices,
    user_phrases,
    user_questions,
)

CPU = torch.device("cpu")
WRITE: dict[str, Callable[[Path], Path]] = {
    "answering": partial(user_questions, boxes=False),
    "referring": partial(user_phrases, boxes=False),
    "choosing": partial(user_choices, boxes=False),
    "fitting": user_captions,
    "pretraining": user_captions,
}


@pytest.fixture
def runs(tmp_path: Path) -> KnownRuns:
    return KnownRuns(tmp_path / "runs" / "detr")


def located(settings: JointSettings, runs: KnownRuns | None = None) -> Sighted:
    """All images of data without splits."""
    read = read_questions if isinstance(settings, AnsweringSettings) else read_captions
    found: Any = read(settings, None, silent)  # type: ignore[arg-type]
    opened = KnownRuns.open if runs is None else runs.open
    return RegionPlaces(settings, opened)(found.sighted, silent)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", one_fast(TASKS))
@pytest.mark.parametrize("who", one_fast(["boxes", "detector"]))
def test_every_kind_learns_from_them(kind: str, who: str, tmp_path: Path, runs: KnownRuns) -> None:
    root = WRITE[kind](tmp_path / "data")
    says = {"boxes": str(file_of_boxes(root, labels=True)), "detector": str(runs.folder)}
    given: dict[str, Any] = {who: says[who]}
    task = prepared(kind, data=str(root), image=32, open_run=runs.open, **given)
    assert runs.opened == (who == "detector")  # for both splits
    model = model_for(task)
    if kind == "pretraining":
        names = ("cat", "dog") if who == "boxes" else shapes.KINDS
        assert (task.names, model.config.region_classes) == (names, len(names))
    for position in range(3):
        losses = task.losses(model, task.batch(position).filled())
        assert all(loss.isfinite() for loss in losses.values())
    total_loss(task, model, task.batch(0)).backward()
    assert all(map(math.isfinite, task.validate(model, CPU).values()))


def test_a_file_says_what_rows_say(tmp_path: Path) -> None:
    given = user_questions(tmp_path / "a", boxes=True)
    bare = user_questions(tmp_path / "b", boxes=False)
    own = located(AnsweringSettings(data=str(given), image=32, fit="pad"))
    path = file_of_boxes(bare)
    told = located(AnsweringSettings(data=str(bare), image=32, fit="pad", boxes=str(path)))
    assert torch.equal(own.boxes, told.boxes)
    assert torch.equal(own.counts, told.counts)
    assert (told.names, told.notes) == ((), ())
    assert told.fingerprint() == own.fingerprint()


def test_what_rows_say_wins(tmp_path: Path, runs: KnownRuns) -> None:
    given = user_questions(tmp_path / "a", boxes=True)
    lone = rows({"image": "lone.png", "question": "what is it?", "answer": "cat"})
    (given / "lone.png").write_bytes(picture(99, side=40))
    (given / "train.jsonl").write_bytes((given / "train.jsonl").read_bytes() + lone)
    own = located(AnsweringSettings(data=str(given), image=32))
    settings = AnsweringSettings(data=str(given), image=32, detector=str(runs.folder))
    found = located(settings, runs)
    assert (int(own.counts[24]), int(found.counts[24]) > 0) == (0, True)
    assert torch.equal(found.counts[:24], own.counts[:24])
    for image in range(24):
        count = int(own.counts[image])
        assert torch.equal(found.boxes[image, :count], own.boxes[image, :count])
    classes = found.classes(torch.arange(25))
    assert not classes[:24].any()  # nobody has named them
    count = int(found.counts[24])
    torch.testing.assert_close(classes[24, 1 : 1 + count].sum(dim=1), torch.ones(count))
    assert not classes[24, 0].any()
    assert not classes[24, 1 + count :].any()
    assert runs.opened == 1
    located(AnsweringSettings(data=str(user_questions(tmp_path / "b")), detector="none"), runs)
    assert runs.opened == 1  # nobody needs to ask


def test_each_box_with_a_label_is_of_one_class(tmp_path: Path) -> None:
    root = user_captions(tmp_path)
    path = file_of_boxes(root, labels=True)
    found = located(JointPretrainingSettings(data=str(root), image=32, boxes=str(path)))
    assert found.names == ("cat", "dog")
    classes = found.classes(torch.tensor([0, 2]))
    assert classes.tolist() == [
        [[0, 0], [1, 0], [0, 0], [0, 0]],
        [[0, 0], [1, 0], [0, 1], [0, 0]],  # the third has no label
    ]
    assert found.labels(2) == ("cat", "dog", "")


def test_images_are_known_by_name_in_archives_too(tmp_path: Path) -> None:
    files = {f"all/{n}.png": picture(n, side=40) for n in range(3)}
    said = [{"file_name": name.removeprefix("all/"), "captions": ["a dog"]} for name in files]
    archive = in_zip(tmp_path / "x.zip", {**files, "all/metadata.jsonl": rows(*said)})
    path = in_folder(
        tmp_path, {"b.json": json.dumps([{"image_id": 1, "bbox": [4, 8, 10, 10]}]).encode()}
    )
    settings = JointPretrainingSettings(data=str(archive), image=40, boxes=str(path / "b.json"))
    found = located(settings)
    assert found.counts.tolist() == [0, 1, 0]
    torch.testing.assert_close(found.boxes[1, 0], torch.tensor([4, 8, 14, 18]) / 40)
    assert found.notes == ("b.json has no boxes of 2 of 3 images: each is seen as a whole",)


def test_images_of_which_nothing_is_known_stay_and_are_counted(
    tmp_path: Path, runs: KnownRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = user_captions(tmp_path / "data")
    path = file_of_boxes(root, 15)
    task = prepared("pretraining", data=str(root), image=32, boxes=str(path))
    assert sum(len(data.sighted) for data in (task._train, task._valid)) == 24
    told = [line for line in task.report if "seen as a whole" in line]
    assert told == [
        "train: boxes.jsonl has no boxes of 8 of 22 images: each is seen as a whole",
        "valid: boxes.jsonl has no boxes of 1 of 2 images: each is seen as a whole",
    ]
    assert total_loss(task, model_for(task), task.batch(0)).isfinite()
    settings = JointPretrainingSettings(data=str(root), image=32, detector=str(runs.folder))
    sure = located(settings, runs).found
    assert sure is not None
    best = sorted(float(chance) for chance in sure.rows.all("chances").amax(dim=1))
    monkeypatch.setattr("saccade.tasks.joint.detected.LEAST", best[-3])
    few = located(settings, runs)
    (line,) = few.notes
    assert re.fullmatch(rf"{runs.folder} finds nothing in \d+ of 24 images: each is seen .*", line)
    assert int((few.counts == 0).sum()) == int(line.split(" in ")[1].split()[0])


def test_where_nothing_is_found_at_all_is_told_in_a_line(tmp_path: Path, runs: KnownRuns) -> None:
    root = user_captions(tmp_path / "data")
    with torch.no_grad():
        runs.network.get_parameter("to_scores.weight").zero_()
    with pytest.raises(DataError) as raised:
        prepared(
            "pretraining", data=str(root), image=32, open_run=runs.open, detector=str(runs.folder)
        )
    said = str(raised.value)
    assert said.startswith(f"{runs.folder} finds nothing in any of 22 of 24 images")
    assert said.endswith("name another detector, or pass --model.regions cells")
    path = in_folder(tmp_path, {"b.jsonl": rows({"image": "x.png", "boxes": [[1, 1, 9, 9]]})})
    with pytest.raises(DataError) as raised:
        prepared("pretraining", data=str(root), image=32, boxes=str(path / "b.jsonl"))
    said = str(raised.value)
    assert said.startswith(f"{path}/b.jsonl has boxes of none of 22 of 24 images")
    assert said.endswith("; name a file that has, or a detector with --detector RUN")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("box", "reason"),
    [
        ([4, 8, 60, 36], "outside the image: [4, 8, 60, 36] reaches out of 40 × 40; cut it at"),
        ([0.1, 0.1, 0.9, 0.9], "shares for pixels: [0.1, 0.1, 0.9, 0.9] lies within 1 pixel"),
    ],
)
def test_a_box_that_cannot_be_is_named_with_its_line_or_left_out_and_counted(
    box: list[float], reason: str, tmp_path: Path
) -> None:
    root = user_captions(tmp_path)
    path = file_of_boxes(root)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = rows({"image": "02.png", "boxes": [box, [4, 8, 20, 36]]})
    path.write_bytes(b"".join(lines))
    settings = JointPretrainingSettings(data=str(root), image=32, boxes=str(path))
    with pytest.raises(DataError) as raised:
        located(settings)
    assert f"boxes.jsonl:3: {reason}" in str(raised.value)
    assert "--skip-bad 1" in str(raised.value)
    found = located(replace(settings, skip_bad=1))
    assert int(found.counts[2]) == 1
    why = reason.partition(":")[0]
    assert found.notes == (f"boxes.jsonl: 1 bad region left out (1 {why})",)


WRONG: dict[str, tuple[dict[str, Any], Any, str]] = {
    "both": (
        {"data": "x", "boxes": "b.jsonl", "detector": "runs/detr"},
        TINY,
        "boxes=b.jsonl and detector=runs/detr both say where regions are; leave one out",
    ),
    "cells": (
        {"data": "x", "detector": "runs/detr"},
        replace(TINY, regions="cells"),
        "detector=runs/detr says where boxes are, and regions=cells looks at none; add "
        "--model.regions boxes, or leave --detector out",
    ),
    "shapes": (
        {"boxes": "b.jsonl"},
        TINY,
        "boxes=b.jsonl is of data of your own; give --data too, or leave --boxes out",
    ),
}


@pytest.mark.parametrize("which", WRONG)
def test_settings_that_do_not_go_together_are_refused(which: str) -> None:
    given, model, message = WRONG[which]
    with pytest.raises(ConfigError) as raised:
        AnsweringSettings(**given).check(model)
    assert str(raised.value) == message


def test_what_is_scored_has_its_regions_from_there_too(tmp_path: Path, runs: KnownRuns) -> None:
    root = user_questions(tmp_path / "data", boxes=False)
    says: dict[str, Any] = {"detector": str(runs.folder), "open_run": runs.open}
    task = prepared("answering", data=str(root), image=32, **says)
    tool = JointTool(model_for(task), task.vocabulary, task.settings, runs.open)
    found = evaluate_answers(tool, task.answers, split="valid", settings=task.settings)
    right = found["accuracy"] * found["questions"]
    assert right == pytest.approx(task.validate(tool.model, CPU)["accuracy"] * found["questions"])
    lost = JointTool(tool.model, task.vocabulary, task.settings)
    with pytest.raises(ConfigError, match=r"which must stay where it was .*detr cannot be opened"):
        evaluate_answers(lost, task.answers, split="valid", settings=task.settings)
    captions = user_captions(tmp_path / "captions")
    path = str(file_of_boxes(captions))
    task = prepared("pretraining", data=str(captions), image=32, boxes=path)
    tool = JointTool(model_for(task), task.vocabulary, task.settings)
    found = evaluate_pretraining(tool, split=None, settings=task.settings)
    assert found["images"] == 24


def test_the_fingerprint_is_of_who_found_them_not_of_the_last_digits(
    tmp_path: Path, runs: KnownRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = user_captions(tmp_path / "data")
    settings = JointPretrainingSettings(data=str(root), image=32, detector=str(runs.folder))
    first = located(settings, runs)
    moved = replace(first, boxes=first.boxes + 1e-7)
    assert moved.fingerprint() == first.fingerprint()
    with torch.no_grad():
        next(runs.network.parameters()).mul_(1.01)
    assert located(settings, runs).fingerprint() != first.fingerprint()
