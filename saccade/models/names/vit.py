"""What others call the parts of a Vision Transformer: timm, torchvision, Hugging Face 4 and 5."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.blocks.patches import resized
from saccade.models.names.table import Names


def _names(outside: dict[str, str], block: str, inside: dict[str, str]) -> Names:
    return {**outside, **{f"encoder.{{i}}.{ours}": block + part for ours, part in inside.items()}}


TIMM = _names(
    {
        "class_token": "cls_token as token",
        "positions": "pos_embed as rows",
        "patches.project": "patch_embed.proj as conv",
        "norm": "norm",
        "head": "head",
    },
    "blocks.{i}.",
    {
        "around_attention.norm": "norm1",
        "around_attention.scale": "ls1.gamma",
        **{f"self_attention.to_{x}": f"attn.qkv[{part}/3]" for part, x in enumerate("qkv")},
        "self_attention.to_output": "attn.proj",
        "around_mlp.norm": "norm2",
        "around_mlp.scale": "ls2.gamma",
        "mlp.widen": "mlp.fc1",
        "mlp.narrow": "mlp.fc2",
    },
)
DEIT: Names = {
    **TIMM,
    "encoder.{i}.around_attention.scale": "blocks.{i}.gamma_1",
    "encoder.{i}.around_mlp.scale": "blocks.{i}.gamma_2",
}


def _torchvision(widen: str, narrow: str) -> Names:
    joint = "self_attention.in_proj_*"  # torch's own attention: in_proj_weight, with no dot
    return _names(
        {
            "class_token": "class_token as token",
            "positions": "encoder.pos_embedding as rows",
            "patches.project": "conv_proj as conv",
            "norm": "encoder.ln",
            "head": "heads.head",
        },
        "encoder.layers.encoder_layer_{i}.",
        {
            "around_attention.norm": "ln_1",
            **{f"self_attention.to_{x}": f"{joint}[{part}/3]" for part, x in enumerate("qkv")},
            "self_attention.to_output": "self_attention.out_proj",
            "around_mlp.norm": "ln_2",
            "mlp.widen": widen,
            "mlp.narrow": narrow,
        },
    )


def _hugging_face(model: str, layers: str, inside: dict[str, str]) -> Names:
    return _names(
        {
            "class_token": f"{model}.embeddings.cls_token as token",
            "positions": f"{model}.embeddings.position_embeddings as rows",
            "patches.project": f"{model}.embeddings.patch_embeddings.projection as conv",
            "norm": f"{model}.layernorm",
            "head": "classifier" if model == "vit" else "cls_classifier",
        },
        f"{model}.{layers}.{{i}}.",
        {
            "around_attention.norm": "layernorm_before",
            "around_mlp.norm": "layernorm_after",
            **inside,
        },
    )


FOUR = {
    "self_attention.to_q": "attention.attention.query",
    "self_attention.to_k": "attention.attention.key",
    "self_attention.to_v": "attention.attention.value",
    "self_attention.to_output": "attention.output.dense",
    "mlp.widen": "intermediate.dense",
    "mlp.narrow": "output.dense",
}
FIVE = {
    **{f"self_attention.to_{x}": f"attention.{x}_proj" for x in "qkv"},
    "self_attention.to_output": "attention.o_proj",
    "mlp.widen": "mlp.fc1",
    "mlp.narrow": "mlp.fc2",
}
LIBRARIES: dict[str, Names] = {
    "timm": TIMM,
    "official": DEIT,
    "torchvision": _torchvision("mlp.0", "mlp.3"),
    "torchvision-0.10": _torchvision("mlp.linear_1", "mlp.linear_2"),
    "huggingface": _hugging_face("vit", "encoder.layer", FOUR),
    "huggingface-5": _hugging_face("vit", "layers", FIVE),
    "huggingface-deit": _hugging_face("deit", "encoder.layer", FOUR),
    "huggingface-deit-5": _hugging_face("deit", "layers", FIVE),
}


def fitted(positions: Float[Tensor, "T D"], count: int) -> Float[Tensor, "T2 D"] | None:
    """Learnt positions for another number of patches, if those they are of make a square.

    Before the patches stand one class token, two tokens of which the first is ours (distilled
    models), or none with a position; then the class token's is zero. Where ours has none either,
    those of tokens are left out.
    """
    ours = 0 if math.isqrt(count) ** 2 == count else 1
    side = math.isqrt(count - ours)
    for special in (1, 2, 0):
        old = math.isqrt(max(0, len(positions) - special))
        if old and old**2 + special == len(positions):
            cells = resized(positions[special:].float(), (old, old), (side, side))
            first = positions[:1].float() if special else cells.new_zeros(1, cells.shape[1])
            return torch.cat([first[:ours], cells])
    return None
