"""A translator around `torch.nn.Transformer`, as its documentation and tutorials build one."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.attention.multihead import MultiHeadAttention
from saccade.blocks.decoder import DecoderLayer
from saccade.blocks.encoder import EncoderLayer
from saccade.blocks.positions import sinusoids
from saccade.data.vocabulary import PAD
from saccade.models.text.transformer import Transformer, TransformerConfig


class TorchTranslator(nn.Module):
    """Tied embeddings + sinusoids → `nn.Transformer` → the mean loss of the next words.

    Without the last norm of either stack, which the published post-norm model does not have.
    """

    positions: Float[Tensor, "T D"]

    def __init__(
        self, config: TransformerConfig, *, smoothing: float = 0.0, drop_attention: bool = False
    ) -> None:
        super().__init__()
        self.width, self.smoothing = config.width, smoothing
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        places = torch.arange(config.longest, dtype=torch.float64)
        self.register_buffer("positions", sinusoids(places, config.width).float())
        self.dropout = nn.Dropout(config.dropout)
        self.transformer = nn.Transformer(
            config.width,
            config.heads,
            config.depth,
            config.depth,
            config.hidden,
            config.dropout,
            batch_first=True,
        )
        self.transformer.encoder.norm = self.transformer.decoder.norm = None
        if not drop_attention:
            for module in self.modules():
                if isinstance(module, nn.MultiheadAttention):
                    module.dropout = 0.0

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], labels: Int[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        hidden = source == PAD
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1], source.device)
        features = self.transformer(
            self._embed(source),
            self._embed(target),
            tgt_mask=later,
            tgt_is_causal=True,
            src_key_padding_mask=hidden,
            memory_key_padding_mask=hidden,
        )
        logits = F.linear(features, self.embedding.weight)
        return F.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=PAD,
            label_smoothing=self.smoothing,
        )

    def _embed(self, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        words = self.embedding(tokens) * self.width**0.5
        return self.dropout(words + self.positions[: tokens.shape[1]])


@torch.no_grad()
def copy_weights(ours: Transformer, theirs: TorchTranslator) -> None:
    """Make theirs compute what ours does."""
    theirs.embedding.weight.copy_(ours.embedding.weight)
    encoder, decoder = theirs.transformer.encoder.layers, theirs.transformer.decoder.layers
    for layer, to in zip(ours.encoder, encoder):
        assert isinstance(layer, EncoderLayer)
        assert isinstance(to, nn.TransformerEncoderLayer)
        _copy_attention(layer.self_attention, to.self_attn)
        _copy(layer.around_attention.norm, to.norm1)
        _copy(layer.mlp.widen, to.linear1)
        _copy(layer.mlp.narrow, to.linear2)
        _copy(layer.around_mlp.norm, to.norm2)
    for layer, to in zip(ours.decoder, decoder):
        assert isinstance(layer, DecoderLayer)
        assert isinstance(to, nn.TransformerDecoderLayer)
        _copy_attention(layer.self_attention, to.self_attn)
        _copy(layer.around_self.norm, to.norm1)
        _copy_attention(layer.cross_attention, to.multihead_attn)
        _copy(layer.around_cross.norm, to.norm2)
        _copy(layer.mlp.widen, to.linear1)
        _copy(layer.mlp.narrow, to.linear2)
        _copy(layer.around_mlp.norm, to.norm3)


def _copy(ours: nn.Module, theirs: nn.Module) -> None:
    theirs.load_state_dict(ours.state_dict())


def _copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    three = (ours.to_q, ours.to_k, ours.to_v)
    theirs.in_proj_weight.copy_(torch.cat([one.weight for one in three]))
    theirs.in_proj_bias.copy_(torch.cat([one.bias for one in three]))
    _copy(ours.to_output, theirs.out_proj)
