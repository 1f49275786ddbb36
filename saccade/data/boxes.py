"""Boxes as rows of four numbers, shares of an image's sides: by corners or by centre and size.

Corners are left, top, right, bottom; the other form is cx, cy, w, h. Which one a function takes is
in its name, and everything works on batches of any shape.
"""

import torch
from jaxtyping import Float
from torch import Tensor

TINY = 1e-9  # keeps what has no area from dividing by zero


def to_corners(boxes: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """cx, cy, w, h → left, top, right, bottom."""
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([middle - half, middle + half], dim=-1)


def to_centres(corners: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch 4"]:
    """left, top, right, bottom → cx, cy, w, h."""
    first, last = corners[..., :2], corners[..., 2:]
    return torch.cat([(first + last) / 2, last - first], dim=-1)


def area(corners: Float[Tensor, "*batch 4"]) -> Float[Tensor, "*batch"]:
    """Width times height."""
    return _product(corners[..., 2:] - corners[..., :2])


def _product(sides: Float[Tensor, "*batch 2"]) -> Float[Tensor, "*batch"]:
    """Written out: torch's own asks the CPU, on its way back, whether any side is zero."""
    return sides[..., 0] * sides[..., 1]


def iou(
    a: Float[Tensor, "*batch 4"], b: Float[Tensor, "*batch 4"]
) -> tuple[Float[Tensor, "*batch"], Float[Tensor, "*batch"]]:
    """Of boxes by their corners, the one with the other: the share they have in common; the union.

    IoU = |a ∩ b| / |a ∪ b|
    """
    first, last = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    common = _product((last - first).clamp_min(0))
    union = area(a) + area(b) - common
    return common / union.clamp_min(TINY), union


def generalised_iou(
    a: Float[Tensor, "*batch 4"], b: Float[Tensor, "*batch 4"]
) -> Float[Tensor, "*batch"]:
    """Also tells how far boxes are apart that do not meet (Rezatofighi et al. 2019,
    arXiv:1902.09630).

    GIoU = IoU − |C \\ (a ∪ b)| / |C|        C: the smallest box around both
    """
    shared, union = iou(a, b)
    first, last = torch.minimum(a[..., :2], b[..., :2]), torch.maximum(a[..., 2:], b[..., 2:])
    around = _product((last - first).clamp_min(0))
    return shared - (around - union) / around.clamp_min(TINY)
