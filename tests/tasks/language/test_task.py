"""Language modelling: windows of a stream, or lines; each word predicted from those before it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.data.batching.batches import Batches
from saccade.data.batching.mixed import MixedBatches
from saccade.data.batching.ragged import Ragged
from saccade.data.batching.token_stream import TokenStream
from saccade.data.tokens.vocabulary import OURS
from saccade.errors import DataError
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.tasks import chapters
from saccade.tasks.base import Batch, Preparation, Task
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.language.task import (
    LanguageModelling,
    LanguageSettings,
    Windows,
    read_language,
    texts_loss,
)
from tests.tasks import sentences, sequences, total_loss

START, END = OURS.start, OURS.end

CPU = torch.device("cpu")
counts = st.integers(2, 200)
windows = st.integers(1, 30)
texts = st.lists(st.lists(st.integers(4, 19), max_size=7), min_size=1, max_size=9)


def numbers(count: int, times: int = 1) -> TokenStream:
    return TokenStream(Ragged.of([[times * n for n in range(count)]]), END)


def starts_of(cut: Windows, epoch: int) -> Tensor:
    """Where every window of every batch of an epoch starts."""
    first = epoch * len(cut)
    return torch.stack([cut.at(first + number, 0, 1)[0] for number in range(len(cut))])


@given(count=counts, window=windows, rows=st.integers(1, 9), epoch=st.integers(0, 5))
def test_windows_do_not_overlap_nor_reach_beyond_the_end(
    count: int, window: int, rows: int, epoch: int
) -> None:
    cut = Windows(numbers(count), window=window, rows=rows, seed=3)
    starts = starts_of(cut, epoch)
    assert starts.shape == (len(cut), cut.rows)
    assert len(cut) >= 1
    read = torch.cat([cut.batch(some, counts=True).words.tokens for some in starts])
    assert len(read) == len(set(read.tolist())), "a word was read twice"
    assert int(starts.min()) >= 0
    assert int(starts.max()) + cut.window < count, "the last word has no word after it"


@given(count=counts, window=windows, rows=st.integers(1, 9))
def test_labels_are_the_words_shifted_by_one(count: int, window: int, rows: int) -> None:
    cut = Windows(numbers(count, 3), window=window, rows=rows, seed=0)
    batch = cut.batch(starts_of(cut, 0)[0], counts=True)
    assert batch.labels.equal(batch.words.tokens + 3)
    assert batch.tokens == len(batch.words.tokens) == cut.rows * cut.window
    idle = cut.batch(starts_of(cut, 0)[0], counts=False)
    assert idle.words.tokens.equal(batch.words.tokens)
    assert idle.labels.eq(IGNORED).all()
    assert idle.tokens == 0


@given(count=st.integers(300, 2000), window=st.integers(4, 20), rows=st.integers(1, 4))
def test_nearly_every_word_is_read_in_an_epoch(count: int, window: int, rows: int) -> None:
    cut = Windows(numbers(count), window=window, rows=rows, seed=0)
    left = count - starts_of(cut, 0).numel() * cut.window
    assert left <= 2 * window + (rows - 1) * window + 1


@given(count=st.integers(300, 2000), window=st.integers(4, 9), rows=st.integers(1, 4))
def test_windows_of_all_chapters_are_read_once(count: int, window: int, rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chapters, "CHAPTER_ROWS", 16)
        patch.setattr(chapters, "STRETCH", 3)
        cut = Windows(numbers(count), window=window, rows=rows, seed=0)
        starts = starts_of(cut, 1).flatten()
    assert len(starts) == len(set(starts.tolist()))
    assert len(set((starts % window).tolist())) == 1, "all are shifted alike"
    most = max(1, cut.count // 16)  # chapters, each of which may leave a batch out
    assert len(starts) > cut.count - most * rows


def test_epochs_start_elsewhere_and_in_another_order_and_repeat_with_the_seed() -> None:
    def make(seed: int) -> Windows:
        return Windows(numbers(500), window=20, rows=3, seed=seed)

    epochs = [starts_of(make(0), number) for number in range(8)]
    assert len({tuple(epoch.flatten().tolist()) for epoch in epochs}) == 8
    assert len({int(epoch.min()) % 20 for epoch in epochs}) > 3
    assert starts_of(make(0), 5).equal(epochs[5])
    assert not starts_of(make(1), 5).equal(epochs[5])


@pytest.mark.parametrize("count", [0, 1])
def test_a_stream_without_a_next_word_is_refused(count: int) -> None:
    with pytest.raises(DataError, match=f"{count} tokens are too few to learn from"):
        Windows(numbers(count), window=4, rows=1, seed=0)


def test_a_text_too_short_to_validate_on_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "blank.txt").write_text("\n\n\n")
    settings = LanguageSettings(data=str(tmp_path / "blank.txt"), unit="stream", level="characters")
    with pytest.raises(DataError, match="too few to validate on; give a longer text, or a valid"):
        settings.prepare(Preparation(budget=64, seed=0))


@given(texts)
def test_a_line_goes_from_start_to_end_and_each_word_is_predicted_once(
    rows: list[list[int]],
) -> None:
    lines = sentences(rows, budget=1000)
    order, _, _ = lines.at(0, 0, 1)
    batch = lines.batch(order, counts=True)
    chosen = [rows[row] for row in order.tolist()]
    assert sequences(batch.words) == [[START, *row] for row in chosen]
    labels = batch.labels.split(batch.words.lengths.tolist())
    assert [label.tolist() for label in labels] == [[*row, END] for row in chosen]
    assert batch.tokens == len(batch.labels)
    idle = lines.batch(order, counts=False)
    assert idle.tokens == 0
    assert idle.labels.eq(IGNORED).all()


@given(texts)
def test_what_fills_a_shape_is_never_predicted_and_shares_are_not_filled(
    rows: list[list[int]],
) -> None:
    plain, mixed = (
        sentences(rows, budget=60, make=make)
        for make in (Batches.of_lengths, MixedBatches.of_lengths)
    )
    for position in range(len(mixed)):
        order, _, _ = mixed.at(position, 0, 1)
        filled, bare = mixed.batch(order, counts=True), plain.batch(order, counts=True)
        assert len(filled.words.tokens) % 16 == 0
        assert sequences(filled.words) == sequences(bare.words)
        assert filled.labels[: filled.tokens].equal(bare.labels)
        assert filled.labels[filled.tokens :].eq(IGNORED).all()
        share = mixed.batch(order, counts=True, whole=False)
        assert share.words.tokens.equal(bare.words.tokens)


Make = Callable[..., LanguageModelling]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    words = ["a", "b", "c", "d"]
    rows = [" ".join(words[(i + j * j) % 4] for j in range(1 + i % 5)) for i in range(40)]
    (tmp_path / "train.txt").write_text("\n".join(rows) + "\n")
    (tmp_path / "valid.txt").write_text("\n".join(rows[:7]) + "\n")
    return tmp_path


@pytest.fixture
def make(text: Path) -> Make:
    def made(*, seed: int = 0, budget: int = 24, **changed: Any) -> LanguageModelling:
        fixed: dict[str, Any] = {"level": "words", "unit": "lines", "window": 8}
        settings = LanguageSettings(data=str(text), **{**fixed, **changed})
        return LanguageModelling(settings, Preparation(budget=budget, seed=seed))

    return made


MODELS: dict[str, ModelConfig] = {
    "gpt": GptConfig(width=16, depth=1, heads=2, longest=32, dropout=0.0),
    "rnn": RnnLanguageConfig(width=16, dropout=0.0),
}


def model_of(task: LanguageModelling, name: str = "gpt") -> nn.Module:
    torch.manual_seed(0)
    return replace(MODELS[name], vocabulary=len(task.vocabulary)).build().double()


@pytest.mark.parametrize("unit", ["lines", "stream"])
def test_it_is_a_task_and_its_batches_are_batches(unit: str, make: Make) -> None:
    task = make(unit=unit)
    assert isinstance(task, Task)
    assert isinstance(task.batch(0), Batch)


@pytest.mark.parametrize("name", MODELS)
def test_a_batch_of_lines_costs_what_its_lines_cost_one_by_one(name: str, make: Make) -> None:
    task = make(label_smoothing=0.1)
    model = model_of(task, name).eval()
    rows = [[4, 5, 6, 7], [7], [], [5, 5, 4]]
    together = sentences(rows, budget=1000)
    loss = total_loss(task, model, together.batch(torch.arange(4), counts=True)).item()
    alone = sum(
        total_loss(task, model, together.batch(torch.tensor([i]), counts=True)).item()
        for i in range(4)
    )
    assert loss == pytest.approx(alone, rel=1e-10)


@pytest.mark.parametrize("unit", ["lines", "stream"])
@pytest.mark.parametrize("shards", [2, 3, 9])
def test_the_shares_of_all_processes_cost_what_the_batch_costs(
    unit: str, shards: int, make: Make
) -> None:
    task = make(unit=unit)
    model = model_of(task).eval()
    for position in range(2):
        whole = task.batch(position)
        shares = [task.batch(position, shard=i, shards=shards) for i in range(shards)]
        assert sum(share.tokens for share in shares) == whole.tokens
        total = sum(total_loss(task, model, share).item() for share in shares)
        assert total == pytest.approx(total_loss(task, model, whole).item(), rel=1e-10)


@pytest.mark.parametrize("unit", ["lines", "stream"])
def test_a_position_gives_the_same_batch_whatever_was_asked_before(unit: str, make: Make) -> None:
    one, other = make(unit=unit), make(unit=unit)
    backwards = {p: other.batch(p) for p in reversed(range(20))}
    for position in range(20):
        ours, theirs = one.batch(position), backwards[position]
        assert sequences(ours.words) == sequences(theirs.words)
        assert ours.labels.equal(theirs.labels)


def test_validation_of_lines_is_the_mean_loss_per_token(make: Make, text: Path) -> None:
    task = make(label_smoothing=0.4)
    model, plain = model_of(task).eval(), make(label_smoothing=0.0)
    rows = [task.vocabulary.encode(line) for line in (text / "valid.txt").read_text().split("\n")]
    rows = [row for row in rows if row]
    lines = sentences(rows, budget=1000)
    total = total_loss(plain, model, lines.batch(torch.arange(len(rows)), counts=True)).item()
    mean = total / sum(len(row) + 1 for row in rows)
    assert task.validate(model, CPU)["loss"] == pytest.approx(mean, rel=1e-10)
    assert texts_loss(model, Ragged.of(rows), OURS, "lines", CPU) == pytest.approx(mean, rel=1e-10)


def test_a_stream_is_validated_by_a_state_that_is_carried_along(make: Make) -> None:
    """However long the pieces in which a recurrent model reads it."""
    task = make(unit="stream")
    model = model_of(task, "rnn").eval()
    rng = torch.Generator().manual_seed(0)
    words = torch.randint(4, len(task.vocabulary), (2500,), generator=rng)
    with torch.no_grad():
        features, _ = model.read(words[None, :-1], None)  # type: ignore[operator]
        logp = model.output(features[0]).log_softmax(dim=-1)  # type: ignore[operator]
    mean = -logp[torch.arange(2499), words[1:]].mean().item()
    found = texts_loss(model, Ragged.of([words.tolist()]), OURS, "stream", CPU)
    assert found == pytest.approx(mean, rel=1e-5)


def test_a_stream_is_validated_window_by_window_where_the_reach_is_short(make: Make) -> None:
    task = make(unit="stream")
    model = model_of(task).eval()
    reach = model.reach
    assert isinstance(reach, int)
    words = torch.arange(reach + 5) ** 2 % 4 + 4
    total = 0.0
    with torch.no_grad():
        for i in range(1, len(words)):
            known = words[(i - 1) // reach * reach : i]
            features = model(known[None])[0, -1]
            total -= model.output(features).log_softmax(dim=-1)[words[i]].item()  # type: ignore
    found = texts_loss(model, Ragged.of([words.tolist()]), OURS, "stream", CPU)
    assert found == pytest.approx(total / (len(words) - 1), rel=1e-5)


def test_without_a_validation_file_the_last_tenth_is_held_out(make: Make, text: Path) -> None:
    (text / "valid.txt").unlink()
    for unit in ("lines", "stream"):
        settings = make(unit=unit).settings
        train, valid = (read_language(settings, split)[0] for split in ("train", "valid"))
        glue = "\n" if unit == "lines" else ""
        assert glue.join(train + valid).strip() == (text / "train.txt").read_text().strip()
        share = sum(map(len, valid)) / sum(map(len, train + valid))
        assert 0.05 < share < 0.15


@pytest.mark.parametrize("unit", ["lines", "stream"])
def test_the_fingerprint_changes_with_the_data_alone(unit: str, make: Make, text: Path) -> None:
    one = make(unit=unit).fingerprint()
    assert one == make(unit=unit, seed=3, budget=80).fingerprint()
    path = text / "train.txt"
    path.write_text(path.read_text().replace("a", "b", 1))
    assert make(unit=unit).fingerprint() != one


def test_lines_tell_their_padding_and_streams_have_none(make: Make) -> None:
    assert make(unit="stream").padding == 0
    assert 0 <= make(budget=24).padding < 1
    assert make(budget=1000).padding > 0.2


def test_without_data_it_learns_the_three_sentence_world() -> None:
    settings = LanguageSettings(unit="lines", level="words", sentences=50)
    task = LanguageModelling(settings, Preparation(budget=512, seed=0))
    assert task.report[0] == "train: 50 sentences of the three-sentence world, split train"
    assert sum(len(task.batch(i).words.lengths) for i in range(task.batches_per_epoch)) == 50
