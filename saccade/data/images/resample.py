"""Cut a box out of each image and resize it, all in two matrix products.

Antialiased resizing is linear and goes along one axis at a time, so each image x becomes

    y = R x Cᵀ        R[i, k] = f((k + ½ − top − (i + ½) s) / max(s, 1)) / Σₖ        s = height / H

and likewise C, where f is a tent (bilinear) or Keys' cubic (bicubic), and rows of x outside the
box have no weight. Boxes differ within a batch, on any device, which no library call offers.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

Filter = Callable[[Tensor], Tensor]


def tent(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """f(x) = 1 − |x| where that is positive: bilinear."""
    return (1 - x.abs()).clamp_min(0)


def cubic(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Keys' cubic with a = −½, the one that Pillow uses: bicubic."""
    x = x.abs()
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, torch.zeros_like(x)))


def resample(
    images: Float[Tensor, "B C H W"],
    boxes: Float[Tensor, "B 4"],
    *,
    height: int,
    width: int,
    filter: Filter = tent,  # noqa: A002 (what everyone calls it)
) -> Float[Tensor, "B C height width"]:
    """The `boxes` (top, left, height, width; in pixels) of the images at one size.

    A negative height or width reads the box backwards: it flips.
    """
    top, left, tall, wide = boxes.to(images).unbind(dim=1)
    rows = weights(top, tall, source=images.shape[2], target=height, filter=filter)
    columns = weights(left, wide, source=images.shape[3], target=width, filter=filter)
    across = (images.flatten(1, 2) @ columns.mT).unflatten(1, images.shape[1:3])  # (B, C, H, width)
    return rows[:, None] @ across  # (B, C, height, width)


def weights(
    start: Float[Tensor, " B"],
    length: Float[Tensor, " B"],
    *,
    source: int,
    target: int,
    filter: Filter,  # noqa: A002
) -> Float[Tensor, "B target source"]:
    """How much of each source pixel goes into each target pixel, along one axis."""
    span = length.abs()[:, None]  # (B, 1)
    place = torch.arange(source, device=start.device) + 0.5 - start[:, None]  # (B, source)
    step = span / target
    centre = (torch.arange(target, device=start.device) + 0.5) * step  # (B, target)
    centre = torch.where(length[:, None] < 0, span - centre, centre)
    distance = (place[:, None] - centre[:, :, None]) / step.clamp_min(1)[:, None]
    inside = ((place > 0) & (place < span))[:, None]
    found = filter(distance) * inside  # (B, target, source)
    return found / found.sum(dim=2, keepdim=True)
