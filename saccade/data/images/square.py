"""An image of any shape as a square one: by cutting, by squeezing, or by filling up."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

Fit = Literal["crop", "squeeze", "pad"]
GREY = 128  # of what fills up: nearly zero, once normalised


def fit_square(image: UInt8[Tensor, "3 H W"], size: int, fit: Fit) -> UInt8[Tensor, "3 size size"]:
    """Resized with antialiased bicubic weights to `size` × `size`.

    crop keeps the middle of the longer side, squeeze changes the proportions, pad fills up with
    grey.
    """
    _, height, width = image.shape
    if (height, width) == (size, size):
        return image
    pixels = Image.fromarray(image.numpy().transpose(1, 2, 0).copy())
    if fit == "pad":
        return _padded(pixels, size)
    box = (0.0, 0.0, float(width), float(height))
    if fit == "crop":
        side = min(height, width)
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side)
    return _tensor(pixels.resize((size, size), Image.Resampling.BICUBIC, box))


def _padded(pixels: Image.Image, size: int) -> UInt8[Tensor, "3 size size"]:
    scale = size / max(pixels.size)
    width, height = (max(1, round(side * scale)) for side in pixels.size)
    whole = Image.new("RGB", (size, size), (GREY, GREY, GREY))
    small = pixels.resize((width, height), Image.Resampling.BICUBIC)
    whole.paste(small, ((size - width) // 2, (size - height) // 2))
    return _tensor(whole)


def _tensor(pixels: Image.Image) -> UInt8[Tensor, "3 H W"]:
    return torch.from_numpy(np.asarray(pixels).transpose(2, 0, 1).copy())
