"""Hugging Face's ViTForImageClassification."""

from importlib import import_module
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from saccade.models.vision.vit import VitConfig

NEEDS = "transformers"


class Scores(nn.Module):
    """Theirs, giving class scores alone."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.model(image).logits


def make(config: VitConfig) -> nn.Module:
    """Random weights in our sizes."""
    hf: Any = import_module(NEEDS)
    theirs = hf.ViTConfig(
        image_size=config.image,
        patch_size=config.patch,
        hidden_size=config.width,
        num_hidden_layers=config.depth,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        num_labels=config.classes,
        layer_norm_eps=config.epsilon,
    )
    return Scores(hf.ViTForImageClassification(theirs))
