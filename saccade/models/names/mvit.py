"""What others call the parts of a multiscale Vision Transformer."""

from jaxtyping import Float
from torch import Tensor

from saccade.models.names.table import Names
from saccade.models.vision.pooling_attention import resized_offsets

SAME = {
    "before_attention": "norm1",
    **{f"attention.to_{x}": f"attn.qkv[{part}/3]" for part, x in enumerate("qkv")},
    **{f"attention.pool_{x}.conv": f"attn.pool_{x}" for x in "qkv"},
    **{f"attention.pool_{x}.norm": f"attn.norm_{x}" for x in "qkv"},
    "attention.down": "attn.rel_pos_h",
    "attention.across": "attn.rel_pos_w",
    "attention.to_output": "attn.proj",
    "before_mlp": "norm2",
    "mlp.widen": "mlp.fc1",
    "mlp.narrow": "mlp.fc2",
}
AROUND = {
    "patches": "patch_embed.proj",
    "class_token": "cls_token as token",
    "positions": "pos_embed as rows",
    "norm": "norm",
}


def _names(blocks: str, beside_attention: str, beside_mlp: str, head: str) -> Names:
    parts = {**SAME, "beside_attention": beside_attention, "beside_mlp": beside_mlp}
    inside = {f"parts.{{i}}.blocks.{{j}}.{ours}": blocks + part for ours, part in parts.items()}
    return {**AROUND, **inside, "head": head}


LIBRARIES: dict[str, Names] = {
    "timm": _names("stages.{i}.blocks.{j}.", "shortcut_proj_attn", "shortcut_proj_mlp", "head.fc"),
    "official": _names("blocks.{n}.", "proj", "proj", "head.projection"),
}


def fitted(offsets: Float[Tensor, "rows K"], count: int) -> Float[Tensor, "rows2 K"]:
    """Vectors of 2M − 1 offsets along a side for one of another length."""
    return resized_offsets(offsets.float(), count)
