"""LoRA: the sum is what everyone reads, and what is kept under the layer's own name."""

import copy

import pytest
import torch
from torch import nn

from saccade.attention.parameters import parameter_roles
from saccade.blocks.lora import adapt, adaptable, adapters, merged_state
from saccade.config import ModelConfig
from saccade.data.batching.rows import Rows
from saccade.models.text.gpt import Gpt, GptConfig
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

SMALL = GptConfig(vocabulary=20, width=16, depth=2, heads=2, longest=12, dropout=0.0)


def adapted(config: ModelConfig = SMALL, *, learnt: bool = True) -> nn.Module:
    torch.manual_seed(3)
    model = config.build().double()
    model.requires_grad_(False)
    for layer in adaptable(model).values():
        adapt(layer, rank=3, alpha=6.0)
    for lora in adapters(model).values() if learnt else ():
        nn.init.normal_(lora.b)
    return model


def plain(model: nn.Module, config: ModelConfig = SMALL) -> nn.Module:
    fresh = config.build().double()
    fresh.load_state_dict(merged_state(model))
    return fresh


def test_at_first_nothing_has_changed() -> None:
    torch.manual_seed(3)
    model, tokens = SMALL.build().double(), torch.arange(10)[None]
    assert torch.equal(adapted(learnt=False)(tokens), model(tokens))


def test_the_weight_is_the_sum_of_the_published_formula() -> None:
    model = adapted()
    state, merged = model.state_dict(), merged_state(model)
    assert len(adapters(model)) == 4
    for path, lora in adapters(model).items():
        before = state[f"{path}.parametrizations.weight.original"]
        expected = before + 6.0 / 3 * lora.b @ lora.a
        torch.testing.assert_close(merged[f"{path}.weight"], expected.detach())
        assert not torch.equal(before, expected)


def test_merged_weights_have_the_names_of_a_plain_model_and_its_output() -> None:
    model, tokens = adapted(), torch.arange(10)[None]
    assert isinstance(model, Gpt)
    merged = plain(model)
    assert isinstance(merged, Gpt)
    assert torch.equal(model(tokens), merged(tokens))
    rows = Rows.of(torch.arange(10), torch.tensor([4, 6]))
    assert torch.equal(model.packed(rows), merged.packed(rows))
    assert torch.equal(copy.deepcopy(model)(tokens), merged(tokens))
    one, two = (network.for_decoding(None) for network in (model, merged))
    state = [decoder.start(1) for decoder in (one, two)]
    found = [d.step(tokens[0, :1], s)[0] for d, s in zip((one, two), state)]
    assert torch.equal(*found)


def test_only_the_thin_matrices_get_a_gradient_and_muon_turns_neither() -> None:
    model = adapted()
    model(torch.arange(10)[None]).square().sum().backward()
    found = {name for name, p in model.named_parameters() if p.grad is not None}
    thin = {p for lora in adapters(model).values() for p in (lora.a, lora.b)}
    assert found == {name for name, p in model.named_parameters() if p in thin}
    assert len(found) == 8
    roles = dict(parameter_roles(model))
    assert all(roles[p].decays and not roles[p].matrices for p in thin)


def test_half_precision_around_it_does_not_round_the_sum() -> None:
    model = adapted().float()
    layer = next(iter(adaptable(model).values()))
    exact = layer.weight
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(layer.weight, exact)


@pytest.mark.parametrize(
    ("config", "count"),
    [
        (VitConfig(image=32, patch=8, width=12, depth=3), 6),
        (SwinConfig(width=16, depths=(1, 1), heads=(2, 4), window=4), 4),
        (MvitConfig(image=32, width=8, depths=(1, 2, 1)), 8),
        (TransformerConfig(width=16, depth=2, heads=2, hidden=32), 12),
        (RnnLanguageConfig(width=8), 0),
    ],
)
def test_queries_and_values_of_every_attention_are_found(config: ModelConfig, count: int) -> None:
    assert len(adaptable(config.build())) == count
