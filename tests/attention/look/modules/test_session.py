"""Generation, training, nesting and failing: looking stays out of the way."""

from typing import Any

import pytest
import torch
import transformers as hf
from torch import Tensor, nn

from saccade.attention.look.modules.calls import as_computed
from saccade.attention.look.modules.patterns import pattern
from saccade.attention.look.modules.session import watching
from saccade.attention.look.view import View, Watcher
from saccade.errors import ConfigError
from tests.attention.look.modules.test_huggingface import (
    GROUPED,
    PAIR,
    READER,
    TEXTS,
    WORDS,
    Record,
    built,
    clip,
    dense,
    padded,
    reader,
    recording,
    words,
)


def speaker(kind: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    config = getattr(hf, kind.replace("ForCausalLM", "Config"))(**{**GROUPED, **settings})
    return getattr(hf, kind)(config).eval()


def spoken(model: Any, given: dict[str, Tensor], **how: Any) -> tuple[Tensor, Record]:
    """What is said, which must be what is said when nobody looks, and every look on the way."""
    how = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": -1, "pad_token_id": 0, **how}
    record: Record = {}
    alone = model.generate(**given, **how)
    with recording(model, record):
        said = model.generate(**given, **how)
    assert torch.equal(alone, said)
    return said, record


@pytest.mark.parametrize("kind", ["LlamaForCausalLM", "MistralForCausalLM"])
@pytest.mark.parametrize("cache", [{}, {"cache_implementation": "static"}, {"use_cache": False}])
def test_generation_looks_step_by_step_where_eager_looks(kind: str, cache: dict[str, Any]) -> None:
    model, given = speaker(kind, sliding_window=5), padded("left")
    _, record = spoken(model, given, **cache)
    model.set_attn_implementation("eager")
    told = model.generate(
        **given, max_new_tokens=4, do_sample=False, eos_token_id=-1, pad_token_id=0, **cache,
        output_attentions=True, return_dict_in_generate=True,
    )  # fmt: skip
    for layer in range(2):
        calls = record[f"layers.{layer}.self"]
        assert len(calls) == len(told.attentions) == 4
        for call, step in zip(calls, told.attentions):
            weights = dense(call)
            blind = ~weights.any(dim=-1, keepdim=True)  # the padding on the left
            expected = step[layer][..., : weights.shape[-1]].masked_fill(blind, 0.0)
            torch.testing.assert_close(weights, expected, atol=1e-5, rtol=0)


def test_a_step_with_a_cache_looks_where_the_whole_would() -> None:
    model, ids = speaker("LlamaForCausalLM"), words(length=9)
    whole, parts = Record(), Record()
    with torch.no_grad(), recording(model, whole):
        model(ids)
    with torch.no_grad(), recording(model, parts):
        cache = model(ids[:, :4], use_cache=True).past_key_values
        cache = model(ids[:, 4:8], past_key_values=cache).past_key_values
        model(ids[:, 8:], past_key_values=cache)
    for name, calls in parts.items():
        shown = [nn.functional.pad(dense(call), (0, 9 - call.shape[3])) for call in calls]
        torch.testing.assert_close(torch.cat(shown, dim=2), dense(whole[name][0]))
        assert all(isinstance(call, View) and call.causal and call.mask is None for call in calls)


def test_beams_of_a_translator_keep_their_sites() -> None:
    torch.manual_seed(0)
    model = hf.MarianMTModel(hf.MarianConfig(**PAIR, decoder_vocab_size=50)).eval()
    _, record = spoken(model, padded("right"), num_beams=3, min_new_tokens=4)
    assert record["encoder.0.self"][0].shape == (2, 4, 7, 7)
    assert [call.shape for call in record["decoder.1.cross"]] == [(6, 4, 1, 7)] * 4
    assert [call.shape[3] for call in record["decoder.1.self"]] == [1, 2, 3, 4]
    for call in record["decoder.1.cross"]:
        assert dense(call).sum(dim=-1).allclose(torch.ones(6, 4, 1))
        assert dense(call)[3:, ..., 5:].eq(0).all()


def test_training_draws_the_same_chances_and_gets_the_same_gradients() -> None:
    def gradients(record: Record | None) -> list[Tensor]:
        model = built(reader("BertModel", **READER, attention_probs_dropout_prob=0.5)).train()
        torch.manual_seed(1)
        if record is None:
            model(words()).last_hidden_state.square().sum().backward()
        else:
            with recording(model, record):
                model(words()).last_hidden_state.square().sum().backward()
        return [p.grad for p in model.parameters() if p.grad is not None] + [torch.rand(3)]

    record: Record = {}
    assert all(map(torch.equal, gradients(None), gradients(record)))
    weights = dense(record["encoder.0.self"][0])
    assert not weights.requires_grad
    assert weights.sum(dim=-1).allclose(torch.ones(2, 4, 7))  # so before dropout


def test_half_precision_of_autocast_is_seen_as_computed() -> None:
    model, record = built(TEXTS["bert"]), Record()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        alone = model(words()).last_hidden_state
        with recording(model, record):
            assert torch.equal(model(words()).last_hidden_state, alone)
        assert as_computed(torch.zeros(1)).dtype == torch.bfloat16
    view = record["encoder.0.self"][0]
    assert isinstance(view, View)
    assert view.q.dtype == torch.bfloat16


def test_one_look_inside_another_sees_the_same() -> None:
    model, outer, inner = built(TEXTS["bert"]), Record(), Record()
    with torch.no_grad(), recording(model, outer):
        with recording(model, inner):
            model(words())
        model(words())
    assert [len(calls) for calls in outer.values()] == [2, 2]
    assert [len(calls) for calls in inner.values()] == [1, 1]
    assert torch.equal(dense(outer["encoder.1.self"][0]), dense(inner["encoder.1.self"][0]))


class BothAttention(nn.Module):
    """Softmax is used beside the fused kernel, and not for weights."""

    num_heads = 2

    def forward(self, x: Tensor) -> Tensor:
        gate = x.unflatten(-1, (2, -1)).transpose(1, 2).softmax(dim=-1)
        return nn.functional.scaled_dot_product_attention(gate, gate, gate, is_causal=True)


class TorchAttention(nn.Module):
    """Torch's own, as some models of transformers have it."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


class NystromAttention(nn.Module):
    """Softmax between queries and landmarks, then between landmarks and keys."""

    num_heads = 2

    def forward(self, x: Tensor) -> Tensor:
        marks = x[:, :, :2]
        return (x @ marks.mT).softmax(dim=-1) @ (marks @ x.mT).softmax(dim=-1) @ x


def test_a_softmax_beside_the_fused_kernel_is_not_taken_for_weights() -> None:
    with recording(model := nn.Sequential(BothAttention()), record := Record()):
        model(torch.randn(3, 5, 8))
    assert [type(call) for calls in record.values() for call in calls] == [View]


def test_factors_of_weights_are_not_taken_for_weights() -> None:
    model = nn.ModuleList([NystromAttention(), BothAttention()])
    record: Record = {}
    told = pytest.warns(UserWarning, match="without weights to show: layers.0.self")
    with told, recording(model, record):
        model[1](model[0](torch.randn(1, 2, 5, 4))[0])
    assert list(record) == ["layers.1.self"]


def test_the_attention_of_torch_draws_the_same_chances() -> None:
    torch.manual_seed(0)
    model, x = TorchAttention(), torch.randn(2, 5, 8)
    torch.manual_seed(1)
    alone = model(x), torch.rand(1)
    torch.manual_seed(1)
    with recording(model, record := Record()):
        assert all(map(torch.equal, alone, (model(x), torch.rand(1))))
    assert list(record) == ["layers.self"]
    weights = dense(record["layers.self"][0])
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 2, 5))


def test_watchers_run_outside_the_graph_and_outside_autocast() -> None:
    states: list[tuple[bool, bool]] = []

    def watcher_of(name: str) -> Watcher:
        return lambda _: states.append((torch.is_grad_enabled(), torch.is_autocast_enabled("cpu")))

    model = built(TEXTS["bert"])
    with torch.autocast("cpu", torch.bfloat16), watching(model, watcher_of):
        model(words())
        assert torch.is_grad_enabled()
        assert torch.is_autocast_enabled("cpu")
    assert states == [(False, False)] * 2


def test_inference_mode_is_no_obstacle() -> None:
    model, given, record = built(TEXTS["mistral"]), padded("left"), Record()
    with torch.inference_mode(), recording(model, record):
        model(**given)
    assert len(record) == 2


def test_generation_is_not_compiled_while_it_is_looked_into() -> None:
    model = speaker("LlamaForCausalLM")
    before = model.generation_config.disable_compile
    with recording(model, {}):
        assert model.generation_config.disable_compile is True
    assert model.generation_config.disable_compile == before != True  # noqa: E712


def attached(model: nn.Module) -> list[str]:
    """What is on the modules that was not there when they were made."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_forward_hooks_always_called")
    forwards = [path for path, module in model.named_modules() if "forward" in module.__dict__]
    return forwards + [p for p, m in model.named_modules() for h in hooks if getattr(m, h)]


