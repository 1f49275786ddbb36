"""Hugging Face's GPT2LMHeadModel."""

from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.bench.peers.weights import fused
from saccade.models.text.gpt import Gpt, GptConfig

NEEDS = "transformers"


class Gpt2Loss(nn.Module):
    """Random weights in our sizes, and the mean loss of the next words."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        hf: Any = import_module(NEEDS)
        self.model = hf.GPT2LMHeadModel(
            hf.GPT2Config(
                vocab_size=config.vocabulary,
                n_positions=config.longest,
                n_embd=config.width,
                n_layer=config.depth,
                n_head=config.heads,
                embd_pdrop=config.dropout,
                resid_pdrop=config.dropout,
                attn_pdrop=0.0,
                bos_token_id=0,
                eos_token_id=0,
                use_cache=False,
            )
        )

    def forward(self, words: Int[Tensor, "B T"], labels: Int[Tensor, "B T"]) -> Float[Tensor, ""]:
        logits = self.model(input_ids=words).logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


@torch.no_grad()
def copy_weights(ours: Gpt, theirs: Gpt2Loss) -> None:
    """Make theirs compute what ours does; its linear layers are stored the other way round."""
    there = theirs.model.transformer
    table: Any = ours.positions.positions
    there.wte.weight.copy_(ours.embedding.weight)
    there.wpe.weight.copy_(table.table)
    there.ln_f.load_state_dict(ours.norm.state_dict())
    for layer, block in zip(ours.decoder, there.h):
        one: Any = layer
        pairs = {
            block.attn.c_attn: fused(one.self_attention),
            block.attn.c_proj: one.self_attention.to_output.parameters(),
            block.mlp.c_fc: one.mlp.widen.parameters(),
            block.mlp.c_proj: one.mlp.narrow.parameters(),
        }
        for to, (weight, bias) in pairs.items():
            to.weight.copy_(weight.T)
            to.bias.copy_(bias)
        block.ln_1.load_state_dict(one.around_attention.norm.state_dict())
        block.ln_2.load_state_dict(one.around_mlp.norm.state_dict())
