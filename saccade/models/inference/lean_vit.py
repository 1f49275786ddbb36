"""A Vision Transformer as classifying runs it: the same function, its weights joined once.

Nobody can look into it, and it gives class scores alone: for the rest the model itself is run.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.attention.attend import fused
from saccade.attention.kernels.train.linear import Linear
from saccade.blocks.inference.affine import Precision
from saccade.blocks.inference.memories import Prefill
from saccade.blocks.inference.packed import joint_product
from saccade.blocks.stack import packable, packed
from saccade.errors import ConfigError
from saccade.models.inference.encoder import copy_for_inference
from saccade.models.vision.vit import Vit, class_features


class LeanVit:
    """The scores that a `Vit` gives, to rounding or to the precision asked for."""

    def __init__(self, model: Vit, precision: Precision) -> None:
        assert isinstance(model.head, Linear)
        if not packable(model.class_sublayers()):
            raise ConfigError("attention with a temperature of its own has no form for inference")
        self.model = model
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.cut = copy_for_inference(model.patches, self.dtype).cut  # a CNN's cells, with a hybrid
        self.project = joint_product([model.patches.project], precision)
        self.stack = packed(model.class_sublayers(), model.norm, precision)
        self.head = joint_product([model.head], precision)

    @torch.no_grad()
    def __call__(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        x = self.model.tokens_of(image.to(self.dtype), self.cut, self.project, self.dtype)
        memory = ImageRows((x.shape[0], x.shape[1]))
        return self.head(class_features(self.stack, x.flatten(0, 1), memory))


class ImageRows(Prefill):
    """The tokens of all images one after another."""

    def look_from_class(self, site: Any, x: Float[Tensor, "R D"]) -> Float[Tensor, "B D"]:
        q = site.q(self.class_tokens(x)).view(self.shape[0], 1, site.heads, -1).transpose(1, 2)
        k, v = site.kv(x).view(*self.shape, 2, site.heads, -1).permute(2, 0, 3, 1, 4)
        return fused(q, k, v).flatten(1)  # (B, N, 1, K) → (B, D)

    def class_tokens(self, x: Float[Tensor, "R D"]) -> Float[Tensor, "B D"]:
        return x.view(*self.shape, -1)[:, 0].contiguous()
