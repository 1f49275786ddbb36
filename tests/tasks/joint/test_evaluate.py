"""Scores against what one counts by hand, with models that know all, nothing, or something."""

from collections import Counter, defaultdict
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.data import shapes
from saccade.data.answers import AnswerSet
from saccade.data.shapes import ShapesSettings
from saccade.models.joint.config import RegionKind
from saccade.tasks.joint.answering import (
    AnsweringSettings,
    answer_scores,
    answers_asset,
    read_answers_asset,
    read_questions,
    targets,
)
from saccade.tasks.joint.batch import seen_regions
from saccade.tasks.joint.evaluate import evaluate_answers, evaluate_fitting, evaluate_referring
from saccade.tasks.joint.fitting import FittingSettings
from saccade.tasks.joint.referring import ReferringSettings, best_regions, read_phrases
from saccade.tasks.joint.tool import JointTool
from tests.tasks.joint.made import SMALL, TINY, VALID, model_for, prepared

CPU = torch.device("cpu")
SCENES = [shapes.scene("test", index, ShapesSettings()) for index in range(VALID)]


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def answering() -> Any:
    return prepared("answering")


@pytest.fixture(scope="module")
def asker(answering: Any) -> JointTool:
    return JointTool(model_for(answering), answering.vocabulary, AnsweringSettings(**SMALL))


def scored_by(monkeypatch: pytest.MonkeyPatch, answers: AnswerSet, told: list[str]) -> None:
    """A model that gives these answers, question by question."""
    left = iter(told)

    def scores(model: Any, batch: Any, sees: str) -> Tensor:
        given = [next(left) for _ in range(batch.texts)]
        return targets([answers.scores((one,)) for one in given], len(answers))

    monkeypatch.setattr("saccade.tasks.joint.evaluate.answer_scores", scores)


def test_who_knows_all_is_always_right_and_who_says_one_thing_as_often_as_it_is_true(
    asker: JointTool, answering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [one for scene in SCENES for one in shapes.questions(scene)]
    settings = AnsweringSettings(**SMALL)
    known = [one.answer for one in asked]
    scored_by(monkeypatch, answering.answers, known)
    found = evaluate_answers(asker, answering.answers, split="test", settings=settings)
    unknown = sum(answering.answers.number(answer) is None for answer in known)
    assert found["accuracy"] == pytest.approx(1 - unknown / len(asked))
    assert (found["questions"], found["images"]) == (len(asked), VALID)
    assert found["unknown_answers"] == unknown
    (common, _), *_ = Counter(known).most_common()
    scored_by(monkeypatch, answering.answers, [common] * len(asked))
    found = evaluate_answers(asker, answering.answers, split="test", settings=settings)
    assert found["accuracy"] == pytest.approx(known.count(common) / len(known))
    right = defaultdict[str, list[bool]](list)
    for one in asked:
        right[one.takes].append(one.answer == common)
    assert found["by_kind"] == {
        takes: pytest.approx(sum(some) / len(some)) for takes, some in sorted(right.items())
    }
    assert found["split"] == "test"


def test_validation_and_evaluation_say_the_same(answering: Any, asker: JointTool) -> None:
    settings = AnsweringSettings(**SMALL)
    figures = answering.validate(asker.model, CPU)
    found = evaluate_answers(asker, answering.answers, split="valid", settings=settings)
    assert figures["accuracy"] == pytest.approx(found["accuracy"])
    assert figures["loss"] > 0


@pytest.mark.parametrize("regions", ["boxes", "cells"])
@torch.no_grad()
def test_who_may_see_the_question_alone_sees_no_image_and_the_other_way_round(
    answering: Any, regions: RegionKind
) -> None:
    model = model_for(answering, replace(TINY, regions=regions))
    batch = answering.batch(0)
    seen = batch.seen._replace(images=255 - batch.seen.images, boxes=batch.seen.boxes / 2)
    other_image = batch._replace(seen=seen)
    text = batch.text._replace(tokens=(batch.text.tokens + 1) % len(answering.vocabulary))
    other_text = batch._replace(text=text)
    for sees, same, changes in (
        ("question", other_image, other_text),
        ("image", other_text, other_image),
    ):
        z = answer_scores(model, batch, sees)
        assert torch.equal(answer_scores(model, same, sees), z)
        assert (answer_scores(model, changes, sees) - z).abs().max() > 1e-5
    z = answer_scores(model, batch, "both")
    for changed in (other_image, other_text):
        assert (answer_scores(model, changed, "both") - z).abs().max() > 1e-5


def test_answers_are_kept_with_a_run() -> None:
    answers = AnswerSet(("yes", "no", "grün"))
    assert read_answers_asset(answers_asset(answers)) == answers
    for wrong in (b"{}", b'{"answers": [1]}', b"[]"):
        with pytest.raises(ValueError, match="answers is not there"):
            read_answers_asset(wrong)


def test_an_answer_is_as_true_as_people_say() -> None:
    answers = AnswerSet(("red", "blue"))
    given = [("red",) * 7 + ("blue",) * 3, ("green",), ("Blue!",)]
    found = targets([answers.scores(one) for one in given], 2)
    torch.testing.assert_close(found, torch.tensor([[1.0, 1.0], [0, 0], [0, 1]]))
    some = targets([answers.scores(("red",) * 9 + ("blue",))], 2)
    torch.testing.assert_close(some, torch.tensor([[1.0, 1 / 3]]))


@pytest.fixture(scope="module")
def referring() -> Any:
    return prepared("referring")


@pytest.mark.slow
def test_pointing_is_right_where_the_best_region_shares_half_of_the_true_box(
    referring: Any,
) -> None:
    model = model_for(referring)
    tool = JointTool(model, referring.vocabulary, ReferringSettings(**SMALL))
    found = evaluate_referring(tool, split="test", settings=ReferringSettings(**SMALL))
    read = read_phrases(ReferringSettings(**SMALL), "test", silent)
    right, number = list[bool](), 0
    for image, texts in enumerate(read.texts):
        boxes = read.sighted.boxes[image, : int(read.sighted.counts[image])]
        every = torch.cat([torch.tensor([[0.0, 0, 1, 1]]), boxes])
        pixels = read.sighted.images[torch.tensor([image])][0]
        for text in texts:
            one = tool.prepare(pixels.permute(1, 2, 0).numpy(), boxes)
            rows, types = tool.rows([tool.reading(text)])
            regions = seen_regions(model, tool.glimpse([one]))
            z = model.chosen(model(rows, types, regions, torch.tensor([0])))
            best = every[int(z.argmax())]
            right.append(overlap(best, read.truth[number]) >= 0.5)
            number += 1
    assert found["accuracy"] == pytest.approx(sum(right) / len(right))
    assert found["phrases"] == len(right)
    counts = [int(read.sighted.counts[i]) for i, some in enumerate(read.texts) for _ in some]
    assert found["chance"] == pytest.approx(sum(1 / n for n in counts) / len(counts))


def overlap(a: Tensor, b: Tensor) -> float:
    sides = torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])
    common = sides.clamp_min(0).prod()
    union = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common
    return float(common / union)