def fails_inside(model: Any) -> None:
    assert attached(model)
    assert model.config.vision_config._attn_implementation == "sdpa"
    model(words(), torch.randn(2, 5, 12, 12))  # no picture


def test_all_is_put_back_when_the_block_fails() -> None:
    model, record = built(clip), Record()
    vision, text = model.config.vision_config, model.config.text_config
    vision._attn_implementation = "flex_attention"
    with pytest.raises(RuntimeError), recording(model, record):
        fails_inside(model)
    assert attached(model) == []
    assert vision._attn_implementation == "flex_attention"
    assert text._attn_implementation == model.config._attn_implementation == "sdpa"


def test_another_kernel_is_exchanged_for_the_fused_one_of_torch() -> None:
    model, record = built(TEXTS["llama"]), Record()
    with torch.no_grad():
        expected = model(words()).last_hidden_state
        model.set_attn_implementation("flex_attention")
        with recording(model, record):
            assert torch.equal(model(words()).last_hidden_state, expected)
    assert model.config._attn_implementation == "flex_attention"
    assert len(record) == 2


def test_asking_for_attentions_inside_does_no_harm() -> None:
    model, record = built(TEXTS["bert"]), Record()
    with torch.no_grad(), recording(model, record):
        model(words(), output_attentions=True)
    assert len(record) == 2


