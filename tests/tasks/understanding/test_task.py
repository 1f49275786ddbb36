"""Batches, losses and figures of every kind of label, against loops that do it text by text."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.errors import ConfigError
from saccade.models.text.bert import Bert
from saccade.tasks.base import Batch, Deciding, Preparation, Task
from saccade.tasks.understanding.data import UnderstandingSettings, read_split
from saccade.tasks.understanding.figures import deciding_of
from saccade.tasks.understanding.labels import Labels
from saccade.tasks.understanding.task import TextsBatch, Understanding
from saccade.train.recipes import RECIPES
from tests.marks import one_fast
from tests.tasks.understanding.texts import (
    model_for,
    sentence,
    settings_for,
    task_for,
    write_texts,
)

KINDS = ("classes", "number", "labels", "tags")
BATCHINGS = ("similar", "mixed")


def one_by_one(task: Understanding, model: Bert, batch: TextsBatch) -> float:
    """The same loss, each sequence in a pass of its own."""
    total, starts = 0.0, batch.words.starts.tolist()
    for number, (start, end) in enumerate(pairwise(starts)):
        if start == end:
            continue
        tokens, types = batch.words.tokens[start:end], batch.types[start:end]
        rows = Rows.of(tokens, torch.tensor([len(tokens)]))
        z = model.scores(model(rows, types), rows)
        if task.labels.kind == "tags":
            for place in range(len(tokens)):
                if batch.counts[start + place]:
                    total += F.cross_entropy(z[place], batch.targets[start + place]).item()
        elif batch.counts[number]:
            total += of_one(task.labels.kind, z[0], batch.targets[number])
    return total


def of_one(kind: str, z: Tensor, target: Tensor) -> float:
    if kind == "number":
        return (z[0] - target).square().item()
    if kind == "labels":
        p = z.sigmoid()
        each = torch.where(target, p.log(), (1 - p).log())
        return -each.mean().item()
    return -z.log_softmax(dim=0)[target].item()


@pytest.mark.parametrize("kind", one_fast(KINDS))
@pytest.mark.parametrize("batching", one_fast(BATCHINGS))
def test_the_loss_is_that_of_every_text_by_itself(kind: str, batching: str, tmp_path: Path) -> None:
    task = task_for(write_texts(tmp_path, kind), kind, batching=batching)
    model = model_for(task)
    for position in range(task.batches_per_epoch):
        batch = task.batch(position)
        (loss,) = task.losses(model, batch).values()
        assert loss.item() == pytest.approx(one_by_one(task, model, batch), rel=1e-4)
        assert batch.tokens == int(batch.counts.sum())


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_asks_for_every_label_once(kind: str, tmp_path: Path) -> None:
    task = task_for(write_texts(tmp_path, kind), kind)
    assert isinstance(task, Task)
    assert isinstance(task.batch(0), Batch)
    wanted = sum(len(sentence(n).split()) for n in range(40)) if kind == "tags" else 40
    for epoch in range(2):
        first = epoch * task.batches_per_epoch
        batches = [task.batch(first + i) for i in range(task.batches_per_epoch)]
        assert sum(batch.tokens for batch in batches) == wanted
        assert len({batch.shape for batch in batches}) == 1


def test_shares_of_a_batch_are_the_batch_and_an_empty_one_counts_nothing(tmp_path: Path) -> None:
    task = task_for(write_texts(tmp_path, "classes"), "classes")
    model, whole = model_for(task), task.batch(0)
    shards = len(whole.words.lengths) + 1
    parts = [task.batch(0, shard=i, shards=shards) for i in range(shards)]
    assert sum(part.tokens for part in parts) == whole.tokens
    assert parts[-1].tokens == 0
    (total,) = task.losses(model, whole).values()
    sums = [next(iter(task.losses(model, part).values())).item() for part in parts]
    assert math.fsum(sums) == pytest.approx(total.item(), rel=1e-4)
    assert sums[-1] == 0


def test_tags_are_asked_at_the_first_piece_of_each_word(tmp_path: Path) -> None:
    task = task_for(write_texts(tmp_path, "tags"), "tags", budget=64)
    batch = task.batch(0)
    start, words = 0, task.vocabulary
    for length in batch.words.lengths.tolist():
        tokens = batch.words.tokens[start : start + length].tolist()
        text = words.decode(tokens)
        asked = [place for place in range(length) if batch.counts[start + place]]
        assert len(asked) == len(text.split())
        for place, word in zip(asked, text.split()):
            tag = task.labels.names[int(batch.targets[start + place])]
            assert tag == f"T{word[0].upper()}"
            assert word.startswith(words.decode([tokens[place]]).strip())
        start += length


def test_numbers_are_learnt_standardised_and_told_as_they_were(tmp_path: Path) -> None:
    task = task_for(write_texts(tmp_path, "number"), "number")
    found = torch.cat(
        [task.batch(i).targets[task.batch(i).counts > 0] for i in range(task.batches_per_epoch)]
    )
    assert found.mean().item() == pytest.approx(0, abs=1e-5)
    assert found.std(correction=0).item() == pytest.approx(1, rel=1e-4)
    numbers = sorted(task.labels.as_number(one) for one in found.tolist())
    assert numbers == pytest.approx(sorted(n % 7 / 2 for n in range(40)), abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_figures_do_not_depend_on_how_texts_are_batched(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_for(write_texts(tmp_path, kind), kind)
    model = model_for(task)
    together = task.validate(model, torch.device("cpu"))
    monkeypatch.setattr("saccade.tasks.understanding.scores.AT_ONCE", 1)
    alone = task.validate(model, torch.device("cpu"))
    # A correlation of about nothing is a difference of sums: what is rounded stays as large.
    assert together == pytest.approx(alone, rel=1e-5, abs=1e-5)
    assert task.deciding.figure in together


@pytest.mark.parametrize(
    ("labels", "figure", "higher"),
    [
        (Labels("classes", ("a", "b")), "accuracy", True),
        (Labels("tags", ("a", "b")), "accuracy", True),
        (Labels("labels", ("a", "b")), "mAP", True),
        (Labels("number"), "mean_squared_error", False),
        (Labels("classes", ("x", "y"), task="CoLA"), "matthews", True),
        (Labels("classes", ("x", "y"), task="MRPC"), "f1", True),
        (Labels("classes", ("x", "y"), task="QQP"), "f1", True),
        (Labels("number", task="STS-B"), "spearman", True),
        (Labels("classes", ("x", "y", "z"), task="MNLI"), "accuracy", True),
    ],
)
def test_what_decides_is_the_leaderboards_figure(labels: Labels, figure: str, higher: bool) -> None:
    found = deciding_of(labels)
    assert isinstance(found, Deciding)
    assert (found.figure, found.higher) == (figure, higher)


def test_a_model_gets_the_head_and_the_labels_of_its_data(tmp_path: Path) -> None:
    expected: dict[str, Any] = {
        "classes": ("text", 3),
        "number": ("text", 1),
        "labels": ("text", 3),
    }
    for kind, (head, labels) in expected.items():
        fitted = model_for(task_for(write_texts(tmp_path / kind, kind), kind)).config
        assert (fitted.head, fitted.labels) == (head, labels)
    task = task_for(write_texts(tmp_path / "tags", "tags"), "tags")
    fitted = model_for(task).config
    assert (fitted.head, fitted.labels) == ("tokens", len(task.labels.names))
    assert fitted.vocabulary == len(task.vocabulary)


def test_long_texts_are_cut_and_counted_and_a_pair_has_two_types(tmp_path: Path) -> None:
    task = task_for(write_texts(tmp_path, "classes", pairs=True), "classes", longest=10)
    assert any(line.startswith("cut: ") and "(--longest)" in line for line in task.report)
    batch = task.batch(0)
    assert int(batch.words.lengths.max()) <= 10
    assert set(batch.types[: batch.words.real].tolist()) == {0, 1}
    assert task.labels.pairs


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_kept_is_used_again(kind: str, tmp_path: Path) -> None:
    data = write_texts(tmp_path / "data", kind)
    task = task_for(data, kind)
    assert set(task.assets()) == {"tokenizer.json", "labels.json"}
    assert task.fingerprint() == task_for(data, kind).fingerprint()
    other = task_for(write_texts(tmp_path / "other", kind, count=39), kind)
    assert task.fingerprint() != other.fingerprint()


@pytest.mark.parametrize("name", ["bert-classify", "bert-pairs", "bert-tag"])
def test_a_recipe_knows_what_the_built_in_data_make_of_its_model(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.tasks.understanding.data.HELD_BACK", 20)
    settings = RECIPES[name].task
    assert isinstance(settings, UnderstandingSettings)
    few = replace(settings, count=500)
    task = few.prepare(Preparation(budget=1024, seed=0, batching="mixed"))
    fitted = vars(task.fit(RECIPES[name].model))
    known = settings.fitted_sizes()
    assert known["labels"] == fitted["labels"]
    assert known["vocabulary"] >= fitted["vocabulary"]  # the most that it may be
    own = replace(settings, data="mine").fitted_sizes()
    assert own == {"vocabulary": settings.vocabulary}


def test_pairs_are_read_in_either_order_other_ones_in_each_epoch(tmp_path: Path) -> None:
    folder = write_texts(tmp_path, "classes", pairs=True)
    plain = task_for(folder, "classes", batching="similar")
    either = task_for(folder, "classes", batching="similar", either_order=True)
    assert either.fingerprint() != plain.fingerprint()
    texts = [(sentence(n), sentence(n + 1)) for n in range(40)]
    of = {
        tuple(reading.tokens): (number, turned)
        for turned, some in ((False, texts), (True, [pair[::-1] for pair in texts]))
        for number, reading in enumerate(either.vocabulary.readings(some))
    }
    turned: list[set[int]] = []
    for epoch in range(3):
        seen: dict[int, bool] = {}
        for index in range(either.batches_per_epoch):
            batch = either.batch(epoch * either.batches_per_epoch + index)
            ends = pairwise(batch.words.starts.tolist())
            for target, (start, end) in zip(batch.targets.tolist(), ends):
                number, is_turned = of[tuple(batch.words.tokens[start:end].tolist())]
                seen[number] = is_turned
                assert target == either.labels.targets(read_rows(folder), "")[number]
        assert len(seen) == len({sentence(n) + sentence(n + 1) for n in range(40)})
        turned.append({number for number, so in seen.items() if so})
        assert 5 < len(turned[-1]) < len(seen) - 5
    assert turned[0] != turned[1] != turned[2]


def read_rows(folder: Path) -> Any:
    return read_split(settings_for(folder, "classes"), "train").rows


def test_single_texts_have_no_other_order(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"either_order is of pairs of texts, and .* single ones"):
        task_for(write_texts(tmp_path, "classes"), "classes", either_order=True)
