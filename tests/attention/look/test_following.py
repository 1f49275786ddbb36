"""Calls of a site are one reading where each row goes on from its own past, and only there."""

from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import saccade
from saccade.attention.look.glance import Keep
from saccade.attention.look.looking import Trace
from saccade.models import RnnAttentionConfig
from tests.attention.look.modules.test_huggingface import PAIR, TEXTS, built, padded, words
from tests.attention.look.modules.test_session import speaker

HOW: dict[str, Any] = {"do_sample": False, "pad_token_id": 0, "max_new_tokens": 5}
KEEP = Keep(map_side=0)


def translator() -> Any:
    torch.manual_seed(3)
    model = hf.MarianMTModel(hf.MarianConfig(**PAIR, decoder_vocab_size=50)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))  # so that beams change places
    return model


def traced(model: nn.Module, *given: Tensor, **more: Any) -> Trace:
    with torch.no_grad(), saccade.looking(model, keep=KEEP) as trace:
        model(*given, **more)
    return trace


@pytest.mark.slow
@pytest.mark.parametrize("only", ["", "cross"])
def test_rows_follow_their_hypotheses_through_the_beams_of_others(only: str) -> None:
    model, given = translator(), padded("right")
    tokens: list[Tensor] = []
    told = model.forward

    def forward(*args: Any, **kwargs: Any) -> Any:  # what each row has read when it goes on
        tokens.append(kwargs["decoder_input_ids"])
        return told(*args, **kwargs)

    model.forward = forward
    with torch.no_grad(), saccade.looking(model, keep=KEEP, only=only) as trace:
        found = model.generate(
            **given, **HOW, num_beams=4, num_return_sequences=4, min_new_tokens=5,
            return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
    del model.forward
    places = found.beam_indices[:, :5]
    assert (places[:, 1:] != places[:, :-1]).any()  # else this shows nothing
    for sequence, rows in zip(found.sequences, places):
        source = int(rows[0]) // 4
        alone = {name: x[source : source + 1] for name, x in given.items()}
        again = traced(model, **alone, decoder_input_ids=sequence[None, :5])
        for site in (s for s in trace if "decoder" in s):
            seen = trace[site].unpadded(int(rows[-1]))  # where the hypothesis stood at last
            expected = again[site].unpadded(0)
            torch.testing.assert_close(seen.weights, expected.weights, atol=1e-5, rtol=1e-4)
            torch.testing.assert_close(seen.received, expected.received, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("cache", [{}, {"cache_implementation": "static"}, {"use_cache": False}])
@pytest.mark.parametrize("eager", [False, True])
def test_decoding_is_one_reading_with_any_cache_or_without(
    cache: dict[str, Any], *, eager: bool
) -> None:
    model, ids = speaker("LlamaForCausalLM"), words(rows=1)
    if eager:
        model.set_attn_implementation("eager")
    with torch.no_grad(), saccade.looking(model, keep=KEEP) as trace:
        said = model.generate(ids, **HOW, eos_token_id=-1, **cache)
    expected = traced(model, said[:, :-1])
    for site in expected:
        seen = trace[site]
        assert seen.entropy.shape[2] == said.shape[1] - 1
        torch.testing.assert_close(seen.entropy, expected[site].entropy, atol=1e-4, rtol=1e-4)
        assert len(trace.readings(site)) == (5 if cache == {"use_cache": False} else 1)


def test_a_second_pass_begins_anew_also_if_it_looks_like_a_step() -> None:
    model, ids = speaker("LlamaForCausalLM"), words(rows=2, length=9)
    with torch.no_grad(), saccade.looking(model, keep=KEEP) as trace:
        cache = model(ids[:, :4], use_cache=True).past_key_values
        other = model(ids.flip(1)[:, :5], use_cache=True).past_key_values
        model(ids[:, 4:6], past_key_values=cache)  # six keys after five, but another past
        model(ids[:, 6:7], past_key_values=cache)
    assert other is not None
    shapes = [tuple(one.entropy.shape) for one in trace.readings("layers.1.self")]
    assert shapes == [(2, 4, 4), (2, 4, 5), (2, 4, 3)]


def test_weights_alone_do_not_tell_rows_apart_so_their_steps_are_kept_apart() -> None:
    model = speaker("LlamaForCausalLM")
    model.set_attn_implementation("eager")
    with torch.no_grad(), saccade.looking(model, keep=KEEP) as trace:
        model.generate(words(rows=2), **HOW, eos_token_id=-1)
    assert len(trace.readings("layers.0.self")) == 5


def test_what_is_computed_again_for_gradients_is_seen_once() -> None:
    model, ids = built(TEXTS["bert"]).train(), words()
    model.gradient_checkpointing_enable()
    with saccade.looking(model, keep=KEEP) as trace:
        model(ids).last_hidden_state.sum().backward()
    assert trace["encoder.0.self"].entropy.shape == (2, 4, 7)

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.TransformerEncoderLayer(8, 2, 8, 0.0, batch_first=True)

        def forward(self, x: Tensor) -> Any:
            return checkpoint(self.layer, x, use_reentrant=False)

    module = Twice()
    with saccade.looking(module, keep=KEEP) as trace:
        module(torch.randn(2, 5, 8)).sum().backward()
    assert trace["layers.self"].entropy.shape == (2, 2, 5)


def test_passes_of_a_model_that_reads_word_by_word_are_kept_apart() -> None:
    config = RnnAttentionConfig(vocabulary=10, width=8, context="input", score="dot")
    model, source = config.build().eval(), torch.tensor([[4, 5, 6]])
    with torch.no_grad(), saccade.looking(model) as trace:
        for size in (4, 3):
            model(source, torch.tensor([3]), torch.tensor([[1, 4, 5, 6]])[:, :size])
    assert [one.entropy.shape[2] for one in trace.readings("decoder.cross")] == [4, 3]
    assert len(trace.calls("decoder.cross")) == 7
    assert trace["decoder.cross"].lse is None
