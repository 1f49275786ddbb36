"""Batches: every image once an epoch, its texts in turn, all a function of seed and position."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch

from saccade.tasks.base import Batch, Task
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.joint.batch import JointBatch
from tests.marks import one_fast
from tests.tasks import sequences, total_loss
from tests.tasks.joint.made import SMALL, TASKS, TINY, VALID, model_for, prepared

every_task = pytest.mark.parametrize("kind", TASKS)
one_task_fast = pytest.mark.parametrize("kind", one_fast(TASKS))


@pytest.fixture(scope="module")
def tasks() -> dict[str, Any]:
    return {kind: prepared(kind) for kind in TASKS}


def pictures(batch: JointBatch) -> list[bytes]:
    return [image.numpy().tobytes() for image in batch.seen.images]


def epoch(task: Any, number: int) -> list[JointBatch]:
    first = number * task.batches_per_epoch
    return [task.batch(first + i) for i in range(task.batches_per_epoch)]


@every_task
def test_an_epoch_sees_every_image_once_in_another_order(tasks: Any, kind: str) -> None:
    task = tasks[kind]
    assert isinstance(task, Task)
    assert isinstance(task.batch(0), Batch)
    orders = [
        [one for batch in epoch(task, number) for one in pictures(batch)] for number in (0, 1)
    ]
    assert Counter(orders[0]) == Counter(orders[1])
    assert len(set(orders[0])) == len(orders[0]) == SMALL["scenes"]
    assert orders[0] != orders[1]


@one_task_fast
def test_a_batch_is_a_function_of_its_position_and_the_seed(tasks: Any, kind: str) -> None:
    again, other = prepared(kind), prepared(kind, seed=1)
    same = tasks[kind].batch(3), again.batch(3)
    assert sequences(same[0].text) == sequences(same[1].text)
    assert pictures(same[0]) == pictures(same[1])
    assert same[0].asked.keys() == same[1].asked.keys()
    assert all(torch.equal(x, same[1].asked[name]) for name, x in same[0].asked.items())
    assert pictures(other.batch(3)) != pictures(same[0])


def counted_in(batch: JointBatch) -> int:
    """Texts, or rows of sentences of which one is right."""
    return len(batch.asked["right"]) if "right" in batch.asked else batch.texts


@every_task
def test_shards_partition_a_batch_and_an_empty_one_counts_nothing(tasks: Any, kind: str) -> None:
    task = tasks[kind]
    whole = task.batch(1)
    shards = len(whole.seen.images) + 1
    parts = [task.batch(1, shard=i, shards=shards) for i in range(shards)]
    assert sum(part.tokens for part in parts) == whole.tokens == counted_in(whole)
    assert parts[-1].tokens == 0
    assert parts[-1].texts > 0
    counted = [one for part in parts if part.tokens for one in sequences(part.text)]
    assert Counter(map(tuple, counted)) == Counter(map(tuple, sequences(whole.text)))
    model = model_for(task)
    assert total_loss(task, model, parts[-1]).item() == 0


@pytest.mark.parametrize("kind", ["answering", "referring", "choosing"])
def test_the_losses_of_shards_add_up(tasks: Any, kind: str) -> None:
    task = tasks[kind]
    model, whole = model_for(task), task.batch(1)
    parts = [task.batch(1, shard=i, shards=3) for i in range(3)]
    with torch.no_grad():
        sums = [total_loss(task, model, part).item() for part in parts]
        assert sum(sums) == pytest.approx(total_loss(task, model, whole).item(), rel=1e-4)


def test_only_so_many_texts_of_an_image_and_others_in_each_epoch() -> None:
    task = prepared("fitting", texts=2)
    told = [dict[bytes, list[Any]](), dict[bytes, list[Any]]()]
    for number, said in enumerate(told):
        for batch in epoch(task, number):
            texts = sequences(batch.text)
            for image, picture in enumerate(pictures(batch)):
                said[picture] = sorted(
                    text for text, of in zip(texts, batch.of.tolist()) if of == image
                )
    assert {len(some) for some in told[0].values()} == {2}
    assert told[0].keys() == told[1].keys()
    changed = sum(told[0][picture] != told[1][picture] for picture in told[0])
    assert changed > SMALL["scenes"] // 3
    every = [dict[bytes, int]() for _ in range(2)]
    for batch in epoch(prepared("fitting", texts=99), 0):
        for picture, count in zip(pictures(batch), batch.of.bincount().tolist()):
            every[0][picture] = count
    assert set(every[0].values()) == {5}


def test_the_budget_counts_texts() -> None:
    few, many = prepared("fitting", budget=10), prepared("fitting", budget=40)
    assert [len(task.batch(0).seen.images) for task in (few, many)] == [2, 8]
    assert len(prepared("fitting", budget=1).batch(0).seen.images) == 1


def hidden_by_text(task: Any, number: int) -> dict[tuple[bytes, tuple[int, ...]], Any]:
    """What was hidden in each text, by its image and itself as it was."""
    found = dict[tuple[bytes, tuple[int, ...]], Any]()
    for batch in epoch(task, number):
        labels = torch.full_like(batch.text.tokens, IGNORED)
        real = batch.asked["labels"] != IGNORED
        labels[batch.asked["at"][real]] = batch.asked["labels"][real]
        whole = torch.where(labels == IGNORED, batch.text.tokens, labels)
        starts, images = batch.text.starts.tolist(), pictures(batch)
        for text, of in enumerate(batch.of.tolist()):
            here = slice(starts[text], starts[text + 1])
            key = images[of], tuple(whole[here].tolist())
            found[key] = batch.text.tokens[here].tolist(), labels[here].tolist()
    return found


def test_which_words_are_hidden_depends_on_seed_epoch_and_text_alone() -> None:
    task = prepared("pretraining", texts=99)
    found = hidden_by_text(task, 2)
    assert found == hidden_by_text(prepared("pretraining", texts=99, budget=11), 2)
    assert found.keys() == hidden_by_text(task, 3).keys()
    assert found != hidden_by_text(task, 3)
    assert found != hidden_by_text(prepared("pretraining", texts=99, seed=1), 2)
    counts = [sum(label != IGNORED for label in labels) for _, labels in found.values()]
    words = [len(labels) - 2 for _, labels in found.values()]
    assert min(counts) >= 1
    assert sum(counts) / sum(words) == pytest.approx(0.15, abs=0.04)


def test_held_out_captions_always_hide_the_same(tasks: Any) -> None:
    task, other = tasks["pretraining"], prepared("pretraining", seed=5)
    cpu = torch.device("cpu")
    for a, b in zip(task.validation(cpu), other.validation(cpu), strict=True):
        assert sequences(a.text) == sequences(b.text)
    model = model_for(task)
    torch.manual_seed(1)
    first, before = task.validate(model, cpu), torch.get_rng_state()
    assert task.validate(model, cpu) == first
    assert torch.equal(torch.get_rng_state(), before)
    assert first["loss"] == pytest.approx(
        sum(first[part] for part in ("words", "regions", "fit", "contrast"))
    )


@one_task_fast
def test_the_fingerprint_changes_with_the_data_alone(tasks: Any, kind: str) -> None:
    print_of = tasks[kind].fingerprint()
    assert prepared(kind, seed=3, budget=9).fingerprint() == print_of
    assert prepared(kind, scenes=22).fingerprint() != print_of


@every_task
def test_what_the_data_decide_of_a_model(tasks: Any, kind: str) -> None:
    task = tasks[kind]
    heads = {"answering": "answers", "fitting": "fit", "referring": "regions", "choosing": "fit"}
    fitted = task.fit(TINY)
    assert fitted.head == heads.get(kind, "pretraining")
    assert fitted.vocabulary == len(task.vocabulary)
    assert fitted.contrast == (kind in ("fitting", "pretraining"))
    assert "tokenizer.json" in task.assets()
    if kind == "answering":
        assert fitted.labels == len(task.answers) > 5
        assert "answers" in task.sizes
    if kind == "pretraining":
        assert fitted.region_classes == len(task.names) > 3
        assert task.fit(replace(TINY, regions="cells")).region_classes == 0


def test_texts_over_the_bound_are_left_out_and_counted() -> None:
    whole = prepared("fitting", texts=99)
    lengths = torch.cat([batch.text.lengths for batch in epoch(whole, 0)])
    bound = int(lengths.float().quantile(0.7))
    task = prepared("fitting", texts=99, longest=bound)
    kept = torch.cat([batch.text.lengths for batch in epoch(task, 0)])
    assert sorted(kept.tolist()) == sorted(lengths[lengths <= bound].tolist())
    lost = len(lengths) - len(kept)
    said = f"left out: {lost} training sentences over {bound} tokens (--longest)"
    assert said in task.report
    assert all(len(batch.of.unique()) == len(batch.seen.images) for batch in epoch(task, 0))


@every_task
def test_validation_reads_every_held_out_text_once(tasks: Any, kind: str) -> None:
    task = tasks[kind]
    batches = list(task.validation(torch.device("cpu")))
    assert sum(len(batch.seen.images) for batch in batches) == VALID
    assert sum(batch.texts for batch in batches) == len(task.valid_truth)
