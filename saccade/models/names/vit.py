"""What others call the parts of a Vision Transformer: timm, torchvision, Hugging Face 4 and 5."""

import math
import re

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.blocks.patches import resized

WRAPPERS = re.compile(r"^(vit|deit)\.")
BLOCK = re.compile(
    r"^(?:blocks\.|layers\.|encoder\.layer\.|encoder\.layers\.encoder_layer_)(\d+)\.(.+)$"
)
PARTS = {
    "norm1": "around_attention.norm",
    "ln_1": "around_attention.norm",
    "layernorm_before": "around_attention.norm",
    "attn.proj": "self_attention.to_output",
    "self_attention.out_proj": "self_attention.to_output",
    "attention.output.dense": "self_attention.to_output",
    "attention.o_proj": "self_attention.to_output",
    **{
        theirs: f"self_attention.to_{ours}"
        for ours, name in (("q", "query"), ("k", "key"), ("v", "value"))
        for theirs in (f"attention.attention.{name}", f"attention.{ours}_proj")
    },
    "norm2": "around_mlp.norm",
    "ln_2": "around_mlp.norm",
    "layernorm_after": "around_mlp.norm",
    "mlp.fc1": "mlp.widen",
    "mlp.0": "mlp.widen",
    "mlp.linear_1": "mlp.widen",
    "intermediate.dense": "mlp.widen",
    "mlp.fc2": "mlp.narrow",
    "mlp.3": "mlp.narrow",
    "mlp.linear_2": "mlp.narrow",
    "output.dense": "mlp.narrow",
}
JOINT = ("attn.qkv", "self_attention.in_proj")  # queries, keys and values as one matrix
OUTSIDE = {
    "cls_token": "class_token",
    "embeddings.cls_token": "class_token",
    "pos_embed": "positions",
    "encoder.pos_embedding": "positions",
    "embeddings.position_embeddings": "positions",
    "patch_embed.proj": "patches.project",
    "conv_proj": "patches.project",
    "embeddings.patch_embeddings.projection": "patches.project",
    "encoder.ln": "norm",
    "layernorm": "norm",
    "heads.head": "head",
    "classifier": "head",
}


def translated(name: str, tensor: Tensor) -> list[tuple[str, Tensor]]:
    """What one of their tensors is to us; a name that nobody uses stays as it is."""
    name = WRAPPERS.sub("", name)
    block = BLOCK.match(name)
    if block is None:
        ours = _renamed(name, OUTSIDE)
        return [(ours, _shaped(ours, tensor))]
    inside = f"encoder.{block[1]}."
    part, leaf = _leaf(block[2])
    if part in JOINT and tensor.dim() and len(tensor) % 3 == 0:
        thirds = zip("qkv", tensor.chunk(3))
        return [(f"{inside}self_attention.to_{which}.{leaf}", third) for which, third in thirds]
    return [(inside + _renamed(block[2], PARTS), tensor)]


def _leaf(name: str) -> tuple[str, str]:
    """In torch's own attention, and so in torchvision, it is `in_proj_weight` with no dot."""
    part, _, leaf = name.replace("in_proj_", "in_proj.").rpartition(".")
    return part, leaf


def _renamed(name: str, names: dict[str, str]) -> str:
    if name in names:
        return names[name]
    part, _, leaf = name.rpartition(".")
    return f"{names[part]}.{leaf}" if part in names else name


def _shaped(name: str, tensor: Tensor) -> Tensor:
    """Without the axes of length one that others carry along; a convolution as a matrix."""
    if name == "class_token":
        return tensor.flatten()
    if name == "positions" and tensor.dim() == 3:
        return tensor[0]
    if name == "patches.project.weight" and tensor.dim() == 4:
        return tensor.flatten(1)
    return tensor


def fitted(positions: Float[Tensor, "T D"], count: int) -> Float[Tensor, "T2 D"] | None:
    """Learnt positions for another number of patches, if those they are of make a square.

    Before the patches stand one class token, two tokens of which the first is ours (distilled
    models), or none with a position; then the class token's is zero.
    """
    side = math.isqrt(count - 1)
    for special in (1, 2, 0):
        old = math.isqrt(max(0, len(positions) - special))
        if old and old**2 + special == len(positions):
            cells = resized(positions[special:].float(), (old, old), (side, side))
            first = positions[:1].float() if special else cells.new_zeros(1, cells.shape[1])
            return torch.cat([first, cells])
    return None
