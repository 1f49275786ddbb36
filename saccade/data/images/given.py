"""An image as people give it: a file, its bytes, an array, a tensor, an image of Pillow."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from saccade.data.images.decode import ImageError, upright, upright_size
from saccade.data.images.decode import decode as decode_image
from saccade.data.images.members import Member
from saccade.errors import DataError
from saccade.printable import printable

AnyImage = str | Path | bytes | Member | Image.Image | np.ndarray | Tensor


def an_image(given: object) -> Any:
    """What may hold an image; anything else is refused."""
    if not isinstance(given, str | Path | bytes | Member | Image.Image | np.ndarray | Tensor):
        what = type(given).__name__
        raise DataError(f"{what} is no image; give a file, its bytes, an array or a list of these")
    return given


def image_name(image: AnyImage, number: int) -> str:
    """That of its file, or its number among others."""
    if isinstance(image, Member):
        return image.name
    return printable(image) if isinstance(image, str | Path) else f"image {number}"


def pixels_of(image: AnyImage, *, name: str = "", short: int) -> UInt8[Tensor, "3 H W"]:
    """Any image as red, green and blue; a file may come smaller, but not below `short` pixels."""
    if isinstance(image, str):
        image = Path(image)
    if isinstance(image, bytes | Path | Member):
        return decode_image(image, name=name, short=short)
    name = name or "the image"
    if isinstance(image, Image.Image):
        if image.mode == "F" or not all(image.size):
            width, height = image.size
            reason = (
                f"no image: {width}×{height} of Pillow's mode {image.mode}; give pixels, as RGB"
            )
            raise ImageError(name, reason)
        try:
            return upright(image)
        except Exception as error:  # a file that Pillow has yet to read may be damaged in any way
            why = (str(error) or type(error).__name__).partition("\n")[0][:200]
            raise ImageError(name, f"damaged image: {why}; fetch it again") from None
    if isinstance(image, Tensor):
        if image.dtype != torch.uint8 or image.dim() != 3 or len(image) != 3 or not image.numel():
            raise _refused(name, "(3, H, W)", image.dtype, image.shape)
        return image.cpu()
    flat = image.ndim == 2 or (image.ndim == 3 and image.shape[2] in (3, 4))
    if image.dtype != np.uint8 or not flat or not image.size:
        raise _refused(name, "(H, W), (H, W, 3) or (H, W, 4)", image.dtype, image.shape)
    return upright(Image.fromarray(image))


def size_of(image: AnyImage, *, name: str = "") -> tuple[int, int]:
    """Height and width of any image, once upright; of a file no more than that is read."""
    if isinstance(image, str | Path):
        return upright_size(Path(image), name=name)
    if isinstance(image, bytes | Member):
        return upright_size(image, name=name)
    height, width = pixels_of(image, name=name, short=1).shape[1:]
    return height, width


def _refused(name: str, shapes: str, dtype: object, shape: tuple[int, ...]) -> ImageError:
    return ImageError(
        name,
        f"no image: {dtype} values of shape {tuple(shape)}; give uint8 ones of shape {shapes}",
    )
