"""Parts of an image that its owner marked, as pixels of the square image made from it."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.data.images.decode import decode
from saccade.data.images.members import Member
from saccade.data.images.square import Fit, fit_square

_ALIKE = 0.02  # of a mask's proportions and its image's: scaled copies are rounded


def fitted_boxes(
    boxes_xyxy: Float[Tensor, "boxes 4"], height: int, width: int, fit: Fit
) -> Float[Tensor, "boxes 4"]:
    """Boxes on an image of that size where they lie on the square; shares of the sides in both."""
    if fit == "squeeze":
        return boxes_xyxy
    side = min(height, width) if fit == "crop" else max(height, width)
    whole = torch.tensor([width, height, width, height], dtype=boxes_xyxy.dtype)
    return (boxes_xyxy * whole - (whole - side) / 2) / side


def unfitted_boxes(
    boxes_xyxy: Float[Tensor, "boxes 4"], height: int, width: int, fit: Fit
) -> Float[Tensor, "boxes 4"]:
    """The inverse: boxes on the square where they lie on an image of that size."""
    if fit == "squeeze":
        return boxes_xyxy
    side = min(height, width) if fit == "crop" else max(height, width)
    whole = torch.tensor([width, height, width, height], dtype=boxes_xyxy.dtype)
    return (boxes_xyxy * side + (whole - side) / 2) / whole


def fitted_mask(
    mask: Member, height: int, width: int, *, size: int, fit: Fit
) -> Bool[Tensor, "size size"] | None:
    """The marked pixels: those brighter than half of the brightest; None for another shape.

    So masks of 0 and 1 do as well as those of 0 and 255, and one that is all black marks nothing.
    """
    pixels = decode(mask)
    if abs(pixels.shape[1] * width / (pixels.shape[2] * height) - 1) > _ALIKE:
        return None
    bright = pixels.amax(dim=0)
    marked = bright.int() * 2 > bright.max().int()
    square = fit_square(marked.byte().mul(255).expand(3, -1, -1).contiguous(), size, fit)
    return square[0] > 128  # over the grey that fills up
