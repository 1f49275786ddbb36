"""Masked language modelling: batches, losses and figures of hidden words, pairs, replacements."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from saccade.errors import ConfigError, DataError
from saccade.models.text.bert import Bert, BertConfig
from saccade.models.text.electra import Electra, ElectraConfig
from saccade.tasks.base import Batch, Fillable, Preparation, Task
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.masked.batch import MaskedBatch
from saccade.tasks.masked.losses import REPLACED_WEIGHT, replace_words
from saccade.tasks.masked.task import MaskedLanguageModelling, MaskedSettings
from tests.data.tokenizers_made import TEXTS, bert_like, gpt_like
from tests.marks import one_fast
from tests.tasks import sequences, total_loss

CPU = torch.device("cpu")
SIZES: dict[str, Any] = {"width": 16, "depth": 1, "heads": 2, "hidden": 16, "longest": 40}
BERT = BertConfig(**SIZES, dropout=0.0)
ELECTRA = ElectraConfig(**SIZES, dropout=0.0, embedding_width=8, generator=0.5)
Make = Callable[..., MaskedLanguageModelling]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    words = ["a", "b", "c", "d", "e", "f"]
    rows = [" ".join(words[(i + j * j) % 6] for j in range(2 + i % 9)) for i in range(50)]
    (tmp_path / "train.txt").write_text("\n".join(rows) + "\n")
    (tmp_path / "valid.txt").write_text("\n".join(rows[:12]) + "\n")
    return tmp_path


@pytest.fixture
def make(text: Path) -> Make:
    def made(*, seed: int = 0, budget: int = 48, **changed: Any) -> MaskedLanguageModelling:
        own = {name: changed.pop(name) for name in ("batching", "start") if name in changed}
        settings = MaskedSettings(data=str(text), **{"level": "words", "window": 24, **changed})
        return MaskedLanguageModelling(settings, Preparation(budget=budget, seed=seed, **own))

    return made


def model_of(task: MaskedLanguageModelling, config: Any = BERT) -> nn.Module:
    torch.manual_seed(0)
    return task.fit(config).build().double().eval()


OPTIONS: dict[str, dict[str, Any]] = {
    "lines": {},
    "stream": {"unit": "stream", "window": 12},
    "pairs": {"next_sentence": True},
    "whole words": {"whole_words": True, "level": "bpe", "vocabulary": 280},
    "mixed": {"batching": "mixed"},
    "mixed pairs": {"batching": "mixed", "next_sentence": True},
}
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


@every_option
def test_it_is_a_task_and_its_batches_are_batches(options: dict[str, Any], make: Make) -> None:
    task = make(**options)
    batch = task.batch(0)
    assert isinstance(task, Task)
    assert isinstance(batch, Batch)
    assert isinstance(batch, Fillable)
    model = model_of(task)
    assert total_loss(task, model, batch).isfinite()
    assert list(task.losses(model, batch)) == (
        ["words", "next"] if "next_sentence" in options else ["words"]
    )


@every_option
def test_a_position_gives_the_same_batch_whatever_was_asked_before(
    options: dict[str, Any], make: Make
) -> None:
    one, other = make(**options), make(**options)
    backwards = {p: other.batch(p) for p in reversed(range(12))}
    for position in range(12):
        ours, theirs = one.batch(position), backwards[position]
        assert sequences(ours.rows) == sequences(theirs.rows)
        assert torch.equal(ours.at, theirs.at)
        assert torch.equal(ours.labels, theirs.labels)


@every_option
def test_the_shares_of_all_processes_cost_what_the_batch_costs(
    options: dict[str, Any], make: Make
) -> None:
    task = make(**options)
    model = model_of(task)
    for position in range(2):
        whole = task.batch(position)
        for shards in (2, 9):
            shares = [task.batch(position, shard=i, shards=shards) for i in range(shards)]
            assert sum(share.tokens for share in shares) == whole.tokens
            total = sum(total_loss(task, model, share).item() for share in shares)
            assert total == pytest.approx(total_loss(task, model, whole).item(), rel=1e-9)


@every_option
@pytest.mark.parametrize("config", one_fast([BERT, ELECTRA]), ids=["bert", "electra"])
def test_filled_up_for_a_gpu_a_batch_costs_the_same(
    options: dict[str, Any], config: Any, make: Make
) -> None:
    if config is ELECTRA and "next_sentence" in options:
        pytest.skip("an electra learns from single texts")
    task = make(**options)
    model = model_of(task, config)
    for position in range(task.batches_per_epoch):
        batch = task.batch(position)
        filled = batch.filled()
        assert len(filled.at) == batch.slots >= len(batch.at) == batch.tokens
        found: list[dict[str, float]] = []
        gradients: list[list[Tensor | None]] = []
        for one in (batch, filled):
            with _noise_by_place():
                losses = task.losses(model, one)
            model.zero_grad()
            sum(losses.values(), torch.zeros(())).backward()
            found.append({name: loss.item() for name, loss in losses.items()})
            gradients.append([p.grad for p in model.parameters()])
        assert found[0] == pytest.approx(found[1], rel=1e-12)
        for ours, theirs in zip(*gradients):
            torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-12)


class _noise_by_place:  # noqa: N801
    """The same noise for the same slot, however many slots there are."""

    def __enter__(self) -> None:
        self.plain = torch.rand

        def rand(shape: torch.Size, **_: Any) -> Tensor:
            rows = [torch.Generator().manual_seed(row) for row in range(shape[0])]
            return torch.stack([self.plain(shape[1], generator=rng) for rng in rows])

        torch.rand = rand  # type: ignore[assignment]

    def __exit__(self, *error: object) -> None:
        torch.rand = self.plain


@pytest.fixture
def long_words(text: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Whole words of one to six pieces, in texts of which many are equally long."""
    monkeypatch.setattr("saccade.tasks.masked.batch.ROUND", 1)  # which would hide differences
    letters = "xyzuvwxyzuvwxyz"
    rows = [f"{letters[: 1 + i % 6]} {letters[: 7 - i % 6]} a {letters[i % 9]}" for i in range(60)]
    (text / "train.txt").write_text("\n".join(rows) + "\n")
    return {"whole_words": True, "level": "bpe", "vocabulary": 261}  # nothing but bytes


