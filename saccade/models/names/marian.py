"""What Hugging Face's Marian calls the parts of a Transformer, and Pegasus those of a pre-norm one.

Its sinusoids are all sines, then all cosines; ours take turns. Features have no order of their own,
so whatever reads or writes them is put into theirs: the model computes the same.
"""

from saccade.models.names.table import Names


def _attention(ours: str, theirs: str) -> dict[str, str]:
    return {
        **{f"{ours}.to_{x}": f"{theirs}.{x}_proj as reads_halves" for x in "qkv"},
        f"{ours}.to_output": f"{theirs}.out_proj as writes_halves",
    }


EITHER = {
    **_attention("self_attention", "self_attn"),
    "mlp.widen": "fc1 as reads_halves",
    "mlp.narrow": "fc2 as writes_halves",
    "around_mlp.norm": "final_layer_norm as writes_halves",
}
ENCODER = {**EITHER, "around_attention.norm": "self_attn_layer_norm as writes_halves"}
DECODER = {
    **EITHER,
    **_attention("cross_attention", "encoder_attn"),
    "around_self.norm": "self_attn_layer_norm as writes_halves",
    "around_cross.norm": "encoder_attn_layer_norm as writes_halves",
}
HUGGING_FACE: Names = {
    "embedding": "model.shared as reads_halves",
    **{f"encoder.{{i}}.{one}": f"model.encoder.layers.{{i}}.{two}" for one, two in ENCODER.items()},
    **{f"decoder.{{i}}.{one}": f"model.decoder.layers.{{i}}.{two}" for one, two in DECODER.items()},
    "encoder_norm": "model.encoder.layer_norm as writes_halves",
    "decoder_norm": "model.decoder.layer_norm as writes_halves",
    "output_bias": "final_logits_bias as row",
}
LIBRARIES: dict[str, Names] = {"huggingface": HUGGING_FACE}
TIED: tuple[tuple[str, ...], ...] = (
    (
        "model.shared.weight",
        "model.encoder.embed_tokens.weight",
        "model.decoder.embed_tokens.weight",
        "lm_head.weight",
    ),
    ("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"),
)
