"""A DETR of Hugging Face's and ours of the same sizes, with the same random weights."""

from dataclasses import dataclass
from typing import Any

import torch
import transformers
from torch import Tensor

from saccade.app.bench.peers.detr import their_config
from saccade.models.detection.detr import Detr, DetrConfig
from saccade.models.names.detr import LIBRARIES
from saccade.models.names.table import to_ours

HF: Any = transformers
CLASSES = 3
SMALL = DetrConfig(
    encoder="resnet-mini",
    frozen_norms=True,
    classes=CLASSES,
    queries=5,
    width=16,
    encoder_depth=2,
    depth=3,
    heads=2,
    hidden=24,
    dropout=0.0,
)


def shaken(model: Any, seed: int) -> Any:
    """Every weight random, also those that start at nought or one."""
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if not tensor.is_floating_point():
                continue
            noise = torch.randn(tensor.shape, generator=draws, dtype=torch.float64)
            if "running_var" in name:
                tensor.copy_(1 + 0.3 * noise.abs())
            else:
                tensor.add_(0.1 * noise)
    return model


@dataclass(frozen=True)
class DetrTwins:
    theirs: Any
    ours: Detr

    @classmethod
    def built(cls, config: DetrConfig = SMALL, seed: int = 0) -> "DetrTwins":
        torch.manual_seed(seed)
        theirs = shaken(HF.DetrForObjectDetection(their_config(config)), seed).double().eval()
        ours = config.build().double().eval()
        assert isinstance(ours, Detr)
        state = ours.state_dict()
        found = to_ours(LIBRARIES["huggingface-5"], theirs.state_dict(), state)
        absent = {name for name in state if name not in found}
        assert all(name.endswith("num_batches_tracked") for name in absent)
        ours.load_state_dict(found, strict=False)
        return cls(theirs, ours)


def images(*shape: int, seed: int = 3) -> Tensor:
    draws = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=draws, dtype=torch.float64)
