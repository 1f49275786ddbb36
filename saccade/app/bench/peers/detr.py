"""Hugging Face's DetrForObjectDetection."""

import re
from importlib import import_module
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.models.detection.config import DetrConfig
from saccade.models.names.detr import LIBRARIES
from saccade.models.names.table import to_theirs
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.resnet import ResNetConfig
from saccade.tasks.detection.matching import TrueObjects

NEEDS = "transformers"
LEARNT = re.compile(r"stages\.[123]\.")  # of its backbone, as published: all but the first stage


def their_config(config: DetrConfig, *, auxiliary: bool = False) -> Any:
    """Our sizes; attention weights are not dropped, as ours are not. `auxiliary` are the losses
    after earlier layers.
    """
    hf: Any = import_module(NEEDS)
    encoder = encoder_config(config.encoder)
    assert isinstance(encoder, ResNetConfig)
    backbone = hf.ResNetConfig(
        embedding_size=encoder.width,
        hidden_sizes=[encoder.width * encoder.expansion << stage for stage in range(4)],
        depths=list(encoder.blocks),
        layer_type="basic" if encoder.expansion == 1 else "bottleneck",
        downsample_in_bottleneck=False,
        out_features=["stage4"],
    )
    return hf.DetrConfig(
        use_timm_backbone=False,
        backbone_config=backbone,
        num_queries=config.queries,
        d_model=config.width,
        encoder_layers=config.encoder_depth,
        decoder_layers=config.depth,
        encoder_attention_heads=config.heads,
        decoder_attention_heads=config.heads,
        encoder_ffn_dim=config.hidden,
        decoder_ffn_dim=config.hidden,
        dropout=config.dropout,
        attention_dropout=0.0,
        num_labels=config.classes,
        auxiliary_loss=auxiliary,
    )


def make_detr(config: DetrConfig) -> Any:
    """Random weights in our sizes."""
    hf: Any = import_module(NEEDS)
    model = hf.DetrForObjectDetection(their_config(config, auxiliary=True))
    for name, parameter in model.named_parameters():
        if "backbone" in name:  # some versions freeze it whole
            parameter.requires_grad_(LEARNT.search(name) is not None)
    return model


@torch.no_grad()
def copy_weights(ours: nn.Module, theirs: nn.Module) -> None:
    """Make theirs compute what ours does, whatever this version of theirs calls its parts."""
    wanted, state = set(theirs.state_dict()), ours.state_dict()
    every = (to_theirs(names, state) for names in LIBRARIES.values())
    best = max(every, key=lambda weights: len(weights.keys() & wanted))
    missing = dict(theirs.named_parameters()).keys() - best.keys()
    assert not missing, f"nothing of ours is called {', '.join(sorted(missing))}"
    theirs.load_state_dict({name: best[name] for name in best.keys() & wanted}, strict=False)


class DetectionLoss(nn.Module):
    """Theirs: every layer's objects matched on the CPU, and the losses of all."""

    def __init__(self, model: Any, true: TrueObjects) -> None:
        super().__init__()
        self.model = model
        self.labels = [
            {"class_labels": labels[there], "boxes": boxes[there]}
            for boxes, labels, there in zip(*true)
        ]

    def forward(self, images: Float[Tensor, "B 3 H W"]) -> Float[Tensor, ""]:
        return self.model(pixel_values=images, labels=self.labels).loss
