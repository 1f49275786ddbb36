"""Models stripped for decoding say what the models say."""

from typing import Any

import pytest
import torch

from saccade.config import ModelConfig
from saccade.models import GptConfig, TransformerConfig
from saccade.models.inference.lean import lean
from tests.models.zoo import (
    LANGUAGE,
    LENGTHS,
    SOURCE,
    TARGET,
    TRANSLATORS,
    VOCABULARY,
    begin,
    build,
)

KINDS = (TransformerConfig, GptConfig)
CONFIGS = {n: c for n, c in {**TRANSLATORS, **LANGUAGE}.items() if isinstance(c, KINDS)}
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


def start(stripped: Any) -> Any:
    if isinstance(stripped.model.config, GptConfig):
        return stripped.start(len(SOURCE))
    return stripped.start(SOURCE, LENGTHS)


@every_config
def test_every_step_scores_words_as_the_model_does(config: ModelConfig) -> None:
    model = build(config)
    stripped: Any = lean(model, "float32")
    state, expected = start(stripped), begin(model)
    with torch.inference_mode():
        for t in range(6):
            scores, state = stripped.step(TARGET[:, t], state)
            known, expected = model.step(TARGET[:, t], expected)
            torch.testing.assert_close(scores, known, atol=1e-12, rtol=0)


@pytest.mark.slow
@every_config
def test_beams_that_change_places_are_scored_as_copied_rows_are(config: ModelConfig) -> None:
    model, beams, rng = build(config), 3, torch.Generator().manual_seed(0)
    stripped: Any = lean(model, "float32")
    states = {"lean": start(stripped).spread(beams), "model": begin(model).spread(beams)}
    copied = begin(model).select(torch.arange(3).repeat_interleave(beams))
    with torch.inference_mode():
        for _ in range(18):  # pools are tidied twice
            tokens = torch.randint(VOCABULARY, (3 * beams,), generator=rng)
            expected, copied = model.step(tokens, copied)
            for name, decoder in (("lean", stripped), ("model", model)):
                scores, states[name] = decoder.step(tokens, states[name])
                torch.testing.assert_close(scores, expected, atol=1e-12, rtol=0)
            parents = torch.randint(beams, (3, beams), generator=rng) // 2
            states = {name: state.follow(parents) for name, state in states.items()}
            copied = copied.select((parents + beams * torch.arange(3)[:, None]).flatten())


def test_sentences_may_leave_while_beams_share() -> None:
    model, stay = build(CONFIGS["transformer post sinusoids"]), torch.tensor([2, 0])
    stripped: Any = lean(model, "float32")

    def after(rows: torch.Tensor | None) -> torch.Tensor:
        state, keep = start(stripped).spread(2), slice(None) if rows is None else rows
        for t in range(4):
            tokens = TARGET[:, t : t + 2] if rows is None or t < 2 else TARGET[rows, t : t + 2]
            scores, state = stripped.step(tokens.flatten(), state)
            state = state.follow(torch.tensor([[1, 0]]).expand(len(tokens), -1))
            state = state.select(rows) if rows is not None and t == 1 else state
        return scores.unflatten(0, (-1, 2))[keep if rows is None else slice(None)]

    torch.testing.assert_close(after(stay), after(None)[stay], atol=1e-12, rtol=0)


def test_a_prompt_is_read_as_the_model_reads_it() -> None:
    model = build(CONFIGS["gpt-nano"])
    stripped: Any = lean(model, "float32")
    with torch.inference_mode():
        features, state = stripped.read(TARGET[:, :3], None)
        torch.testing.assert_close(features, model(TARGET[:, :3]), atol=1e-12, rtol=0)
        scores, _ = stripped.step(TARGET[:, 3], state)
        expected = model.output(model(TARGET[:, :4])[:, -1])
    torch.testing.assert_close(scores, expected, atol=1e-12, rtol=0)


@pytest.mark.slow
@every_config
@pytest.mark.parametrize(("precision", "error"), [("int8", 0.1), ("bfloat16", 0.1)])
def test_lower_precision_stays_near(config: ModelConfig, precision: Any, error: float) -> None:
    model = build(config, torch.float32)
    exact: Any = lean(model, "float32")
    rough: Any = lean(model, precision)
    known, state = start(exact), start(rough)
    with torch.inference_mode():
        for t in range(6):
            expected, known = exact.step(TARGET[:, t], known)
            scores, state = rough.step(TARGET[:, t], state)
            off = (scores.float() - expected).norm() / expected.norm()
            assert 0 < off < error


def test_models_with_other_norms_or_of_other_kinds_stay_as_they_are() -> None:
    sizes = {"vocabulary": VOCABULARY, "width": 8, "heads": 2, "hidden": 16, "depth": 1}
    assert lean(TransformerConfig(**sizes, norm="batch").build(), "float32") is None
    assert lean(build(TRANSLATORS["seq2seq gru reverse=True"]), "float32") is None