def test_mixed_batches_have_one_shape_in_every_epoch(
    make: Make, long_words: dict[str, Any]
) -> None:
    for options in ({}, long_words):
        task = make(batching="mixed", **options)
        shapes = {task.batch(p).filled().shape for p in range(6 * task.batches_per_epoch)}
        assert len(shapes) == 1


def test_batches_of_similar_length_have_the_same_few_shapes_in_every_epoch(
    make: Make, long_words: dict[str, Any]
) -> None:
    task = make(**long_words, budget=100)
    count = task.batches_per_epoch
    first, *later = (
        {task.batch(epoch * count + p).filled().shape for p in range(count)} for epoch in range(6)
    )
    assert later == [first] * 5


def masked_by_hand(model: Bert, batch: MaskedBatch) -> Tensor:
    """−log p of each hidden word, text by text: no texts end to end."""
    ends = batch.rows.starts.tolist()
    found: list[Tensor] = []
    for at, label in zip(batch.at.tolist(), batch.labels.tolist()):
        row = next(i for i, end in enumerate(ends[1:]) if at < end)
        part = slice(ends[row], ends[row + 1])
        tokens, types = batch.rows.tokens[part], batch.types[part]
        rows = type(batch.rows).of(tokens, torch.tensor([len(tokens)]))
        logits = model.output(model.transformed(model(rows, types)))[at - ends[row]]
        found.append(F.cross_entropy(logits, torch.tensor(label)))
    return torch.stack(found)


def test_validation_is_the_mean_loss_of_hidden_words_which_are_always_the_same(
    make: Make,
) -> None:
    task = make()
    model = model_of(task)
    assert isinstance(model, Bert)
    other = make(seed=9)
    figures = task.validate(model, CPU)
    fixed = task._valid
    by_hand = masked_by_hand(model, fixed.batch(torch.arange(fixed.batches.rows), epoch=0))
    assert figures["loss"] == pytest.approx(by_hand.mean().item(), rel=1e-9)
    assert figures == other.validate(model, CPU)
    assert set(figures) == {"loss", "perplexity", "accuracy"}
    assert figures["perplexity"] == pytest.approx(torch.tensor(figures["loss"]).exp().item())
    assert task.deciding.figure == "loss"
    assert not task.deciding.higher


