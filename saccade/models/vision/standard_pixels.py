"""Pixels as image encoders want them."""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.data.images.augment import IMAGENET, Normalise


class StandardPixels(nn.Module):
    """(pixels − mean) / deviation, of bytes; channels lie last in memory."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, norm: Normalise = IMAGENET) -> None:
        super().__init__()
        mean, deviation = torch.tensor(norm.mean), torch.tensor(norm.deviation)
        self.register_buffer("mean", 255 * mean.view(3, 1, 1), persistent=False)
        self.register_buffer("deviation", 255 * deviation.view(3, 1, 1), persistent=False)

    def forward(self, images: UInt8[Tensor, "B 3 H W"]) -> Float[Tensor, "B 3 H W"]:
        pixels = (images - self.mean) / self.deviation
        return pixels.contiguous(memory_format=torch.channels_last)
