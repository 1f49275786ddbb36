"""The Transformer: its size by arithmetic, and the same numbers as torch's blocks."""

from typing import Any

import pytest
import torch
from torch import nn

from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.positions import sinusoids
from saccade.blocks.residual import ResidualKind
from saccade.errors import ConfigError
from saccade.models import PRESETS, TransformerConfig, preset
from tests.models.zoo import LENGTHS, SOURCE, TARGET, VOCABULARY, build


def arithmetic(config: TransformerConfig) -> int:
    """Weights of a Transformer, counted on paper."""
    width, hidden = config.width, config.hidden
    attention = 4 * (width * width + width)
    mlp = 2 * width * hidden + hidden + width
    norm = 2 * width
    encoder = attention + mlp + 2 * norm
    decoder = 2 * attention + mlp + 3 * norm
    last = 2 * norm if config.residual == "pre" else 0
    table = config.longest * width if config.positions == "learned" else 0
    return config.vocabulary * width + config.depth * (encoder + decoder) + last + table


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [n for n, c in PRESETS.items() if isinstance(c, TransformerConfig)]
)
@pytest.mark.parametrize("options", [{}, {"residual": "pre"}, {"positions": "learned"}])
def test_has_as_many_parameters_as_the_arithmetic_says(name: str, options: dict[str, Any]) -> None:
    published = preset(name)
    assert isinstance(published, TransformerConfig)
    config = TransformerConfig(**{**published.__dict__, **options})
    with torch.device("meta"):
        model = config.build()
    assert sum(parameter.numel() for parameter in model.parameters()) == arithmetic(config)


def test_base_and_big_have_the_millions_of_the_paper() -> None:
    # Table 3 says 65 and 213 million; the paper's vocabulary is "about 37000".
    for name, millions in (("transformer-base", 63), ("transformer-big", 214)):
        with torch.device("meta"):
            model = preset(name).build()
        count = sum(parameter.numel() for parameter in model.parameters())
        assert round(count / 1e6) == millions


def _copy(mine: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    parts = (mine.to_q, mine.to_k, mine.to_v)
    theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
    theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    theirs.out_proj.load_state_dict(mine.to_output.state_dict())


@torch.no_grad()
def torch_twin(model: Any, *, pre: bool) -> nn.Transformer:
    twin = nn.Transformer(
        8, 2, 2, 2, 16, dropout=0.0, batch_first=True, norm_first=pre, dtype=torch.float64
    )
    for mine, theirs in zip(model.encoder, twin.encoder.layers):
        _copy(mine.self_attention, theirs.self_attn)
        theirs.norm1.load_state_dict(mine.around_attention.norm.state_dict())
        theirs.norm2.load_state_dict(mine.around_mlp.norm.state_dict())
    for mine, theirs in zip(model.decoder, twin.decoder.layers):
        _copy(mine.self_attention, theirs.self_attn)
        _copy(mine.cross_attention, theirs.multihead_attn)
        theirs.norm1.load_state_dict(mine.around_self.norm.state_dict())
        theirs.norm2.load_state_dict(mine.around_cross.norm.state_dict())
        theirs.norm3.load_state_dict(mine.around_mlp.norm.state_dict())
    pairs = zip([*model.encoder, *model.decoder], [*twin.encoder.layers, *twin.decoder.layers])
    for mine, theirs in pairs:
        theirs.linear1.load_state_dict(mine.mlp.widen.state_dict())
        theirs.linear2.load_state_dict(mine.mlp.narrow.state_dict())
    # torch ends either stack with a norm, always; the published model does so only pre-norm.
    twin.encoder.norm, twin.decoder.norm = model.encoder_norm, model.decoder_norm
    return twin


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("residual", ["post", "pre"])
def test_equals_torchs_transformer_with_the_same_weights(residual: ResidualKind) -> None:
    config = TransformerConfig(
        vocabulary=VOCABULARY,
        width=8,
        depth=2,
        heads=2,
        hidden=16,
        residual=residual,
        dropout=0.0,
    )
    model = build(config)
    twin = torch_twin(model, pre=residual == "pre")
    padded = torch.arange(5) >= LENGTHS[:, None]

    def embed(tokens: torch.Tensor) -> torch.Tensor:
        t = torch.arange(tokens.shape[1], dtype=torch.float64)
        return model.embedding.weight[tokens] * 8**0.5 + sinusoids(t, 8)

    expected = twin(
        embed(SOURCE),
        embed(TARGET),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6) < 0,
        src_key_padding_mask=padded,
        memory_key_padding_mask=padded,
    )
    torch.testing.assert_close(model(SOURCE, LENGTHS, TARGET), expected, atol=1e-12, rtol=0)


def test_the_embedding_is_also_the_output_layer() -> None:
    model = build(TransformerConfig(vocabulary=VOCABULARY, width=8, depth=1, heads=2, hidden=16))
    known = model(SOURCE, LENGTHS, TARGET)
    torch.testing.assert_close(model.output(known), known @ model.embedding.weight.T)


def test_a_width_that_heads_cannot_share_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"^width=10 does not divide into heads=4$"):
        TransformerConfig(width=10, heads=4)
