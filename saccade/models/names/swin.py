"""What others call the parts of a Swin Transformer."""

import math

from jaxtyping import Float
from torch import Tensor

from saccade.blocks.patches import resized
from saccade.models.names.table import Names


def _blocks(theirs: str, parts: dict[str, str]) -> Names:
    return {f"parts.{{i}}.blocks.{{j}}.{ours}": theirs + part for ours, part in parts.items()}


JOINT = {
    "around_attention.norm": "norm1",
    "self_attention.to_q": "attn.qkv[0/3]",
    "self_attention.to_k": "attn.qkv[1/3]",
    "self_attention.to_v": "attn.qkv[2/3]",
    "self_attention.to_output": "attn.proj",
    "self_attention.offsets": "attn.relative_position_bias_table",
    "around_mlp.norm": "norm2",
}
MLP = {"mlp.widen": "mlp.fc1", "mlp.narrow": "mlp.fc2"}
PATCHES = {"patches.project": "patch_embed.proj as conv", "patch_norm": "patch_embed.norm"}

TIMM: Names = {
    **PATCHES,
    **_blocks("layers.{i}.blocks.{j}.", {**JOINT, **MLP}),
    "parts.{i}.merge.norm": "layers.{i}.downsample.norm",
    "parts.{i}.merge.reduce": "layers.{i}.downsample.reduction",
    "norm": "norm",
    "head": "head.fc",
}
OFFICIAL: Names = {
    **TIMM,
    "parts.{i}.merge.norm": "layers.{i-1}.downsample.norm",
    "parts.{i}.merge.reduce": "layers.{i-1}.downsample.reduction",
    "head": "head",
}
TORCHVISION: Names = {
    "patches.project": "features.0.0 as conv",
    "patch_norm": "features.0.2",
    **_blocks("features.{2i+1}.{j}.", {**JOINT, "mlp.widen": "mlp.0", "mlp.narrow": "mlp.3"}),
    "parts.{i}.merge.norm": "features.{2i}.norm",
    "parts.{i}.merge.reduce": "features.{2i}.reduction",
    "norm": "norm",
    "head": "head",
}


def _hugging_face(attention: dict[str, str], mlp: dict[str, str]) -> Names:
    blocks = {
        "around_attention.norm": "layernorm_before",
        **attention,
        "around_mlp.norm": "layernorm_after",
        **mlp,
    }
    return {
        "patches.project": "swin.embeddings.patch_embeddings.projection as conv",
        "patch_norm": "swin.embeddings.norm",
        **_blocks("swin.encoder.layers.{i}.blocks.{j}.", blocks),
        "parts.{i}.merge.norm": "swin.encoder.layers.{i-1}.downsample.norm",
        "parts.{i}.merge.reduce": "swin.encoder.layers.{i-1}.downsample.reduction",
        "norm": "swin.layernorm",
        "head": "classifier",
    }


HUGGING_FACE = _hugging_face(
    {
        **{f"self_attention.to_{x}": f"attention.{x}_proj" for x in "qkv"},
        "self_attention.to_output": "attention.o_proj",
        "self_attention.offsets": "attention.relative_position_bias.relative_position_bias_table",
    },
    MLP,
)
HUGGING_FACE_4 = _hugging_face(
    {
        "self_attention.to_q": "attention.self.query",
        "self_attention.to_k": "attention.self.key",
        "self_attention.to_v": "attention.self.value",
        "self_attention.to_output": "attention.output.dense",
        "self_attention.offsets": "attention.self.relative_position_bias_table",
    },
    {"mlp.widen": "intermediate.dense", "mlp.narrow": "output.dense"},
)
LIBRARIES: dict[str, Names] = {
    "timm": TIMM,
    "official": OFFICIAL,
    "torchvision": TORCHVISION,
    "huggingface": HUGGING_FACE_4,
    "huggingface-5": HUGGING_FACE,
}


def fitted(offsets: Float[Tensor, "rows N"], count: int) -> Float[Tensor, "rows2 N"]:
    """Biases of (2M − 1)² offsets for windows of another side, bicubically in between."""
    old, new = math.isqrt(len(offsets)), math.isqrt(count)
    return resized(offsets.float(), (old, old), (new, new))