def test_the_loss_of_a_batch_is_that_of_its_texts_one_by_one(make: Make) -> None:
    task = make()
    model = model_of(task)
    assert isinstance(model, Bert)
    batch = task.batch(1)
    by_hand = masked_by_hand(model, batch).sum().item()
    assert task.losses(model, batch)["words"].item() == pytest.approx(by_hand, rel=1e-9)


def test_the_loss_of_what_follows_is_weighed_as_a_mean(make: Make) -> None:
    task = make(next_sentence=True, batching="mixed", budget=400)
    model: Any = model_of(task)
    batch = task.batch(0)
    assert batch.follows is not None
    logits = model.follows(model(batch.rows, batch.types), batch.rows)
    told = batch.follows != IGNORED
    mean = F.cross_entropy(logits[told], batch.follows[told]).item()
    losses = task.losses(model, batch)
    assert losses["next"].item() / batch.tokens == pytest.approx(mean, rel=0.15)
    assert task.validate(model, CPU)["next_accuracy"] in [i / 11 for i in range(12)]


def test_an_electra_draws_from_its_generator_and_tells_the_author_s_words(make: Make) -> None:
    task = make(budget=400)
    model: Any = model_of(task, ELECTRA)
    assert isinstance(model, Electra)
    batch, mask = task.batch(0), task.vocabulary.mask
    assert mask is not None
    author = batch.rows.tokens.clone()
    author[batch.at] = batch.labels
    torch.manual_seed(7)
    losses = task.losses(model, batch)
    torch.manual_seed(7)
    seen = replace_words(model.generator, batch, mask)
    others = torch.ones(len(author), dtype=torch.bool)
    others[batch.at] = False
    assert torch.equal(seen.rows.tokens[others], author[others])
    assert torch.equal(seen.wrong, seen.rows.tokens != author)
    blank = author.clone()
    blank[batch.at] = mask
    hidden = model.generator(batch.rows._replace(tokens=blank), batch.types)[batch.at]
    logits = model.generator.output(model.generator.transformed(hidden))
    by_hand = F.cross_entropy(logits, batch.labels, reduction="sum").item()
    assert losses["generator"].item() == pytest.approx(by_hand, rel=1e-5)
    z = model.scores(model(seen.rows, batch.types), seen.rows)[:, 0]
    mean = F.binary_cross_entropy_with_logits(z, seen.wrong.double()).item()
    found = losses["replaced"].item() / batch.tokens
    assert found == pytest.approx(REPLACED_WEIGHT * mean, rel=0.15)


@pytest.mark.slow
def test_draws_follow_the_generator_s_probabilities(make: Make) -> None:
    task = make(budget=400)
    model: Any = model_of(task, ELECTRA)
    batch, mask = task.batch(0), task.vocabulary.mask
    assert mask is not None
    model.generator_layers.words.bias.data = torch.linspace(-2, 2, len(task.vocabulary)).double()
    seen = replace_words(model.generator, batch, mask)
    p = model.generator.output(seen.features)[0].softmax(dim=-1)
    draws = torch.Generator().manual_seed(0)
    found = torch.stack(
        [replace_words(model.generator, batch, mask, draws).rows.tokens for _ in range(600)]
    )[:, batch.at[0]]
    shares = torch.bincount(found, minlength=len(p)) / len(found)
    assert (shares - p).abs().max() < 0.06


def test_no_gradient_goes_through_the_draws(make: Make) -> None:
    task = make()
    model: Any = model_of(task, ELECTRA)
    task.losses(model, task.batch(0))["replaced"].backward()
    own = dict(model.generator_layers.named_parameters())
    assert own
    assert all(parameter.grad is None for parameter in own.values())
    assert model.discriminator.embeddings.words.weight.grad.abs().sum() > 0


def test_figures_of_an_electra_are_repeatable_and_tell_both_parts(make: Make) -> None:
    task = make()
    model = model_of(task, ELECTRA)
    figures = task.validate(model, CPU)
    assert figures == task.validate(model, CPU)
    assert set(figures) == {"loss", "perplexity", "accuracy", "replaced", "recall"}
    generator = torch.tensor(figures["perplexity"]).log().item()
    whole = generator + REPLACED_WEIGHT * figures["replaced"]
    assert figures["loss"] == pytest.approx(whole, rel=1e-4)
    assert 0 <= figures["recall"] <= 1


