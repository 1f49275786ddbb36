"""The recurrent models' own formulas, sizes and refusals."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from saccade.attention.attend import attend
from saccade.attention.look.looking import looking
from saccade.blocks.recurrent.rnn import reverse
from saccade.errors import ConfigError
from saccade.models import RnnAttentionConfig, RnnLanguageConfig, Seq2SeqConfig, preset
from tests.models.zoo import LENGTHS, SOURCE, TARGET, VOCABULARY, build

SMALL: dict[str, Any] = {"vocabulary": VOCABULARY, "width": 8, "dropout": 0.0}
GATES = {"vanilla": 1, "gru": 3, "lstm": 4}


def count(config: Any) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in config.build().parameters())


def recurrent(inputs: int, width: int, depth: int, cell: str) -> int:
    first = GATES[cell] * (width * inputs + width * width + 2 * width)
    return first + (depth - 1) * GATES[cell] * (2 * width * width + 2 * width)


@pytest.mark.parametrize("cell", GATES)
@pytest.mark.parametrize("depth", [1, 3])
def test_a_language_model_is_as_large_as_the_arithmetic_says(cell: Any, depth: int) -> None:
    size = {"vocabulary": 100, "width": 16, "cell": cell, "depth": depth}
    embedded = 100 * 16 + recurrent(16, 16, depth, cell)
    assert count(RnnLanguageConfig(**size)) == embedded + 16 * 100 + 100
    assert count(RnnLanguageConfig(**size, tied=True)) == embedded + 100
    one_hot = recurrent(100, 16, depth, cell) + 16 * 100 + 100
    assert count(RnnLanguageConfig(**size, words="one-hot")) == one_hot


def test_sutskevers_model_is_as_large_as_the_arithmetic_says() -> None:
    words, readout = 2 * 80_000 * 1000, 1000 * 80_000 + 80_000
    rnns = recurrent(1000, 1000, 4, "lstm") + recurrent(2000, 1000, 4, "lstm")
    assert count(preset("rnn-seq2seq-sutskever")) == words + readout + rnns


def test_one_hot_words_are_an_embedding_that_is_the_identity() -> None:
    model = build(RnnLanguageConfig(**SMALL, words="one-hot", cell="vanilla"))
    expected, _ = model.rnn(F.one_hot(TARGET, VOCABULARY).double())
    torch.testing.assert_close(model(TARGET), expected)


def test_tied_words_are_scored_by_their_own_embedding() -> None:
    model = build(RnnLanguageConfig(**SMALL, tied=True))
    known = model(TARGET)
    expected = known @ model.embedding.weight.T + model.bias
    torch.testing.assert_close(model.output(known), expected)


def test_one_hot_words_cannot_be_tied() -> None:
    message = r"^tied=True needs words='embedded': one-hot words have no weights$"
    with pytest.raises(ConfigError, match=message):
        RnnLanguageConfig(tied=True, words="one-hot")


def test_the_whole_source_passes_through_one_vector_given_at_every_step() -> None:
    model = build(Seq2SeqConfig(**SMALL, reverse=False, cell="gru"))
    state = model.start(SOURCE, LENGTHS)
    _, last = model.encoder(model.source_embedding(SOURCE), LENGTHS)
    assert torch.equal(state.context, last.hidden[:, -1])
    y = model.target_embedding(TARGET)
    repeated = state.context[:, None].expand(-1, 6, -1)
    expected, _ = model.decoder(torch.cat([y, repeated], dim=-1), last)
    torch.testing.assert_close(model(SOURCE, LENGTHS, TARGET), expected)


def test_reading_in_reverse_is_reading_the_reversed_source() -> None:
    backward = build(Seq2SeqConfig(**SMALL, reverse=True))
    forward = build(Seq2SeqConfig(**SMALL, reverse=False))
    turned = reverse(SOURCE, LENGTHS)
    torch.testing.assert_close(
        backward(SOURCE, LENGTHS, TARGET), forward(turned, LENGTHS, TARGET), atol=0, rtol=0
    )
    assert not torch.allclose(backward(turned, LENGTHS, TARGET), forward(turned, LENGTHS, TARGET))


@pytest.mark.parametrize("depth", [1, 2])
def test_context_in_the_input_follows_bahdanaus_equations(depth: int) -> None:
    model = build(RnnAttentionConfig(**SMALL, cell="gru", context="input", depth=depth))
    decoder, h = model.decoder, model.encoder(model.source_embedding(SOURCE), LENGTHS)[0]
    mask = (torch.arange(5) < LENGTHS[:, None])[:, None]
    state = model.start(SOURCE, LENGTHS).rnn
    known = model(SOURCE, LENGTHS, TARGET)
    for t in range(6):
        y = model.target_embedding(TARGET[:, t : t + 1])
        c = attend(
            state.hidden[:, depth - 1 :], h, h, mask=mask, score=decoder.cross_attention.score
        ).output
        s, state = decoder.rnn(torch.cat([y, c], dim=-1), state)
        expected = decoder.mix(torch.cat([s, y, c], dim=-1)).tanh()
        torch.testing.assert_close(known[:, t : t + 1], expected)


@pytest.mark.parametrize("cell", GATES)
def test_the_lean_loop_is_the_plain_one_with_the_same_gradients(
    cell: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(RnnAttentionConfig(**SMALL, cell=cell, context="input"))
    assert model.decoder._is_published()
    outcomes = []
    for published in (True, False):
        monkeypatch.setattr(model.decoder, "_is_published", lambda choice=published: choice)
        model.zero_grad()
        known = model(SOURCE, LENGTHS, TARGET)
        known.square().sum().backward()
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        outcomes.append([known.detach(), *(grad.clone() for grad in gradients)])
    torch.testing.assert_close(*outcomes)


@pytest.mark.parametrize("changed", [{"depth": 2}, {"keys": "linear"}, {"score": "dot"}])
def test_only_the_published_form_has_the_lean_loop(changed: Any) -> None:
    model = build(RnnAttentionConfig(**SMALL, context="input", **changed))
    assert not model.decoder._is_published()


@pytest.mark.parametrize("keys", ["identity", "linear"])
@pytest.mark.parametrize("context", ["readout", "input", "layer"])
def test_decoding_without_gradients_gives_the_scores_of_training(context: Any, keys: Any) -> None:
    model = build(RnnAttentionConfig(**SMALL, context=context, keys=keys), torch.float32)
    expected = model.output(model(SOURCE, LENGTHS, TARGET)).detach()
    with torch.inference_mode():
        state = model.start(SOURCE, LENGTHS)
        for t in range(6):
            scores, state = model.step(TARGET[:, t], state)
            torch.testing.assert_close(scores, expected[:, t], atol=1e-5, rtol=1e-5)
            state = state.select(torch.arange(3))
            assert state.output is not None


def test_a_state_made_while_training_holds_no_packed_weights() -> None:
    model = build(RnnAttentionConfig(**SMALL))
    _, state = model.step(TARGET[:, 0], model.start(SOURCE, LENGTHS))
    assert state.output is None


@pytest.mark.parametrize("context", ["readout", "layer"])
def test_context_after_the_state_follows_the_lectures_equations(context: Any) -> None:
    model = build(RnnAttentionConfig(**SMALL, score="scaled-dot", keys="linear", context=context))
    decoder, reader = model.decoder, model.decoder.cross_attention
    h = model.encoder(model.source_embedding(SOURCE), LENGTHS)[0]
    state, y = model.start(SOURCE, LENGTHS).rnn, model.target_embedding(TARGET)
    first, rest = (decoder.rnn, None) if context == "readout" else (decoder.first, decoder.rest)
    s, _ = first(y, state if rest is None else state.layers(slice(0, 1)))
    mask = (torch.arange(5) < LENGTHS[:, None])[:, None]
    c = attend(reader.query(s), reader.key(h), h, mask=mask).output
    both = torch.cat([s, c], dim=-1)
    expected = (
        decoder.mix(both).tanh() if rest is None else rest(both, state.layers(slice(1, 2)))[0]
    )
    torch.testing.assert_close(model(SOURCE, LENGTHS, TARGET), expected)


def test_values_are_read_through_their_own_function() -> None:
    model = build(RnnAttentionConfig(**SMALL, values="sigmoid"))
    reader = model.decoder.cross_attention
    h = torch.randn(2, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    memory = reader.remember(h, torch.tensor([3, 3]))
    linear = reader.value[0]
    torch.testing.assert_close(memory.values, (h @ linear.weight.T + linear.bias).sigmoid())


def test_the_weights_seen_are_probabilities_over_real_words() -> None:
    model = build(RnnAttentionConfig(**SMALL))
    with looking(model) as trace:
        model(SOURCE, LENGTHS, TARGET)
    weights = trace.weights()["decoder.cross"]
    assert weights.shape == (3, 1, 6, 5)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 1, 6, dtype=torch.float64))
    assert weights[1, :, :, 3:].eq(0).all()


def test_an_odd_width_cannot_be_read_both_ways() -> None:
    with pytest.raises(ConfigError, match=r"^width=7 does not divide into two directions$"):
        RnnAttentionConfig(width=7)
