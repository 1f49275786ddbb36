"""What augmentation policies do to images, for a whole batch at once, each image its own.

Every operation is one of four kinds, and a batch goes through the four passes once, whichever
operation each of its images has: a movement of the plane, a table from 256 levels to 256 levels
for each channel, a blend with grey, a blend with a blurred image. Nothing depends on the data but
numbers, so that a GPU can be sent through it without being waited for. What an operation does is
what Pillow's of that name does, up to rounding.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data.images.augment import GREY, Images, grey
from saccade.data.images.constants import constant

LEVELS = 256
FILL = 0.5  # what lies beyond the image
OPERATIONS = (
    "identity",
    # movements; what comes with them: a slope, a share of the side, degrees
    "shear-x",
    "shear-y",
    "translate-x",
    "translate-y",
    "rotate",
    # tables; a factor, bits that are kept, a level from which on all is turned around, levels added
    "brightness",
    "contrast",
    "posterize",
    "solarize",
    "solarize-add",
    "invert",
    "autocontrast",
    "equalize",
    # blends; a factor, 1 leaves the image as it is
    "colour",
    "sharpness",
)
Counts = Float[Tensor, "B 3 256"]


def operate(
    images: Images, operation: Int[Tensor, " B"], amount: Float[Tensor, " B"]
) -> Float[Tensor, "B 3 H W"]:
    """Each image, in 0…1, after its own operation by its own amount."""
    x = _moved(images, operation, amount)
    x = _mapped(x, operation, amount)
    factor = amount[:, None, None, None]
    x = _where(operation, "colour", torch.lerp(grey(x).expand_as(x), x, factor).clamp(0, 1), x)
    sharp = torch.lerp(_smooth(x), x, factor).clamp(0, 1)
    return _where(operation, "sharpness", sharp, x)


def _where(operation: Int[Tensor, " B"], name: str, one: Tensor, other: Tensor) -> Tensor:
    mine = operation == OPERATIONS.index(name)
    return torch.where(mine.view(-1, *[1] * (one.dim() - 1)), one, other)


def _moved(images: Images, operation: Int[Tensor, " B"], amount: Float[Tensor, " B"]) -> Images:
    """Every pixel is fetched from where it was, straight lines in between.

    x' = A x, about the middle of the image, in pixels
    """
    height, width = images.shape[2:]
    zero, one = torch.zeros_like(amount), torch.ones_like(amount)
    angle = torch.deg2rad(amount)
    cos, sin = angle.cos(), angle.sin()
    rows = {
        "shear-x": (one, amount, zero, zero, one, zero),
        "shear-y": (one, zero, zero, amount, one, zero),
        "translate-x": (one, zero, amount * width, zero, one, zero),
        "translate-y": (one, zero, zero, zero, one, amount * height),
        "rotate": (cos, -sin, zero, sin, cos, zero),
    }
    matrix = torch.stack([one, zero, zero, zero, one, zero], dim=1)
    for name, values in rows.items():
        matrix = _where(operation, name, torch.stack(values, dim=1), matrix)
    side = constant((width / 2, height / 2, 1.0), matrix)
    scaled = matrix.view(-1, 2, 3) * side / side[:2, None]  # grids run from −1 to 1
    grid = F.affine_grid(scaled, list(images.shape), align_corners=False)
    moved = F.grid_sample(images - FILL, grid, align_corners=False) + FILL
    moves = (operation >= 1) & (operation <= len(rows))
    return torch.where(moves[:, None, None, None], moved, images)


def _mapped(images: Images, operation: Int[Tensor, " B"], amount: Float[Tensor, " B"]) -> Images:
    """Through a table of each channel; images without one keep all that they have."""
    levels = (images * (LEVELS - 1)).round().long().flatten(2)  # (B, 3, H W)
    counts = _counted(levels, images.dtype)
    level = torch.arange(LEVELS, device=images.device, dtype=images.dtype).expand_as(counts)
    table, given = level, amount[:, None, None]
    for name, make in TABLES.items():
        table = _where(operation, name, make(level, given, counts), table)
    mapped = table.clamp(0, LEVELS - 1).gather(2, levels).view_as(images) / (LEVELS - 1)
    first, last = OPERATIONS.index("brightness"), OPERATIONS.index("equalize")
    maps = (operation >= first) & (operation <= last)
    return torch.where(maps[:, None, None, None], mapped, images)


def _counted(levels: Int[Tensor, "B 3 pixels"], dtype: torch.dtype) -> Counts:
    """How many pixels have each level. Whole numbers add up alike in whichever order."""
    strict = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        counts = torch.zeros(*levels.shape[:2], LEVELS, dtype=dtype, device=levels.device)
        return counts.scatter_add(2, levels, torch.ones_like(levels, dtype=dtype))
    finally:
        torch.use_deterministic_algorithms(strict)


def _contrast(level: Tensor, factor: Tensor, counts: Counts) -> Tensor:
    """Away from the mean of the image in grey."""
    pixels = counts[:, :1].sum(dim=2, keepdim=True)
    share = constant(GREY, level)
    means = (counts * level).sum(dim=2, keepdim=True) / pixels  # (B, 3, 1)
    mean = (means * share[:, None]).sum(dim=1, keepdim=True)
    return torch.lerp(mean, level, factor)


def _autocontrast(level: Tensor, amount: Tensor, counts: Counts) -> Tensor:
    """The darkest level there is becomes 0, the brightest 255."""
    there = counts > 0
    low = torch.where(there, level, LEVELS).amin(dim=2, keepdim=True)
    high = torch.where(there, level, -1.0).amax(dim=2, keepdim=True)
    stretched = (level - low) * ((LEVELS - 1) / (high - low).clamp(min=1))
    return torch.where(high > low, stretched.clamp(0, LEVELS - 1).floor(), level)


def _equalize(level: Tensor, amount: Tensor, counts: Counts) -> Tensor:
    """As many pixels at each level as can be, as Pillow counts it."""
    last = torch.where(counts > 0, level, -1.0).amax(dim=2, keepdim=True).clamp(min=0).long()
    step = ((counts.sum(dim=2, keepdim=True) - counts.gather(2, last)) / (LEVELS - 1)).floor()
    before = counts.long().cumsum(dim=2).to(counts) - counts  # of whole numbers, in any order
    spread = (((step / 2).floor() + before) / step.clamp(min=1)).floor().clamp(max=LEVELS - 1)
    return torch.where(step > 0, spread, level)


TABLES: dict[str, Callable[[Tensor, Tensor, Counts], Tensor]] = {
    "brightness": lambda level, factor, _: level * factor,
    "contrast": _contrast,
    "posterize": lambda level, bits, _: (level / 2 ** (8 - bits)).floor() * 2 ** (8 - bits),
    "solarize": lambda level, start, _: torch.where(level < start, level, LEVELS - 1 - level),
    "solarize-add": lambda level, more, _: torch.where(level < LEVELS // 2, level + more, level),
    "invert": lambda level, _amount, _: LEVELS - 1 - level,
    "autocontrast": _autocontrast,
    "equalize": _equalize,
}


def _smooth(images: Images) -> Images:
    """Each pixel with its eight neighbours, itself five times; the border stays."""
    kernel = constant(((1, 1, 1), (1, 5, 1), (1, 1, 1)), images)
    kernel = (kernel / kernel.sum()).expand(3, 1, 3, 3)
    inner = F.conv2d(images, kernel, groups=3)
    return F.pad(inner, (1, 1, 1, 1)) + images * _border(images)


def _border(images: Images) -> Float[Tensor, "H W"]:
    """One on the border of an image, else zero."""
    height, width = images.shape[2:]
    return 1 - F.pad(images.new_ones(height - 2, width - 2), (1, 1, 1, 1))


def blurred(images: Images, radius: Float[Tensor, " B"]) -> Images:
    """By a Gaussian of each image's own width, in pixels; borders are mirrored."""
    reach = min(REACH, min(images.shape[2:]) - 1)
    places = torch.arange(-reach, reach + 1, device=images.device, dtype=images.dtype)
    bell = (-0.5 * (places / radius[:, None]).square()).exp()  # (B, 2 reach + 1)
    bell = (bell / bell.sum(dim=1, keepdim=True)).repeat_interleave(3, dim=0)[:, None, None, :]
    x = F.pad(images, [reach] * 4, mode="reflect").flatten(0, 1)[None]  # (1, B · 3, …)
    x = F.conv2d(x, bell, groups=x.shape[1])
    x = F.conv2d(x, bell.mT, groups=x.shape[1])
    return x[0].unflatten(0, images.shape[:2])


REACH = 6  # three times the widest blur of a policy