def test_the_model_becomes_what_the_task_needs(make: Make) -> None:
    single, pairs = make(), make(next_sentence=True)
    tagger = replace(BERT, head="tokens", next_sentence=True)
    fitted: Any = single.fit(tagger)
    assert (fitted.head, fitted.next_sentence) == ("words", False)
    assert fitted.vocabulary == len(single.vocabulary)
    fitted = pairs.fit(tagger)
    assert (fitted.head, fitted.next_sentence) == ("words", True)
    fitted = single.fit(ELECTRA)
    assert (fitted.head, fitted.vocabulary) == ("replaced", len(single.vocabulary))


def test_the_fingerprint_changes_with_the_data_alone(make: Make, text: Path) -> None:
    one = make().fingerprint()
    assert one == make(seed=3, budget=80).fingerprint()
    path = text / "train.txt"
    path.write_text(path.read_text().replace("a", "b", 1))
    assert make().fingerprint() != one


def test_what_is_too_long_or_has_no_known_word_is_left_out_and_told(make: Make, text: Path) -> None:
    task = make(window=8)
    assert "left out: 20 training lines over 8 tokens (--window)" in task.report
    lengths = [n for p in range(task.batches_per_epoch) for n in task.batch(p).rows.lengths]
    assert max(lengths) == 8
    (text / "valid.txt").write_text("x y\na b\n")
    assert len(make()._valid) == 1
    (text / "valid.txt").write_text("x y\n")
    with pytest.raises(DataError, match="none of the validation lines has a word that the"):
        make()
    with pytest.raises(DataError, match="raise --window, or give --unit stream"):
        make(window=3)


def test_somebody_else_s_tokenizer_brings_its_mask_and_its_frame(
    make: Make, text: Path, tmp_path: Path
) -> None:
    (text / "train.txt").write_text("\n".join(TEXTS * 5) + "\n")
    (text / "valid.txt").write_text("\n".join(TEXTS) + "\n")
    bert_like().save(str(tmp_path / "tokenizer.json"))
    task = make(start=tmp_path, next_sentence=True, window=128, budget=512)
    pad, start, end, unknown, mask = task.vocabulary.special
    assert (pad, unknown, start, end, mask) == (0, 1, 2, 3, 4)
    batch = task.batch(0)
    assert not set(batch.labels.tolist()) & {0, 1, 2, 3, 4}
    for row, types in zip(sequences(batch.rows), batch.types.split(batch.rows.lengths.tolist())):
        middle = row.index(end)
        assert (row[0], row[-1], row.count(end)) == (start, end, 2)
        assert types.tolist() == [0] * (middle + 1) + [1] * (len(row) - middle - 1)
    assert (batch.rows.tokens == mask).sum() > 0
    gpt_like().save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(ConfigError, match=r"no token for hidden words, such as \[MASK\]; start"):
        make(start=tmp_path)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"masked": 0.0}, "masked=0.0 must be above 0 and below 1, as 0.15"),
    ({"masked": 1.0}, "masked=1.0 must be above 0"),
    ({"window": 0}, "window=0 must be at least 1"),
    ({"next_sentence": True, "unit": "stream"}, "lines that follow each other; give --unit lines"),
]


@pytest.mark.parametrize(("settings", "says"), WRONG)
def test_wrong_settings_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        MaskedSettings(**settings)


def test_models_that_do_not_suit_the_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="next_sentence=True is of data of your own"):
        MaskedSettings(next_sentence=True).check(BERT)
    with pytest.raises(ConfigError, match="learns from single texts; leave --next-sentence out"):
        MaskedSettings(data="x", next_sentence=True).check(ELECTRA)
    with pytest.raises(ConfigError, match="window=64 is more than the model's longest=40; give"):
        MaskedSettings(unit="stream", window=64).check(BERT)


def test_a_window_needs_room_for_words(make: Make) -> None:
    with pytest.raises(ConfigError, match="window=2 leaves no room for words beside 2 special"):
        make(unit="stream", window=2)


def test_without_data_it_learns_lingua_s_english_sentences() -> None:
    settings = MaskedSettings(sentences=60, vocabulary=400, window=512)
    task = MaskedLanguageModelling(settings, Preparation(budget=1024, seed=0))
    assert task.report[0] == "train: 60 English sentences of lingua, split train"
    assert sum(len(task.batch(i).rows.lengths) for i in range(task.batches_per_epoch)) == 60
