"""A translator around `torch.nn.Transformer`, as its documentation and tutorials build one."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.bench.peers.weights import copy_modules, fused
from saccade.app.bench.sentences import PAD
from saccade.blocks.positions import sinusoids
from saccade.models.text.transformer import Transformer, TransformerConfig

EITHER = {
    "self_attention.to_output": "self_attn.out_proj",
    "mlp.widen": "linear1",
    "mlp.narrow": "linear2",
}
ENCODER = {**EITHER, "around_attention.norm": "norm1", "around_mlp.norm": "norm2"}
DECODER = {
    **EITHER,
    "cross_attention.to_output": "multihead_attn.out_proj",
    "around_self.norm": "norm1",
    "around_cross.norm": "norm2",
    "around_mlp.norm": "norm3",
}


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
    encoder: Any = theirs.transformer.encoder.layers
    decoder: Any = theirs.transformer.decoder.layers
    copy_modules(ours.encoder, encoder, ENCODER)
    copy_modules(ours.decoder, decoder, DECODER)
    layer: Any  # of ours
    for layer, to in zip((*ours.encoder, *ours.decoder), (*encoder, *decoder)):
        _copy_projection(layer.self_attention, to.self_attn)
    for layer, to in zip(ours.decoder, decoder):
        _copy_projection(layer.cross_attention, to.multihead_attn)


def _copy_projection(ours: Any, theirs: Any) -> None:
    weight, bias = fused(ours)
    theirs.in_proj_weight.copy_(weight)
    theirs.in_proj_bias.copy_(bias)
