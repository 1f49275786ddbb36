"""Captioners stripped for decoding say what they say."""

from typing import Any

import pytest
import torch

from saccade.data.vocabulary import START
from saccade.decode.beam import Beam, search
from saccade.models.caption.caption_transformer import CaptionTransformerConfig
from saccade.models.inference.lean import LeanCaptioner, lean
from tests.models.captioners import CONFIGS, PICTURES, VOCABULARY, WORDS, build

EXACT = {"atol": 1e-12, "rtol": 0}
TOKENS = WORDS[:18].view(6, 3)
every_config = pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)


@every_config
def test_every_step_scores_words_as_the_model_does(config: CaptionTransformerConfig) -> None:
    model = build(config)
    stripped: Any = lean(model, "float32")
    assert isinstance(stripped, LeanCaptioner)
    state, expected = stripped.start(PICTURES), model.start(PICTURES)
    with torch.inference_mode():
        for tokens in TOKENS:
            scores, state = stripped.step(tokens, state)
            known, expected = model.step(tokens, expected)
            torch.testing.assert_close(scores, known, **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cnn pre", "cnn post", "vit of another width"])
def test_beams_that_share_a_picture_are_scored_as_copied_rows_are(name: str) -> None:
    model, beams, rng = build(CONFIGS[name]), 3, torch.Generator().manual_seed(0)
    stripped: Any = lean(model, "float32")
    states = {"lean": stripped.start(PICTURES), "model": model.start(PICTURES)}
    cells = {kind: state.layers[0].source_keys for kind, state in states.items()}
    states = {kind: state.spread(beams) for kind, state in states.items()}
    copied = model.start(PICTURES).select(torch.arange(3).repeat_interleave(beams))
    with torch.inference_mode():
        for _ in range(10):  # pools are tidied once
            tokens = torch.randint(VOCABULARY, (3 * beams,), generator=rng)
            expected, copied = model.step(tokens, copied)
            for kind, decoder in (("lean", stripped), ("model", model)):
                scores, states[kind] = decoder.step(tokens, states[kind])
                torch.testing.assert_close(scores, expected, **EXACT)
                assert states[kind].layers[0].source_keys is cells[kind]  # never copied
            parents = torch.randint(beams, (3, beams), generator=rng) // 2
            states = {kind: state.follow(parents) for kind, state in states.items()}
            copied = copied.select((parents + beams * torch.arange(3)[:, None]).flatten())


@torch.inference_mode()
def test_a_search_finds_the_same_captions() -> None:
    model = build(CONFIGS["vit of another width"])
    stripped: Any = lean(model, "float32")
    first, limits = torch.full((3,), START), torch.tensor([7, 3, 5])
    found, expected = (
        search(one, one.start(PICTURES), first, limits=limits, beam=Beam(size=3))
        for one in (stripped, model)
    )
    assert [[h.tokens for h in hs] for hs in found] == [[h.tokens for h in hs] for hs in expected]


@pytest.mark.parametrize("name", ["cnn pre", "vit of another width"])
@pytest.mark.parametrize("precision", ["int8", "bfloat16"])
def test_lower_precision_stays_near(name: str, precision: Any) -> None:
    model = build(CONFIGS[name], torch.float32)
    exact: Any = lean(model, "float32")
    rough: Any = lean(model, precision)
    known, state = exact.start(PICTURES), rough.start(PICTURES)
    for tokens in TOKENS:
        expected, known = exact.step(tokens, known)
        scores, state = rough.step(tokens, state)
        off = (scores.float() - expected).norm() / expected.norm()
        assert 0 < off < 0.1
