"""The Transformer's blocks against torch's own with the same weights."""

import pytest
import torch
from torch import Tensor, nn

from saccade.attention import masks
from saccade.attention.cache import KeyValues
from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.decoder import DecoderLayer
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.inference.memories import NextToken, SourceKeys
from saccade.blocks.mlp import FeedForward
from saccade.blocks.residual import ResidualKind
from saccade.blocks.stack import WholeSequences

SIZES = {"heads": 2, "hidden": 16}
KINDS: list[ResidualKind] = ["post", "pre"]


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def shaken(layer: nn.Module) -> nn.Module:
    """Random norms and biases too: ones and zeros hide mistakes."""
    for i, parameter in enumerate(layer.parameters()):
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    return layer.double().eval()


def _copy_attention(mine: MultiHeadAttention, twin: nn.MultiheadAttention) -> None:
    parts = (mine.to_q, mine.to_k, mine.to_v)
    twin.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    twin.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    twin.out_proj.load_state_dict(mine.to_output.state_dict())


@torch.no_grad()
def torch_encoder(mine: EncoderLayer, kind: ResidualKind) -> nn.TransformerEncoderLayer:
    twin = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=kind == "pre"
    ).double()
    _copy_attention(mine.self_attention, twin.self_attn)
    twin.linear1.load_state_dict(mine.mlp.widen.state_dict())
    twin.linear2.load_state_dict(mine.mlp.narrow.state_dict())
    twin.norm1.load_state_dict(mine.around_attention.norm.state_dict())
    twin.norm2.load_state_dict(mine.around_mlp.norm.state_dict())
    return twin


@torch.no_grad()
def torch_decoder(mine: DecoderLayer, kind: ResidualKind) -> nn.TransformerDecoderLayer:
    twin = nn.TransformerDecoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=kind == "pre"
    ).double()
    _copy_attention(mine.self_attention, twin.self_attn)
    _copy_attention(mine.cross_attention, twin.multihead_attn)
    twin.linear1.load_state_dict(mine.mlp.widen.state_dict())
    twin.linear2.load_state_dict(mine.mlp.narrow.state_dict())
    for norm, around in zip(
        (twin.norm1, twin.norm2, twin.norm3), (mine.around_self, mine.around_cross, mine.around_mlp)
    ):
        norm.load_state_dict(around.norm.state_dict())
    return twin


def test_the_mlp_widens_bends_and_narrows() -> None:
    mlp = FeedForward(4, hidden=6).double()
    x = randn(2, 3, 4, seed=0)
    hidden = (x @ mlp.widen.weight.T + mlp.widen.bias).clamp(min=0)
    torch.testing.assert_close(mlp(x), hidden @ mlp.narrow.weight.T + mlp.narrow.bias)


@pytest.mark.parametrize("kind", KINDS)
def test_the_encoder_block_equals_torchs(kind: ResidualKind) -> None:
    layer = shaken(EncoderLayer(8, residual=kind, **SIZES))
    assert isinstance(layer, EncoderLayer)
    x, mask = randn(2, 5, 8, seed=0), masks.padding(torch.tensor([5, 3]), 5)
    theirs = torch_encoder(layer, kind)(x, src_key_padding_mask=~mask[:, 0, 0])
    torch.testing.assert_close(layer(x, WholeSequences(mask)), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_decoder_block_equals_torchs(kind: ResidualKind) -> None:
    layer = shaken(DecoderLayer(8, residual=kind, **SIZES))
    assert isinstance(layer, DecoderLayer)
    x, source = randn(2, 4, 8, seed=0), randn(2, 5, 8, seed=1)
    mask = masks.padding(torch.tensor([5, 3]), 5)
    theirs = torch_decoder(layer, kind)(
        x, source, tgt_mask=~masks.causal(4, 4)[0, 0], memory_key_padding_mask=~mask[:, 0, 0]
    )
    memory = WholeSequences(causal=True, source=source, source_mask=mask)
    torch.testing.assert_close(layer(x, memory), theirs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_decoder_block_with_a_past_equals_all_at_once(kind: ResidualKind) -> None:
    layer = shaken(DecoderLayer(8, residual=kind, **SIZES))
    assert isinstance(layer, DecoderLayer)
    x, source = randn(2, 4, 8, seed=0), randn(2, 5, 8, seed=1)
    site = layer.cross_attention
    keys, values = (
        to(source).unflatten(2, (2, 4)).transpose(1, 2) for to in (site.to_k, site.to_v)
    )
    past = KeyValues.empty(x[:, 0], heads=2, width=4)
    words = [layer(word, NextToken([past], [SourceKeys(keys, values)])) for word in x.unbind(1)]
    whole = layer(x, WholeSequences(causal=True, source=source))
    torch.testing.assert_close(torch.stack(words, dim=1), whole)
