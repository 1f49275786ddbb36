"""timm's VisionTransformer."""

from importlib import import_module
from typing import Any

from torch import nn

from saccade.models.vision.vit import VitConfig

NEEDS = "timm"


def make(config: VitConfig) -> nn.Module:
    """Random weights in our sizes."""
    theirs: Any = import_module("timm.models.vision_transformer")
    return theirs.VisionTransformer(
        img_size=config.image,
        patch_size=config.patch,
        num_classes=config.classes,
        embed_dim=config.width,
        depth=config.depth,
        num_heads=config.heads,
    )
