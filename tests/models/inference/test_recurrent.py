"""RNN translators with attention stripped for decoding say what the models say."""

from typing import Any

import pytest
import torch

from saccade.blocks.inference import recurrent
from saccade.config import ModelConfig
from saccade.data.tokens.vocabulary import OURS
from saccade.decode.engine import Decoding, decode
from saccade.models import RnnAttentionConfig
from saccade.models.inference.recurrent import RecurrentDecoding
from tests.models.zoo import LENGTHS, READERS, SOURCE, TARGET, TRANSLATORS, VOCABULARY, build

END = OURS.end

CELLS = {n: c for n, c in TRANSLATORS.items() if isinstance(c, RnnAttentionConfig)}
CONFIGS = {**CELLS, **dict(list(READERS.items())[::5])}  # every two options meet
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
every_cell = pytest.mark.parametrize("config", CELLS.values(), ids=CELLS)
FIRST, LIMITS = torch.ones(3, dtype=torch.long), torch.tensor([9, 4, 7])


def stripped(model: Any) -> RecurrentDecoding:
    made = model.for_decoding("float32")
    assert isinstance(made, RecurrentDecoding)
    return made


@pytest.mark.slow
@every_config
def test_every_step_scores_words_as_the_model_does(config: ModelConfig) -> None:
    model = build(config)
    ours = stripped(model)
    state, expected = ours.start(SOURCE, LENGTHS), model.start(SOURCE, LENGTHS)
    with torch.inference_mode():
        for t in range(6):
            scores, state = ours.step(TARGET[:, t], state)
            known, expected = model.step(TARGET[:, t], expected)
            torch.testing.assert_close(scores, known, atol=1e-12, rtol=0)


@every_cell
def test_words_that_are_too_many_for_a_table_are_multiplied_as_they_come(
    config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(config)
    looked_up, state = stripped(model), stripped(model).start(SOURCE, LENGTHS)
    monkeypatch.setattr(recurrent, "LARGEST_TABLE", 0)
    multiplied = stripped(model)
    assert len(multiplied.decoder.words.table[0]) == model.config.width
    torch.testing.assert_close(
        multiplied.step(TARGET[:, 0], state)[0], looked_up.step(TARGET[:, 0], state)[0]
    )


@every_cell
def test_beams_that_change_places_are_scored_as_copied_rows_are(config: ModelConfig) -> None:
    model, beams, rng = build(config), 3, torch.Generator().manual_seed(0)
    ours = stripped(model)
    state = ours.start(SOURCE, LENGTHS).spread(beams)
    copied = model.start(SOURCE, LENGTHS).select(torch.arange(3).repeat_interleave(beams))
    sentences = torch.arange(3)
    with torch.inference_mode():
        for t in range(6):
            tokens = torch.randint(VOCABULARY, (len(sentences) * beams,), generator=rng)
            expected, copied = model.step(tokens, copied)
            scores, state = ours.step(tokens, state)
            torch.testing.assert_close(scores, expected, atol=1e-12, rtol=0)
            parents = torch.randint(beams, (len(sentences), beams), generator=rng)
            state = state.follow(parents)
            firsts = beams * torch.arange(len(sentences))[:, None]
            copied = copied.select((parents + firsts).flatten())
            if t == 2:  # a sentence leaves
                stay = torch.tensor([2, 0])
                state, sentences = state.select(stay), sentences[stay]
                copied = copied.select((beams * stay[:, None] + torch.arange(beams)).flatten())


@pytest.mark.slow
@every_config
@pytest.mark.parametrize("beam", [1, 4])
def test_writes_what_the_model_writes(config: ModelConfig, beam: int) -> None:
    model, how = build(config, torch.float32), Decoding(beam=beam, n_best=beam)
    ours = stripped(model)
    with torch.inference_mode():
        expected, found = (
            decode(who, who.start(SOURCE, LENGTHS), FIRST, limits=LIMITS, end=END, how=how)
            for who in (model, ours)
        )
    for those, these in zip(expected, found, strict=True):
        assert [one.tokens for one in these] == [one.tokens for one in those]
        assert [one.finished for one in these] == [one.finished for one in those]
        for one, other in zip(these, those):
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_some_of_what_is_written_ends_before_its_limit() -> None:
    """Or the test above would say little."""
    ends = set[bool]()
    for config in CELLS.values():
        model = build(config, torch.float32)
        with torch.inference_mode():
            state = model.start(SOURCE, LENGTHS)
            found = decode(model, state, FIRST, limits=LIMITS, end=END, how=Decoding(beam=1))
        ends |= {one[0].finished for one in found}
    assert ends == {True, False}


@every_cell
def test_half_precision_stays_near(config: ModelConfig) -> None:
    model = build(config, torch.float32)
    exact, rough = stripped(model), model.for_decoding("bfloat16")
    assert isinstance(rough, RecurrentDecoding)
    known, state = exact.start(SOURCE, LENGTHS), rough.start(SOURCE, LENGTHS)
    for t in range(6):
        expected, known = exact.step(TARGET[:, t], known)
        scores, state = rough.step(TARGET[:, t], state)
        assert scores.dtype == torch.bfloat16
        assert 0 < (scores.float() - expected).norm() / expected.norm() < 0.1
