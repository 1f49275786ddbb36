"""An image of any shape as a square one: by cutting, by squeezing, or by filling up."""

from typing import Literal

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

Fit = Literal["crop", "squeeze", "pad"]
GREY = 128  # of what fills up: nearly zero, once normalised


def fitted(image: UInt8[Tensor, "3 H W"], size: int, fit: Fit) -> UInt8[Tensor, "3 size size"]:
    """Resized with antialiased bicubic weights to `size` × `size`.

    crop keeps the middle of the longer side, squeeze changes the proportions, pad fills up with
    grey.
    """
    _, height, width = image.shape
    if (height, width) == (size, size):
        return image
    picture = Image.fromarray(image.numpy().transpose(1, 2, 0).copy())
    if fit == "pad":
        return _padded(picture, size)
    box = (0.0, 0.0, float(width), float(height))
    if fit == "crop":
        side = min(height, width)
        left, top = (width - side) / 2, (height - side) / 2
        box = (left, top, left + side, top + side)
    return _tensor(picture.resize((size, size), Image.Resampling.BICUBIC, box))


def _padded(picture: Image.Image, size: int) -> UInt8[Tensor, "3 size size"]:
    scale = size / max(picture.size)
    width, height = (max(1, round(side * scale)) for side in picture.size)
    whole = Image.new("RGB", (size, size), (GREY, GREY, GREY))
    small = picture.resize((width, height), Image.Resampling.BICUBIC)
    whole.paste(small, ((size - width) // 2, (size - height) // 2))
    return _tensor(whole)


def _tensor(picture: Image.Image) -> UInt8[Tensor, "3 H W"]:
    return torch.from_numpy(np.asarray(picture).transpose(2, 0, 1).copy())
