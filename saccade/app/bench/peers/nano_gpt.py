"""GPT-2 as small training scripts write it: pre-norm blocks, one projection for q, k and v."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.bench.peers.weights import copy_modules, fused
from saccade.models.text.gpt import Gpt, GptConfig

NAMES = {
    "self_attention.to_output": "project",
    "around_attention.norm": "norm_1",
    "around_mlp.norm": "norm_2",
    "mlp.widen": "widen",
    "mlp.narrow": "narrow",
}


class NanoBlock(nn.Module):
    """Causal self-attention and an MLP, each added to what came in."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        B, T, D = x.shape
        q, k, v = self.qkv(self.norm_1(x)).split(D, dim=-1)
        q, k, v = (one.view(B, T, self.heads, -1).transpose(1, 2) for one in (q, k, v))
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)  # (B, N, T, K)
        joined = heads.transpose(1, 2).contiguous().view(B, T, D)
        x = x + self.dropout(self.project(joined))
        hidden = F.gelu(self.widen(self.norm_2(x)), approximate="tanh")
        return x + self.dropout(self.narrow(hidden))


class NanoGpt(nn.Module):
    """Words + positions → blocks → norm → all logits → the mean loss."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.width)
        self.places = nn.Embedding(config.longest, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(NanoBlock(config) for _ in range(config.depth))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.words.weight

    def forward(self, words: Int[Tensor, "B T"], labels: Int[Tensor, "B T"]) -> Float[Tensor, ""]:
        places = torch.arange(words.shape[1], device=words.device)
        x = self.dropout(self.words(words) + self.places(places))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.flatten())


@torch.no_grad()
def copy_weights(ours: Gpt, theirs: NanoGpt) -> None:
    """Make theirs compute what ours does."""
    table: Any = ours.positions.positions
    theirs.words.weight.copy_(ours.embedding.weight)
    theirs.places.weight.copy_(table.table)
    theirs.norm.load_state_dict(ours.norm.state_dict())
    copy_modules(ours.decoder, theirs.blocks, NAMES)
    for layer, to in zip(ours.decoder, theirs.blocks):
        one: Any = layer
        block: Any = to
        weight, bias = fused(one.self_attention)
        block.qkv.weight.copy_(weight)
        block.qkv.bias.copy_(bias)
