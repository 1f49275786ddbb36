"""Runs of classifiers with random weights, small ones of every family; nothing is trained."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from saccade.models.vision import mvit
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from saccade.tasks.classification.data import ClassificationSettings
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder

NAMES = ["élan", "b", "c", "d", "e\x1b[31m"]
_vit = VitConfig(image=32, patch=8, width=24, depth=2, heads=2, classes=5)
FAMILIES: dict[str, tuple[ImageEncoderConfig, int]] = {
    "vit": (_vit, 32),
    "vit without biases": (replace(_vit, biased=False, expansion=2), 32),
    "deit3": (replace(_vit, layer_scale=0.5, class_position=False), 32),
    "swin": (SwinConfig(width=16, depths=(2, 2), heads=(2, 4), window=4, classes=5), 64),
    "convnext": (
        ConvNextConfig(depths=(1, 1, 2, 1), widths=(8, 12, 16, 20), layer_scale=0.5, classes=5),
        64,
    ),
    "convnext without scales": (
        ConvNextConfig(depths=(1, 1, 1, 1), widths=(8, 8, 12, 12), layer_scale=0.0, classes=5),
        64,
    ),
    "resnet-18": (ResNetConfig(depth=18, classes=5), 64),
    "resnet-50": (ResNetConfig(depth=50, width=8, classes=5), 64),
    "mobilenet": (MobileNetConfig(multiplier=0.35, classes=5), 64),
    "dilated mobilenet": (MobileNetConfig(multiplier=0.35, dilated=True, classes=5), 64),
    "mvitv2-t": (replace(mvit.PRESETS["mvitv2-t"], image=64, classes=5), 64),
}


def epsilons(model: nn.Module) -> set[float]:
    """Of all norms: too small to be seen in scores of random weights."""
    kinds = nn.LayerNorm | nn.BatchNorm2d
    return {module.eps for module in model.modules() if isinstance(module, kinds)}


def write_run(
    folder: Path, config: ImageEncoderConfig, image: int, *, several: bool = False, **task: Any
) -> tuple[RunFolder, nn.Module]:
    """A run as training would leave it, and its network."""
    torch.manual_seed(1)
    model = config.build().eval()
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if "running" in name:
                tensor.uniform_(0.5, 1.5)
            elif tensor.is_floating_point():
                tensor.add_(0.05 * torch.randn_like(tensor))
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    settings = ClassificationSettings(image=image, **task)
    run.save_recipe(
        Recipe(
            about="small",
            system="S0",
            lecture="none",
            model=config,
            task=settings,
            train=TrainSettings(steps=1),
        )
    )
    run.save_assets({"classes.json": json.dumps({"names": NAMES, "several": several}).encode()})
    run.save_weights(model)
    return run, model
