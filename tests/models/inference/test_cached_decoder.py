"""Transformers packed for decoding say what the models say, whatever they read."""

from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.data.tokens.vocabulary import OURS
from saccade.decode.beam import Beam
from saccade.decode.search import search
from saccade.models import GptConfig, TransformerConfig
from saccade.models.inference.lean import lean
from tests.models import captioners
from tests.models.zoo import LANGUAGE, LENGTHS, SOURCE, TARGET, TRANSLATORS, VOCABULARY, build

START = OURS.start

EXACT = {"atol": 1e-12, "rtol": 0}
TEXT = {n: c for n, c in TRANSLATORS.items() if isinstance(c, TransformerConfig)}
LANGUAGES = {n: c for n, c in LANGUAGE.items() if isinstance(c, GptConfig)}
CASES = [*TEXT, *LANGUAGES, *captioners.CONFIGS]
every_model = pytest.mark.parametrize("name", CASES)


def made(name: str, dtype: torch.dtype = torch.float64) -> tuple[Any, tuple[Any, ...]]:
    """A model, and what it starts from."""
    if name in TEXT:
        return build(TEXT[name], dtype), (SOURCE, LENGTHS)
    if name in LANGUAGES:
        return build(LANGUAGES[name], dtype), (len(SOURCE),)
    return captioners.build(captioners.CONFIGS[name], dtype), (captioners.PICTURES,)


@every_model
def test_every_step_scores_words_as_the_model_does(name: str) -> None:
    model, inputs = made(name)
    stripped: Any = lean(model, "float32")
    state, expected = stripped.start(*inputs), model.start(*inputs)
    for t in range(6):
        scores, state = stripped.step(TARGET[:, t], state)
        known, expected = model.step(TARGET[:, t], expected)
        torch.testing.assert_close(scores, known, **EXACT)


@pytest.mark.slow
@every_model
def test_beams_that_change_places_are_scored_as_copied_rows_are(name: str) -> None:
    (model, inputs), beams, rng = made(name), 3, torch.Generator().manual_seed(0)
    decoders: dict[str, Any] = {"lean": lean(model, "float32"), "model": model}
    states = {kind: decoder.start(*inputs) for kind, decoder in decoders.items()}
    read = {kind: [x.source_keys for x in state.sources] for kind, state in states.items()}
    states = {kind: state.spread(beams) for kind, state in states.items()}
    copied = model.start(*inputs).select(torch.arange(3).repeat_interleave(beams))
    for _ in range(18):  # pools are tidied twice
        tokens = torch.randint(VOCABULARY, (3 * beams,), generator=rng)
        expected, copied = model.step(tokens, copied)
        for kind, decoder in decoders.items():
            scores, states[kind] = decoder.step(tokens, states[kind])
            torch.testing.assert_close(scores, expected, **EXACT)
            kept = zip(states[kind].sources, read[kind], strict=True)
            assert all(source.source_keys is keys for source, keys in kept)  # never copied
        parents = torch.randint(beams, (3, beams), generator=rng) // 2
        states = {kind: state.follow(parents) for kind, state in states.items()}
        copied = copied.select((parents + beams * torch.arange(3)[:, None]).flatten())


def test_sentences_may_leave_while_beams_share() -> None:
    (model, inputs), stay = made("transformer post sinusoids"), torch.tensor([2, 0])
    stripped: Any = lean(model, "float32")

    def after(rows: Tensor | None) -> Tensor:
        state, keep = stripped.start(*inputs).spread(2), slice(None) if rows is None else rows
        for t in range(4):
            tokens = TARGET[:, t : t + 2] if rows is None or t < 2 else TARGET[rows, t : t + 2]
            scores, state = stripped.step(tokens.flatten(), state)
            state = state.follow(torch.tensor([[1, 0]]).expand(len(tokens), -1))
            state = state.select(rows) if rows is not None and t == 1 else state
        return scores.unflatten(0, (-1, 2))[keep if rows is None else slice(None)]

    torch.testing.assert_close(after(stay), after(None)[stay], **EXACT)


@pytest.mark.parametrize("precision", [None, "float32"])
@pytest.mark.parametrize("pieces", [[1] * 6, [4, 1, 1], [2, 3, 1], [6]])
def test_a_prompt_read_in_pieces_is_what_the_model_reads_at_once(
    pieces: list[int], precision: Any
) -> None:
    model, _ = made("gpt-nano")
    decoder, state, parts = model.for_decoding(precision), None, list[Tensor]()
    for piece in TARGET.split(pieces, dim=1):
        hidden, state = decoder.read(piece, state)
        parts.append(hidden)
    torch.testing.assert_close(torch.cat(parts, dim=1), model(TARGET), **EXACT)


@torch.inference_mode()
def test_a_search_finds_the_same_captions() -> None:
    model, inputs = made("vit of another width")
    first, limits = torch.full((3,), START), torch.tensor([7, 3, 5])
    decoders: list[Any] = [lean(model, "float32"), model]
    found, expected = (
        search(one, one.start(*inputs), first, limits=limits, end=OURS.end, method=Beam(size=3))
        for one in decoders
    )
    assert [[h.tokens for h in hs] for hs in found] == [[h.tokens for h in hs] for hs in expected]


@pytest.mark.slow
@every_model
@pytest.mark.parametrize("precision", ["int8", "bfloat16"])
def test_lower_precision_stays_near(name: str, precision: Any) -> None:
    model, inputs = made(name, torch.float32)
    exact: Any = lean(model, "float32")
    rough: Any = lean(model, precision)
    known, state = exact.start(*inputs), rough.start(*inputs)
    for t in range(6):
        expected, known = exact.step(TARGET[:, t], known)
        scores, state = rough.step(TARGET[:, t], state)
        off = (scores.float() - expected).norm() / expected.norm()
        assert 0 < off < 0.1


def test_models_with_other_norms_or_of_other_kinds_stay_as_they_are() -> None:
    sizes = {"vocabulary": VOCABULARY, "width": 8, "heads": 2, "hidden": 16, "depth": 1}
    assert lean(TransformerConfig(**sizes, norm="batch").build(), "float32") is None
    assert lean(build(TRANSLATORS["seq2seq gru reverse=True"]), "float32") is None
