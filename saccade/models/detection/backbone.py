"""How a detector sees an image: as a grid of vectors of its own width."""

from dataclasses import replace

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.models.detection.config import DetrConfig
from saccade.models.vision.encoders import encoder_config
from saccade.models.vision.image_encoder import image_axis


class DetectorBackbone(nn.Module):
    """An image as a grid of vectors of the model's width.

    z = W₅ c₅        or        z = conv(W₄ c₄ + upsampled(W₅ c₅))

    The second is the top of a feature pyramid (Lin et al. 2017, arXiv:1612.03144).
    """

    def __init__(self, config: DetrConfig) -> None:
        super().__init__()
        self.encoder = replace(encoder_config(config.encoder), classes=0).build()
        self.stage = self.encoder.checked(config.stage or None)
        self.finer = self.encoder.checked(config.finer) if config.finer else 0
        self.encoder.drop_after(self.stage)
        if config.frozen:
            self.encoder.freeze_below(self.encoder.checked(config.frozen))
        if config.frozen_norms:
            norms = (m for m in self.encoder.modules() if isinstance(m, nn.BatchNorm2d))
            self.encoder.freeze(*norms)
        width = config.width
        self.project = nn.Conv2d(self.encoder.channels(self.stage), width, 1)
        if self.finer:
            self.project_finer = nn.Conv2d(self.encoder.channels(self.finer), width, 1)
            self.smooth = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, images: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B D h w"]:
        pixels = images.contiguous(memory_format=torch.channels_last)
        if not self.finer:
            return self.project(self.encoder.grid(pixels, self.stage))
        fine = self.encoder.grid(pixels, self.finer)
        coarse = self.project(self.encoder.onward(fine, self.finer, self.stage))
        return self.smooth(self.project_finer(fine) + F.interpolate(coarse, fine.shape[2:]))

    def axis(self, shape: tuple[int, int]) -> Axis:
        """Where the cells lie."""
        return image_axis(shape, self.encoder.cells(self.finer or self.stage))
