"""Image files as tensors of red, green and blue; `pixels.py` has what is read, and what is not."""

from pathlib import Path

import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from saccade.data.images.members import Member
from saccade.data.images.pixels import (
    MAX_PIXELS,
    ImageError,
    decode_pixels,
    upright_pixels,
    upright_size,
)

__all__ = ["MAX_PIXELS", "ImageError", "decode", "upright", "upright_size"]


def decode(
    source: bytes | Path | Member,
    *,
    name: str = "",
    short: int | None = None,
    most: int = MAX_PIXELS,
) -> UInt8[Tensor, "3 H W"]:
    """An image of at most `most` pixels, upright. `name` is for messages.

    With `short`, a large JPEG may come at 1/2, 1/4 or 1/8 of its size, its shorter side still
    `short` pixels or more: this is faster, and the only way to read one over `most`.
    """
    return torch.from_numpy(decode_pixels(source, name=name, short=short, most=most))


def upright(image: Image.Image) -> UInt8[Tensor, "3 H W"]:
    """An image that Pillow holds, turned as its camera noted, in RGB over white."""
    return torch.from_numpy(upright_pixels(image))
