"""Rows of sentences of which one is right: they stay together, and the loss is theirs."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.data import shapes
from saccade.models.joint.config import RegionKind
from saccade.tasks.joint.batch import Sees, seen_regions
from saccade.tasks.joint.choosing import (
    NONE,
    ChoosingSettings,
    Offered,
    choice_scores,
    in_rows,
    read_choices,
    rows_of,
)
from saccade.tasks.joint.evaluate import evaluate_choices
from saccade.tasks.joint.tool import JointTool
from tests.data.images_made import picture, rows
from tests.tasks import sequences, total_loss
from tests.tasks.joint.made import (
    SENTENCES,
    SMALL,
    TINY,
    VALID,
    model_for,
    prepared,
    user_choices,
)

CPU = torch.device("cpu")


def silent(done: int, total: int) -> None:
    pass


@pytest.fixture(scope="module")
def shaped() -> Any:
    return prepared("choosing", texts=2)


@pytest.fixture
def users(tmp_path: Path) -> Any:
    """Rows of two, three and four sentences."""
    return prepared("choosing", data=str(user_choices(tmp_path)), image=32, texts=2)


def encoded(task: Any, sentence: str) -> list[int]:
    (found,) = task.vocabulary.readings([(sentence,)])
    return list(found.tokens)


def offered(task: Any, batch: Any) -> list[tuple[int, list[list[int]], int]]:
    """The rows of a batch: their image, their sentences as tokens, and which is right."""
    texts, of = sequences(batch.text), batch.of.tolist()
    found = list[tuple[int, list[list[int]], int]]()
    for which, right in zip(
        batch.asked["which"].tolist(), batch.asked["right"].tolist(), strict=True
    ):
        some = [number for number in which if number != NONE]
        assert len({of[number] for number in some}) == 1
        found.append((of[some[0]], [texts[number] for number in some], right))
    return found


def test_the_sentences_of_a_row_stay_together_whatever_their_number(users: Any) -> None:
    known = [
        ([encoded(users, one) for one in SENTENCES[:count]], n % count)
        for n in range(24)
        for count in (2, 3 + n % 2)
    ]
    sizes = set[int]()
    for position in range(2 * users.batches_per_epoch):
        batch = users.batch(position)
        made = offered(users, batch)
        assert sum(len(some) for _, some, _ in made) == batch.texts
        assert batch.tokens == len(made)
        for _, some, right in made:
            assert (some, right) in known
            sizes.add(len(some))
        real = batch.asked["which"][batch.asked["which"] != NONE]
        assert real.tolist() == list(range(batch.texts))  # each once: nothing is padded
    assert sizes == {2, 3, 4}


@pytest.mark.slow
def test_so_many_rows_of_an_image_are_learnt_from_at_a_time(shaped: Any) -> None:
    batch = shaped.batch(0)
    images = [image for image, _, _ in offered(shaped, batch)]
    assert {images.count(image) for image in images} == {2}
    assert len(prepared("choosing", texts=2, budget=10).batch(0).seen.images) == 5
    other = prepared("choosing", texts=99, budget=10)
    assert len(other.batch(0).seen.images) == 2
    assert len(other.batch(0).asked["right"]) == 10


@pytest.mark.slow
@pytest.mark.parametrize("regions", ["boxes", "cells"])
def test_the_loss_is_that_of_each_row_by_itself(users: Any, regions: RegionKind) -> None:
    """Written plainly: one image and one sentence at a time, softmax over a row, −log p(right)."""
    model = model_for(users, replace(TINY, regions=regions), torch.float64)
    batch, total = users.batch(0), torch.zeros(())
    seen = seen_regions(model, batch.seen)
    start = seen.starts.tolist()
    texts = sequences(batch.text)
    for which, right in zip(batch.asked["which"].tolist(), batch.asked["right"].tolist()):
        z = list[Tensor]()
        for number in (one for one in which if one != NONE):
            image = int(batch.of[number])
            here = slice(start[image], start[image + 1])
            alone = seen._replace(
                features=seen.features[here],
                boxes=seen.boxes[here],
                starts=torch.tensor([0, here.stop - here.start], dtype=torch.int32),
                slots=None,
                equal=False,
            )
            given = torch.tensor(texts[number])
            text = batch.text.of(given, torch.tensor([len(given)]))
            found = model(text, torch.zeros_like(given), alone, torch.tensor([0]))
            z.append(model.fits(found)[0].float())
        total = total - torch.stack(z).log_softmax(dim=0)[right]
    torch.testing.assert_close(users.losses(model, batch)["choice"], total, rtol=1e-4, atol=1e-4)


def test_scores_stand_in_rows_and_nothing_falls_to_what_is_not_there() -> None:
    z = torch.tensor([1.0, 2, 3, 4, 5], requires_grad=True)
    made = in_rows(z, torch.tensor([[0, 1, NONE], [2, 3, 4]]))
    assert made.tolist() == [[1, 2, -torch.inf], [3, 4, 5]]
    loss = torch.nn.functional.cross_entropy(made, torch.tensor([1, 0]))
    loss.backward()
    assert z.grad is not None
    expected = torch.cat([torch.tensor([1.0, 2]).softmax(0), torch.tensor([3.0, 4, 5]).softmax(0)])
    expected[1] -= 1
    expected[2] -= 1
    torch.testing.assert_close(z.grad, expected / 2)


def test_a_row_with_one_sentence_that_is_too_long_is_left_out_as_a_row(tmp_path: Path) -> None:
    root = user_choices(tmp_path)
    bad = {"image": "00.png", "sentences": ["a dog", "a very " + "very " * 12 + "long one"]}
    path = root / "train.jsonl"
    path.write_bytes(path.read_bytes() + rows({**bad, "right": 0}, {**bad, "right": 1}))
    task = prepared("choosing", data=str(root), image=32, longest=12, texts=99)
    said = "left out: 2 training choices with a sentence over 12 tokens (--longest)"
    assert said in task.report
    first = [
        some
        for position in range(task.batches_per_epoch)
        for _, some, _ in offered(task, task.batch(position))
    ]
    assert len(first) == 2 * len(task._train.sighted)
    assert encoded(task, "a dog") not in [one for some in first for one in some]
    total = sum(part.tokens for part in (task.batch(n) for n in range(task.batches_per_epoch)))
    assert total == len(first)


def test_images_of_which_nothing_is_offered_are_no_trouble(tmp_path: Path) -> None:
    root = user_choices(tmp_path)
    (root / "unsaid.png").write_bytes(picture(77, side=40))
    task = prepared("choosing", data=str(root), image=32)
    assert len(task._train.sighted) + len(task._valid.sighted) == 24


def test_validation_and_evaluation_say_what_one_counts_by_hand(shaped: Any) -> None:
    model = model_for(shaped)
    tool = JointTool(model, shaped.vocabulary, shaped.settings)
    found = evaluate_choices(tool, split="valid", settings=shaped.settings)
    figures = shaped.validate(model, CPU)
    right = list[bool]()
    losses = list[float]()
    for batch in shaped.validation(CPU):
        with torch.no_grad():
            seen = seen_regions(model, batch.seen)
            z = model.fits(model(batch.text, batch.types, seen, batch.of))
        for some, true in zip(z.split(4), batch.asked["right"].tolist(), strict=True):
            right.append(int(some.argmax()) == true)
            losses.append(-float(some.log_softmax(dim=0)[true]))
    assert len(right) == 5 * VALID == found["choices"]
    assert found["accuracy"] == figures["accuracy"] == pytest.approx(sum(right) / len(right))
    assert figures["loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)
    assert (found["chance"], found["sentences"], found["images"]) == (0.25, 20 * VALID, VALID)


def test_who_knows_all_is_always_right(shaped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [one.right for n in range(VALID) for one in shapes.choices(shapes.scene("test", n))]
    left = iter(known)

    def scores(model: Any, batch: Any, sees: str) -> Tensor:
        best = torch.tensor([next(left) for _ in range(batch.tokens)])
        return torch.nn.functional.one_hot(best, 4).float()

    monkeypatch.setattr("saccade.tasks.joint.evaluate.choice_scores", scores)
    tool = JointTool(model_for(shaped), shaped.vocabulary, shaped.settings)
    found = evaluate_choices(tool, split="test", settings=shaped.settings)
    assert (found["accuracy"], found["split"]) == (1.0, "test")
    known[0] = (known[0] + 1) % 4
    left = iter(known)
    found = evaluate_choices(tool, split="test", settings=shaped.settings)
    assert found["accuracy"] == pytest.approx(1 - 1 / len(known))


@torch.no_grad()
def test_who_may_see_the_sentences_alone_sees_no_image_and_the_other_way_round(
    shaped: Any,
) -> None:
    model, batch = model_for(shaped), shaped.batch(0)
    seen = batch.seen._replace(images=255 - batch.seen.images, boxes=batch.seen.boxes / 2)
    text = batch.text._replace(tokens=(batch.text.tokens + 1) % len(shaped.vocabulary))
    unlike: list[tuple[Sees, Any, Any]] = [
        ("question", batch._replace(seen=seen), batch._replace(text=text)),
        ("image", batch._replace(text=text), batch._replace(seen=seen)),
    ]
    for sees, same, changes in unlike:
        z = choice_scores(model, batch, sees)
        assert torch.equal(choice_scores(model, same, sees), z)
        assert (choice_scores(model, changes, sees) - z).abs().max() > 1e-5
    assert total_loss(prepared("choosing", sees="image"), model, batch) != total_loss(
        shaped, model, batch
    )


def test_what_is_read_of_shapes_is_what_they_offer() -> None:
    read = read_choices(ChoosingSettings(**SMALL), "test", silent)
    every = [one for n in range(VALID) for one in shapes.choices(shapes.scene("test", n))]
    assert [text for some in read.texts for text in some] == [
        text for one in every for text in one.sentences
    ]
    assert read.sizes == [4] * len(every)
    assert rows_of(read.truth) == [Offered(*one) for one in every]