def test_a_model_inside_something_else_is_found() -> None:
    model = nn.Sequential(built(TEXTS["bert"]))
    with torch.no_grad(), recording(model, record := {}):
        model(words())
    assert list(record) == ["encoder.0.self", "encoder.1.self"]


def test_what_cannot_be_looked_into_says_so() -> None:
    for make, message in (
        (reader("MambaModel", **WORDS, num_hidden_layers=1), "MambaModel has no attention"),
        (lambda: torch.compile(TEXTS["bert"](), backend="eager"), "compiled"),
    ):
        with pytest.raises(ConfigError, match=message), recording(make(), {}):
            pass
    with (
        pytest.raises(ConfigError, match=r"BertModel .* there are: encoder.0.self, encoder.1.self"),
        watching(built(TEXTS["bert"]), lambda name: None),
    ):
        pass


def test_a_model_that_runs_unseen_raises_and_one_that_does_not_run_does_not() -> None:
    sizes = {**READER, "attention_window": 4, "max_position_embeddings": 40}
    model = built(reader("LongformerModel", **sizes))
    with recording(model, {}):
        pass
    with pytest.raises(ConfigError, match="LongformerModel ran, but"), recording(model, {}):
        model(words())


@pytest.mark.parametrize("reach", [None, 0, 2])
def test_a_mask_is_said_shortly_only_where_that_says_it_all(reach: int | None) -> None:
    for causal in (False, True):
        keys = torch.tensor([True] * 3 + [False] + [True] * 5).view(1, 1, 1, 9)
        view = View(torch.zeros(1, 1, 6, 2), torch.zeros(1, 1, 9, 2), 1.0, causal, reach, keys)
        mask = view.allowed()
        assert mask is not None
        short = pattern(mask.expand(1, 1, 6, 9))
        again = View(view.q, view.k, 1.0, *short).allowed()
        assert again is not None
        assert torch.equal(again.expand(1, 1, 6, 9), mask.expand(1, 1, 6, 9))
        assert short.mask is not None
        assert short.mask.shape[2] == 1
    odd = torch.rand(1, 1, 6, 9, generator=torch.Generator().manual_seed(0)) > 0.5
    assert pattern(odd) == (False, None, odd)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_model_that_is_looked_into_is_called_with_the_arguments_it_is_always_called_with(
    side: str,
) -> None:
    """GPT-2 learns its places from position_ids, which `generate` makes only where they fit."""
    torch.manual_seed(0)
    model = hf.GPT2LMHeadModel(
        hf.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=40, n_positions=32)
    ).eval()
    ids = torch.tensor([[5, 6, 7, 8], [0, 0, 5, 6] if side == "left" else [5, 6, 0, 0]])
    how: dict[str, Any] = {
        **{"max_new_tokens": 2, "do_sample": False, "eos_token_id": -1, "pad_token_id": 0},
        **{"output_scores": True, "return_dict_in_generate": True, "attention_mask": ids > 0},
    }
    alone = model.generate(ids, **how)
    with recording(model, {}):
        said = model.generate(ids, **how)
    assert all(map(torch.equal, alone.scores, said.scores))