def test_of_equals_the_first_region_is_taken() -> None:
    z = torch.tensor([1.0, 3.0, 3.0, 0.0, 0.0, -1.0])
    pair = torch.tensor([0, 0, 0, 1, 1, 1])
    assert best_regions(z, pair, 2).tolist() == [1, 3]


def test_the_loss_of_a_phrase_counts_every_region_by_what_it_shares(referring: Any) -> None:
    batch, model = referring.batch(0), model_for(referring, TINY, torch.float64)
    with torch.no_grad():
        (loss,) = referring.losses(model, batch).values()
        regions = seen_regions(model, batch.seen)
        found = model(batch.text, batch.types, regions, batch.of)
        z = model.chosen(found)
    assert found.beside is not None
    total = 0.0
    for at, (which, pair) in enumerate(zip(found.beside.which, found.beside.pair)):
        share = overlap(regions.boxes[which], batch.asked["boxes"][pair])
        share = share if share >= 0.5 else 0.0
        p = z[at].sigmoid().item()
        total -= share * torch.tensor(p).log().item()
        total -= (1 - share) * torch.tensor(1 - p).log().item()
    assert loss.item() == pytest.approx(total, rel=1e-3)


def test_fitting_is_scored_by_both_searches() -> None:
    task = prepared("fitting")
    tool = JointTool(model_for(task), task.vocabulary, FittingSettings(**SMALL))
    found = evaluate_fitting(tool, split="test", settings=FittingSettings(**SMALL, shortlist=4))
    assert found["images"] == VALID
    assert found["sentences"] == sum(len(shapes.captions(scene)) for scene in SCENES)
    for way in ("image_recall", "sentence_recall"):
        assert list(found[way]) == ["R@1", "R@5", "R@10"]
        assert 0 <= found[way]["R@1"] <= found[way]["R@5"] <= found[way]["R@10"] <= 1
    assert found["shortlist"] == 4
    plain = JointTool(
        model_for(task, replace(TINY, contrast=False)), task.vocabulary, FittingSettings(**SMALL)
    )
    found = evaluate_fitting(plain, split="test", settings=FittingSettings(**SMALL))
    assert found["shortlist"] == 0
    assert found["image_recall"]["R@10"] == 1.0  # among nine


def test_questions_of_shapes_are_about_what_is_drawn() -> None:
    read = read_questions(AnsweringSettings(**SMALL), "test", silent)
    assert read.texts == [tuple(q.text for q in shapes.questions(scene)) for scene in SCENES]
    assert [one.answers for one in read.truth] == [
        (q.answer,) for scene in SCENES for q in shapes.questions(scene)
    ]
