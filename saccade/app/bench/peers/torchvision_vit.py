"""torchvision's VisionTransformer."""

from importlib import import_module
from typing import Any

from torch import nn

from saccade.models.vision.vit import VitConfig

NEEDS = "torchvision"


def make(config: VitConfig) -> nn.Module:
    """Random weights in our sizes."""
    theirs: Any = import_module("torchvision.models.vision_transformer")
    return theirs.VisionTransformer(
        image_size=config.image,
        patch_size=config.patch,
        num_layers=config.depth,
        num_heads=config.heads,
        hidden_dim=config.width,
        mlp_dim=4 * config.width,
        num_classes=config.classes,
    )
