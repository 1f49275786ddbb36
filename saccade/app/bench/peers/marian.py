"""Hugging Face's MarianMTModel, the Transformer of most translation models on their hub."""

from importlib import import_module
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.bench.peers.weights import copy_modules
from saccade.app.bench.sentences import END, PAD, START
from saccade.blocks.positions import sinusoids
from saccade.models.text.transformer import Transformer, TransformerConfig

NEEDS = "transformers"
POSITIONS = 256  # its table is computed number by number, in Python


def _attention(ours: str, theirs: str) -> dict[str, str]:
    sides = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "output": "out_proj"}
    return {f"{ours}.to_{side}": f"{theirs}.{name}" for side, name in sides.items()}


EITHER = {
    **_attention("self_attention", "self_attn"),
    "mlp.widen": "fc1",
    "mlp.narrow": "fc2",
    "around_mlp.norm": "final_layer_norm",
}
ENCODER = {**EITHER, "around_attention.norm": "self_attn_layer_norm"}
DECODER = {
    **EITHER,
    **_attention("cross_attention", "encoder_attn"),
    "around_self.norm": "self_attn_layer_norm",
    "around_cross.norm": "encoder_attn_layer_norm",
}


def make_marian(config: TransformerConfig, *, hidden_dropout: bool) -> Any:
    """Random weights in our sizes; by its own defaults it drops nothing inside the MLP."""
    hf: Any = import_module(NEEDS)
    sizes: dict[str, int] = {}
    for side in ("encoder", "decoder"):
        sizes |= {
            f"{side}_layers": config.depth,
            f"{side}_attention_heads": config.heads,
            f"{side}_ffn_dim": config.hidden,
        }
    settings = hf.MarianConfig(
        vocab_size=config.vocabulary,
        d_model=config.width,
        max_position_embeddings=POSITIONS,
        activation_function="relu",
        scale_embedding=True,
        tie_word_embeddings=True,
        share_encoder_decoder_embeddings=True,
        dropout=config.dropout,
        attention_dropout=0.0,
        activation_dropout=config.dropout if hidden_dropout else 0.0,
        pad_token_id=PAD,
        eos_token_id=END,
        bos_token_id=START,
        decoder_start_token_id=START,
        forced_eos_token_id=None,
        **sizes,
    )
    return hf.MarianMTModel(settings)


class MarianLoss(nn.Module):
    """The mean loss of the next words; its own has no label smoothing."""

    def __init__(self, model: Any, *, smoothing: float) -> None:
        super().__init__()
        self.model, self.smoothing = model, smoothing

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"], labels: Int[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        logits = self.model(
            input_ids=source,
            attention_mask=(source != PAD).long(),
            decoder_input_ids=target,
            use_cache=False,
        ).logits
        return F.cross_entropy(
            logits.flatten(0, 1),
            labels.flatten(),
            ignore_index=PAD,
            label_smoothing=self.smoothing,
        )


@torch.inference_mode()
def generate(
    model: Any, source: Int[Tensor, "B S"], *, beam: int, steps: int
) -> Int[Tensor, "B T"]:
    """What `generate` writes, without the START it begins with."""
    hf: Any = import_module(NEEDS)
    how = hf.GenerationConfig(
        max_new_tokens=steps,
        num_beams=beam,
        do_sample=False,
        pad_token_id=PAD,
        eos_token_id=END,
        decoder_start_token_id=START,
    )
    mask = (source != PAD).long()
    return model.generate(input_ids=source, attention_mask=mask, generation_config=how)[:, 1:]


@torch.no_grad()
def copy_weights(ours: Transformer, theirs: Any) -> None:
    """Make theirs compute what ours does."""
    theirs.model.shared.weight.copy_(ours.embedding.weight)
    theirs.final_logits_bias.zero_()
    encoder, decoder = theirs.model.encoder, theirs.model.decoder
    for table in (encoder.embed_positions.weight, decoder.embed_positions.weight):
        # Theirs puts all sines before all cosines; it is a table like any other, so ours goes in.
        places = torch.arange(len(table), dtype=torch.float64)
        table.copy_(sinusoids(places, ours.config.width))
    copy_modules(ours.encoder, encoder.layers, ENCODER)
    copy_modules(ours.decoder, decoder.layers, DECODER)
