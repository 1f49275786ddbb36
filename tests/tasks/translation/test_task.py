"""The translation task: what is predicted, what it costs, and that padding costs nothing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from saccade.config import ModelConfig
from saccade.data.batching.ragged import Ragged
from saccade.data.batching.rows import BatchShape
from saccade.data.tokens.vocabulary import OURS
from saccade.errors import ConfigError, DataError
from saccade.models.text.convolutional import ConvSeq2SeqConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.seq2seq import Seq2SeqConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.base import Batch, Preparation, Task
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.translation.task import (
    Translation,
    TranslationSettings,
    collate,
    pairs_loss,
    read_corpus,
)
from tests.tasks import sequences, total_loss

START, END = OURS.start, OURS.end

CPU = torch.device("cpu")
sentence = st.lists(st.integers(4, 19), max_size=6)
sentences = st.lists(st.tuples(sentence, sentence), min_size=1, max_size=6)
Pairs = list[tuple[list[int], list[int]]]


def collated(pairs: Pairs, **options: Any) -> Any:
    sources, targets = (Ragged.of([pair[side] for pair in pairs]) for side in (0, 1))
    return collate((sources, targets), torch.arange(len(pairs)), OURS, **options)


@given(sentences)
def test_the_source_ends_with_end_and_the_target_is_shifted_by_start(pairs: Pairs) -> None:
    batch = collated(pairs)
    assert sequences(batch.source) == [[*source, END] for source, _ in pairs]
    assert sequences(batch.target) == [[START, *target] for _, target in pairs]


@given(sentences)
def test_each_word_and_the_end_is_predicted_once(pairs: Pairs) -> None:
    batch = collated(pairs)
    labels = batch.labels.split(batch.target.lengths.tolist())
    assert [label.tolist() for label in labels] == [[*target, END] for _, target in pairs]
    assert batch.tokens == sum(len(target) + 1 for _, target in pairs)


@given(sentences)
def test_rows_that_do_not_count_are_read_but_not_predicted(pairs: Pairs) -> None:
    real, idle = collated(pairs), collated(pairs, counts=False)
    assert idle.tokens == 0
    assert idle.labels.eq(IGNORED).all()
    assert sequences(idle.source) == sequences(real.source)
    assert sequences(idle.target) == sequences(real.target)


@given(sentences)
def test_what_fills_a_shape_is_never_predicted(pairs: Pairs) -> None:
    plain = collated(pairs)
    batch = collated(pairs, shapes=(BatchShape(48, 12, 16), BatchShape(64, 12, 16)))
    assert (len(batch.source.tokens), len(batch.target.tokens)) == (48, 64)
    assert sequences(batch.source) == sequences(plain.source)
    assert sequences(batch.target) == sequences(plain.target)
    assert batch.tokens == plain.tokens
    assert batch.labels[: batch.tokens].equal(plain.labels)
    assert batch.labels[batch.tokens :].eq(IGNORED).all()


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    words = ["a", "b", "c", "d"]
    for split, count in (("train", 30), ("valid", 5)):
        rows = [[words[(i + j) % 4] for j in range(1 + i % 5)] for i in range(count)]
        for side in ("x", "y"):
            text = "".join(" ".join(row if side == "x" else row[::-1]) + "\n" for row in rows)
            (tmp_path / f"{split}.{side}").write_text(text)
    return tmp_path


Make = Callable[..., Translation]


@pytest.fixture
def make(corpus: Path) -> Make:
    def made(*, seed: int = 0, budget: int = 40, **changed: Any) -> Translation:
        fixed: dict[str, Any] = {"source": "x", "target": "y", "level": "words"}
        settings = TranslationSettings(data=str(corpus), **{**fixed, **changed})
        return Translation(settings, Preparation(budget=budget, seed=seed))

    return made


MODELS: dict[str, ModelConfig] = {
    "transformer": TransformerConfig(width=16, depth=1, heads=2, hidden=32, dropout=0.0),
    "rnn": Seq2SeqConfig(width=16, depth=1, dropout=0.0),
    "rnn with attention": RnnAttentionConfig(width=16, dropout=0.0),
    "convolutional": ConvSeq2SeqConfig(width=16, depth=1, dropout=0.0),
}


def model_of(task: Translation, name: str = "transformer") -> nn.Module:
    torch.manual_seed(0)
    return replace(MODELS[name], vocabulary=len(task.vocabulary)).build().double()


def test_it_is_a_task_and_its_batches_are_batches(make: Make) -> None:
    task = make()
    assert isinstance(task, Task)
    assert isinstance(task.batch(0), Batch)


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_costs_what_its_sentences_cost_one_by_one(name: str, make: Make) -> None:
    task = make(label_smoothing=0.1)
    model = model_of(task, name).eval()
    pairs: Pairs = [([4, 5], [5, 4, 6, 7]), ([6], [7]), ([7, 6, 5, 4, 4], [5, 5])]
    together = total_loss(task, model, collated(pairs))
    alone = sum(total_loss(task, model, collated([pair])).item() for pair in pairs)
    assert together.item() == pytest.approx(alone, rel=1e-10)


def test_the_loss_counts_each_word_given_those_before_it(make: Make) -> None:
    task = make(label_smoothing=0.0)
    model = model_of(task)
    source, target = [4, 5, 6], [6, 5]
    expected = 0.0
    for i, word in enumerate([*target, END]):
        before = torch.tensor([[START, *target[:i]]])
        features = model(torch.tensor([[*source, END]]), torch.tensor([4]), before)
        expected -= model.output(features[0, -1]).log_softmax(dim=-1)[word].item()
    found = total_loss(task, model, collated([(source, target)])).item()
    assert found == pytest.approx(expected, rel=1e-10)


def rows_of(batch: Any) -> list[tuple[list[int], list[int]]]:
    return sorted(zip(sequences(batch.source), sequences(batch.target)))


def test_an_epoch_of_positions_is_the_corpus_and_the_next_is_shuffled(make: Make) -> None:
    task = make()
    count = task.batches_per_epoch
    assert count > 2
    epochs = [[rows_of(task.batch(e * count + i)) for i in range(count)] for e in range(3)]
    whole = [sorted(row for batch in epoch for row in batch) for epoch in epochs]
    assert len(whole[0]) == 30
    assert whole[0] == whole[1] == whole[2]
    assert epochs[0] != epochs[1] != epochs[2]


def test_a_position_gives_the_same_batch_whatever_was_asked_before(make: Make) -> None:
    one, other = make(), make()
    backwards = {p: other.batch(p) for p in reversed(range(20))}
    for position in range(20):
        ours, theirs = tree_leaves(one.batch(position)), tree_leaves(backwards[position])
        assert len(ours) == len(theirs) > 8
        assert all(a.equal(b) if isinstance(a, Tensor) else a == b for a, b in zip(ours, theirs))


def test_another_seed_gives_another_order(make: Make) -> None:
    one, other = make(seed=0), make(seed=1)
    assert [rows_of(one.batch(i)) for i in range(5)] != [rows_of(other.batch(i)) for i in range(5)]


@pytest.mark.parametrize("shards", [2, 3, 9])
def test_the_shares_of_all_processes_cost_what_the_batch_costs(shards: int, make: Make) -> None:
    task = make()
    model = model_of(task).eval()
    for position in range(2):
        whole = task.batch(position)
        shares = [task.batch(position, shard=i, shards=shards) for i in range(shards)]
        assert sum(share.tokens for share in shares) == whole.tokens
        total = sum(total_loss(task, model, share).item() for share in shares)
        assert total == pytest.approx(total_loss(task, model, whole).item(), rel=1e-10)


def test_validation_is_the_mean_loss_per_token_without_smoothing(make: Make, corpus: Path) -> None:
    task = make(label_smoothing=0.3)
    model = model_of(task).eval()
    lines = [(corpus / f"valid.{side}").read_text().splitlines() for side in ("x", "y")]
    pairs = list(zip(*lines))
    encoded = [(task.vocabulary.encode(a), task.vocabulary.encode(b)) for a, b in pairs]
    plain = make(label_smoothing=0.0)
    total = sum(total_loss(plain, model, collated([pair])).item() for pair in encoded)
    mean = total / sum(len(target) + 1 for _, target in encoded)
    figures = task.validate(model, CPU)
    assert figures["loss"] == pytest.approx(mean, rel=1e-10)
    assert figures["perplexity"] == pytest.approx(2.718281828**mean, rel=1e-5)
    loss, tokens = pairs_loss(model, task.vocabulary, pairs, CPU)
    assert loss / tokens == pytest.approx(mean, rel=1e-10)


def test_the_fingerprint_changes_with_the_data_alone(make: Make, corpus: Path) -> None:
    one = make().fingerprint()
    assert one == make(seed=3, budget=80).fingerprint()
    path = corpus / "train.y"
    path.write_text(path.read_text().replace("a", "b", 1))
    assert make().fingerprint() != one


def test_long_pairs_are_left_out_and_counted(make: Make) -> None:
    task = make(longest=4)
    count = sum(len(task.batch(i).source.lengths) for i in range(task.batches_per_epoch))
    assert count == 18  # of lengths 1, 2, 3 out of 1 … 5
    assert "left out: 12 training pairs over 4 tokens (--longest)" in task.report


def test_a_corpus_of_only_long_pairs_is_refused(make: Make) -> None:
    with pytest.raises(
        DataError, match=r"none of the training pairs has under 1 tokens; raise --longest"
    ):
        make(longest=1)


def test_without_a_validation_file_every_50th_pair_is_held_out(make: Make, corpus: Path) -> None:
    for side in ("x", "y"):
        (corpus / f"valid.{side}").unlink()
        (corpus / f"train.{side}").write_text("".join(f"w{i}\n" for i in range(120)))
    settings = make(longest=9).settings
    train, valid = (read_corpus(settings, split).pairs for split in ("train", "valid"))
    assert [source for source, _ in valid] == ["w0", "w50", "w100"]
    assert len(train) == 117
    assert not set(train) & set(valid)


def test_a_single_pair_cannot_be_held_out(make: Make, corpus: Path) -> None:
    for side in ("x", "y"):
        (corpus / f"valid.{side}").unlink()
        (corpus / f"train.{side}").write_text("a\n")
    with pytest.raises(DataError, match="too few to hold some out; add a validation file"):
        make()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"longest": 0}, "longest=0 must be at least 1"),
        ({"pairs": 0}, "pairs=0 must be at least 1"),
        ({"label_smoothing": 1.0}, "label_smoothing=1.0 must be at least 0 and below 1"),
    ],
)
def test_settings_out_of_range_are_named(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TranslationSettings(**values)


@pytest.mark.slow
def test_without_data_it_learns_lingua() -> None:
    task = Translation(
        TranslationSettings(pairs=50, level="words"), Preparation(budget=4096, seed=0)
    )
    assert task.report[0] == "train: 50 pairs of lingua, split train"
    assert sum(len(task.batch(i).source.lengths) for i in range(task.batches_per_epoch)) == 50
