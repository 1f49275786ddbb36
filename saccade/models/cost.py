"""What reading an image costs, counted from the products that are really done."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from saccade.config import ModelConfig
from saccade.models.vision.vit import Vit


def multiply_adds(config: ModelConfig, height: int, width: int) -> int:
    """Multiply-adds of one image: of convolutions, matrix products and attention.

    Papers call these FLOPs. No weight is allocated, and nothing is computed. There is no fused
    attention where nothing is computed, so that its two products are counted like any others.
    """
    with torch.device("meta"), torch.no_grad():
        model = config.build().eval().requires_grad_(False)
        with FlopCounterMode(display=False) as counter:
            image = torch.empty(1, 3, height, width)
            # The last block's other tokens are not computed for scores, but papers count them.
            model.head(model.tokens(image)[:, 0]) if isinstance(model, Vit) else model(image)
    return counter.get_total_flops() // 2
