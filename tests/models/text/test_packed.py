"""Sentences end to end: the same as padded ones, and what fills a shape changes nothing."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.attention.look.looking import looking
from saccade.config import ModelConfig
from saccade.data.batching.mixed import MixedBatches
from saccade.data.batching.ragged import Ragged
from saccade.data.batching.rows import BatchShape, Rows
from saccade.data.tokens.vocabulary import OURS
from saccade.models import GptConfig, TransformerConfig
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.language import task as language
from saccade.tasks.language.task import LanguageBatch, lines_batch
from saccade.tasks.translation import task as translation
from saccade.tasks.translation.task import TranslationBatch, collate
from tests.models.zoo import LANGUAGE, TRANSLATORS, VOCABULARY, build, shrunk
from tests.tasks import sentences

TRANSFORMERS = {n: c for n, c in TRANSLATORS.items() if isinstance(c, TransformerConfig)}
GPTS = {n: c for n, c in LANGUAGE.items() if isinstance(c, GptConfig)}
LATER = torch.randint(4, VOCABULARY, (40,), generator=torch.Generator().manual_seed(0)).tolist()
SOURCES = [LATER[:5], LATER[5:6], [], LATER[7:14], LATER[3:6], LATER[6:9]]
TARGETS = [LATER[14:16], LATER[16:22], LATER[22:23], [], LATER[8:12], LATER[4:8]]
SHAPES = BatchShape(64, 10, 16), BatchShape(48, 10, 16)
SMOOTHING = 0.1


def pairs(shapes: tuple[BatchShape, BatchShape] | None = None) -> TranslationBatch:
    sides = Ragged.of(SOURCES), Ragged.of(TARGETS)
    return collate(sides, torch.arange(len(SOURCES)), OURS, shapes=shapes)


def lines(shape: BatchShape | None = None) -> LanguageBatch:
    batch = lines_batch(Ragged.of(SOURCES), torch.arange(6), OURS)
    if shape is None:
        return batch
    words = Rows.of(batch.words.tokens, batch.words.lengths, shape=shape)
    rest = batch.labels.new_full((len(words.tokens) - len(batch.labels),), IGNORED)
    return LanguageBatch(words, torch.cat([batch.labels, rest]), batch.tokens)


def one_by_one(model: nn.Module, batch: TranslationBatch) -> Tensor:
    found = []
    sides = (rows.tokens[: rows.real].split(rows.lengths.tolist()) for rows in batch[:2])
    for source, target in zip(*sides):
        found.append(model(source[None], torch.tensor([len(source)]), target[None])[0])
    return torch.cat(found)


@pytest.mark.slow
@pytest.mark.parametrize("config", TRANSFORMERS.values(), ids=TRANSFORMERS)
def test_a_transformer_knows_the_same_end_to_end_padded_and_one_by_one(
    config: ModelConfig,
) -> None:
    model, batch = build(config), pairs()
    packed = model.packed(batch.source, batch.target)
    padded = model(batch.source.padded(), batch.source.lengths, batch.target.padded())
    torch.testing.assert_close(packed, batch.target.out_of_rectangle(padded))
    torch.testing.assert_close(packed, one_by_one(model, batch))


@pytest.mark.parametrize("config", GPTS.values(), ids=GPTS)
def test_a_gpt_knows_the_same_end_to_end_padded_and_one_by_one(config: ModelConfig) -> None:
    model, words = build(config), lines().words
    packed = model.packed(words)
    torch.testing.assert_close(packed, words.out_of_rectangle(model(words.padded())))
    alone = [model(line[None])[0] for line in words.tokens.split(words.lengths.tolist())]
    torch.testing.assert_close(packed, torch.cat(alone))


def test_only_positions_that_depend_on_the_length_cannot_lie_end_to_end() -> None:
    for config in TRANSFORMERS.values():
        assert build(config).packs
    config = shrunk(TransformerConfig(positions="fraction"))
    model, batch = build(config), pairs()
    assert not model.packs
    loss = translation._loss(model, batch, 0.0)  # so they are padded
    padded = model(batch.source.padded(), batch.source.lengths, batch.target.padded())
    scores = model.output(batch.target.out_of_rectangle(padded))
    expected = nn.functional.cross_entropy(scores, batch.labels, reduction="sum")
    torch.testing.assert_close(loss, expected)


def with_gradients(model: nn.Module, loss: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    model.zero_grad()
    loss.backward()
    return loss.detach(), {
        n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None
    }


@pytest.mark.parametrize("config", TRANSFORMERS.values(), ids=TRANSFORMERS)
def test_filling_changes_neither_loss_nor_gradients_of_a_translation(config: ModelConfig) -> None:
    model = build(config).train()
    plain, filled = (
        with_gradients(model, translation._loss(model, pairs(shapes), SMOOTHING))
        for shapes in (None, SHAPES)
    )
    assert plain[1].keys() == dict(model.named_parameters()).keys()
    torch.testing.assert_close(filled, plain, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("config", GPTS.values(), ids=GPTS)
def test_filling_changes_neither_loss_nor_gradients_of_a_text(config: ModelConfig) -> None:
    model = build(config).train()
    plain, filled = (
        with_gradients(model, language._loss(model, lines(shape), SMOOTHING))
        for shape in (None, SHAPES[0])
    )
    assert plain[1].keys() == dict(model.named_parameters()).keys()
    torch.testing.assert_close(filled, plain, rtol=1e-9, atol=1e-11)


def test_filling_needs_no_position_beyond_those_of_the_longest_text() -> None:
    """However long the kernels are told that sequences may be."""
    rows = [[5] * 18] * 3 + [[4]] * 2
    cut = sentences(rows, budget=40, make=MixedBatches.of_lengths)
    model = build(replace(shrunk(GptConfig()), longest=19))  # type: ignore[call-arg]
    for position in range(len(cut)):
        batch = cut.batch(cut.at(position, 0, 1)[0], counts=True)
        assert batch.words.longest > 19
        assert language._loss(model, batch, 0.0).isfinite()


UNPACKED = {
    name: next(config for other, config in TRANSLATORS.items() if other.startswith(name))
    for name in ("seq2seq", "rnn-attention", "convolutional")
}


@pytest.mark.parametrize("config", UNPACKED.values(), ids=UNPACKED)
def test_models_that_cannot_pack_are_padded_and_filling_changes_nothing(config: Any) -> None:
    model = build(config).train()
    plain, filled = (
        with_gradients(model, translation._loss(model, pairs(shapes), SMOOTHING))
        for shapes in (None, SHAPES)
    )
    torch.testing.assert_close(filled, plain, rtol=1e-9, atol=1e-11)


LOOKED_AT = {
    "translation": (TransformerConfig(residual="pre"), pairs, translation._loss),
    "translation, filled up": (TransformerConfig(), lambda: pairs(SHAPES), translation._loss),
    "text": (GptConfig(), lines, language._loss),
}


@pytest.mark.parametrize("kind", LOOKED_AT)
def test_looking_changes_no_bit_of_a_packed_loss_or_of_its_gradients(kind: str) -> None:
    config, batch, loss = LOOKED_AT[kind]
    config = replace(shrunk(config), dropout=0.2)  # type: ignore[call-arg]
    model = build(config, torch.float32).train()

    def learnt() -> tuple[Tensor, dict[str, Tensor]]:
        torch.manual_seed(1)
        return with_gradients(model, loss(model, batch(), SMOOTHING))  # type: ignore[operator]

    before, slopes = learnt()
    with looking(model) as trace:
        after, seen = learnt()
    assert after.equal(before)
    assert seen.keys() == slopes.keys()
    assert all(seen[name].equal(slope) for name, slope in slopes.items())
    weights = trace.weights()
    assert len(weights) > 1
    for each in weights.values():
        assert each.shape[0] == 1
        sums = each.sum(dim=-1)
        torch.testing.assert_close(sums, sums.round().clamp(0, 1))  # 0 for whoever is blind
