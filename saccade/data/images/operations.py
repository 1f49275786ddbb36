"""What augmentation policies do to images, for a whole batch at once, each image its own.

Every operation is one of three kinds, and a batch goes through the three passes once, whichever
operation each of its images has: a movement of the plane, a table from 256 levels to 256 levels
for each channel, a blend with grey or with a blurred image. Operations differ only in a row of
numbers, so that a GPU can be sent through them without being waited for, and launches as little for
many as for one. What an operation does is what Pillow's of that name does, up to rounding.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.images.augment import GREY, Images, grey
from saccade.data.images.constants import constant

LEVELS = 256
FILL = 0.5  # what lies beyond the image
ALWAYS = 2.0 * LEVELS  # above every level
REACH = 6  # three times the widest blur of a policy

Weights = tuple[float, float, float, float, float]
# Of 1, the amount a, cos a, sin a (in degrees), and 2⁸⁻ᵃ
NONE: Weights = (0, 0, 0, 0, 0)
ONE: Weights = (1, 0, 0, 0, 0)
AMOUNT: Weights = (0, 1, 0, 0, 0)
TWICE: Weights = (0, 2, 0, 0, 0)
REST: Weights = (1, -1, 0, 0, 0)
COSINE: Weights = (0, 0, 1, 0, 0)
SINE: Weights = (0, 0, 0, 1, 0)
MINUS: Weights = (0, 0, 0, -1, 0)
POWER: Weights = (0, 0, 0, 0, 1)


class Formula(NamedTuple):
    """The numbers of an operation, as sums of what its amount gives.

    (x, y) ← (xx x + yx y + x0, xy x + yy y + y0)        from the middle of the image
    level ← slope · q + offset + pull · mean        if level < start
    level ← high_slope · q + high_offset        else, where q = step · ⌊level / step⌋
    image ← (1 − factor) · other + factor · image
    """

    xx: Weights = ONE
    xy: Weights = NONE
    yx: Weights = NONE
    yy: Weights = ONE
    x0: Weights = NONE
    y0: Weights = NONE
    step: Weights = ONE
    start: Weights = (ALWAYS, 0, 0, 0, 0)
    slope: Weights = ONE
    offset: Weights = NONE
    pull: Weights = NONE
    high_slope: Weights = ONE
    high_offset: Weights = NONE
    factor: Weights = ONE
    moves: Weights = NONE
    maps: Weights = NONE


TOP: Weights = (LEVELS - 1, 0, 0, 0, 0)
TURNED = Formula(maps=ONE, high_slope=(-1, 0, 0, 0, 0), high_offset=TOP)
FORMULAS: dict[str, Formula] = {
    "identity": Formula(),
    # movements; what comes with them: a slope, a share of the side, degrees
    "shear-x": Formula(moves=ONE, yx=AMOUNT),
    "shear-y": Formula(moves=ONE, xy=AMOUNT),
    "translate-x": Formula(moves=ONE, x0=TWICE),
    "translate-y": Formula(moves=ONE, y0=TWICE),
    "rotate": Formula(moves=ONE, xx=COSINE, yx=MINUS, xy=SINE, yy=COSINE),
    # tables; a factor, bits that are kept, a level from which on all is turned around, levels added
    "brightness": Formula(maps=ONE, slope=AMOUNT),
    "contrast": Formula(maps=ONE, slope=AMOUNT, pull=REST),
    "posterize": Formula(maps=ONE, step=POWER),
    "solarize": TURNED._replace(start=AMOUNT),
    "solarize-add": Formula(maps=ONE, start=(LEVELS // 2, 0, 0, 0, 0), offset=AMOUNT),
    "invert": TURNED._replace(start=NONE),
    "autocontrast": Formula(maps=ONE),
    "equalize": Formula(maps=ONE),
    # blends; a factor, 1 leaves the image as it is
    "colour": Formula(factor=AMOUNT),
    "sharpness": Formula(factor=AMOUNT),
}
OPERATIONS = tuple(FORMULAS)
MOVEMENTS = {name for name, formula in FORMULAS.items() if formula.moves == ONE}
TABLES = {name for name, formula in FORMULAS.items() if formula.maps == ONE}
THRESHOLDS = {"solarize", "solarize-add", "invert"}
STRETCHES = {"autocontrast", "equalize"}
Counts = Float[Tensor, "B 3 256"]
Numbers = dict[str, Float[Tensor, "B 1 1"]]  # of each image's operation, as `Formula` names them


def operate(
    images: Images,
    operation: Int[Tensor, "B steps"],
    amount: Float[Tensor, "B steps"],
    among: Sequence[Collection[str]] = (),
) -> Float[Tensor, "B 3 H W"]:
    """Each image, in 0…1, after its own operations by its own amounts, one after another.

    Where it is known `among` which operations each step's are, what serves no other is left out.
    """
    among = among or [OPERATIONS] * operation.shape[1]
    numbers = _numbers(operation, amount, among)
    for mine, names, rows in zip(operation.unbind(dim=1), among, numbers.unbind(dim=1)):
        of = dict(zip(Formula._fields, rows[..., None, None].unbind(dim=1)))
        if not MOVEMENTS.isdisjoint(names):
            images = _moved(images, rows[:, :6], of["moves"])
        if not TABLES.isdisjoint(names):
            images = _mapped(images, mine, of, names)
        if "colour" in names or "sharpness" in names:
            images = _blended(images, mine, of, names)
    return images


def _numbers(
    operation: Int[Tensor, "B steps"],
    amount: Float[Tensor, "B steps"],
    among: Sequence[Collection[str]],
) -> Float[Tensor, "B steps numbers"]:
    """What each operation's formula gives for its amount."""
    one = constant(1.0, amount).expand_as(amount)
    cosine = sine = power = one
    if any("rotate" in names for names in among):
        angle = torch.deg2rad(amount)
        cosine, sine = angle.cos(), angle.sin()
    if any("posterize" in names for names in among):
        power = (8 - amount).exp2().round()  # whole on a GPU, too
    given = torch.stack([one, amount, cosine, sine, power], dim=2)
    return (constant(tuple(FORMULAS.values()), amount)[operation] * given[:, :, None]).sum(dim=3)


def _is(operation: Int[Tensor, " B"], name: str) -> Bool[Tensor, "B 1 1"]:
    return (operation == OPERATIONS.index(name))[:, None, None]


def _moved(images: Images, plane: Float[Tensor, "B 6"], moves: Float[Tensor, "B 1 1"]) -> Images:
    """Every pixel is fetched from where it was, straight lines in between."""
    height, width = images.shape[2:]
    across, down, start = plane[:, None, None].split(2, dim=3)  # (B, 1, 1, 2)
    x = constant(_middles(width, (1.0, width / height)), images)  # (W, 2)
    y = constant(_middles(height, (height / width, 1.0)), images)[:, None]  # (H, 1, 2)
    grid = torch.addcmul(torch.addcmul(start, down, y), across, x)  # (B, H, W, 2)
    moved = F.grid_sample(images - FILL, grid, align_corners=False) + FILL
    return torch.where(moves[:, None] > 0, moved, images)


def _middles(size: int, sides: tuple[float, float]) -> tuple[tuple[float, float], ...]:
    """Of so many pixels from −1 to 1, in units of either half side."""
    middles = ((2 * place + 1) / size - 1 for place in range(size))
    return tuple((sides[0] * middle, sides[1] * middle) for middle in middles)


def _mapped(
    images: Images, operation: Int[Tensor, " B"], of: Numbers, names: Collection[str]
) -> Images:
    """Through a table of each channel; images without one keep all that they have."""
    rounded = (images * (LEVELS - 1)).round().flatten(2)  # (B, 3, H W)
    levels = rounded.long()
    level = constant(tuple(range(LEVELS)), images)
    table = _pointwise(level, rounded, of, names)
    if not STRETCHES.isdisjoint(names):
        low, high = rounded.aminmax(dim=2, keepdim=True)  # (B, 3, 1)
        if "autocontrast" in names:
            mine = _is(operation, "autocontrast") & (high > low)
            table = torch.where(mine, _stretched(level, low, high), table)  # (B, 3, 256)
        if "equalize" in names:
            step, spread = _equalized(levels, high.long(), images.dtype)
            table = torch.where(_is(operation, "equalize") & (step > 0), spread, table)
    table = (table.clamp(0, LEVELS - 1) / (LEVELS - 1)).expand(-1, 3, -1)
    return torch.where(of["maps"][:, None] > 0, table.gather(2, levels).view_as(images), images)


def _pointwise(
    level: Float[Tensor, " 256"],
    rounded: Float[Tensor, "B 3 pixels"],
    of: Numbers,
    names: Collection[str],
) -> Float[Tensor, "B 1 256"]:
    """What becomes of each level, whichever others an image has; contrast looks at their mean."""
    offset, kept = of["offset"], level
    if "posterize" in names:
        kept = (level / of["step"]).floor() * of["step"]
    if "contrast" in names:
        means = rounded.mean(dim=2, keepdim=True) * constant(GREY, level)[:, None]
        offset = torch.addcmul(offset, of["pull"], means.sum(dim=1, keepdim=True))
    table = torch.addcmul(offset, of["slope"], kept)
    if THRESHOLDS.isdisjoint(names):
        return table
    return torch.where(
        level < of["start"], table, torch.addcmul(of["high_offset"], of["high_slope"], kept)
    )


def _stretched(level: Tensor, low: Tensor, high: Tensor) -> Float[Tensor, "B 3 256"]:
    """The darkest level there is becomes 0, the brightest 255."""
    return ((level - low) * ((LEVELS - 1) / (high - low).clamp(min=1))).floor()


def _equalized(
    levels: Int[Tensor, "B 3 pixels"], last: Int[Tensor, "B 3 1"], dtype: torch.dtype
) -> tuple[Float[Tensor, "B 3 1"], Float[Tensor, "B 3 256"]]:
    """As many pixels at each level as can be, as Pillow counts it; none move where a step is 0."""
    counts, upto = _counted(levels, dtype)
    others = levels.shape[2] - counts.gather(2, last)
    step = others.div(LEVELS - 1, rounding_mode="floor")
    before = step.div(2, rounding_mode="floor") + (upto - counts)
    return step, before.div(step.clamp(min=1), rounding_mode="floor")


def _counted(levels: Int[Tensor, "B 3 pixels"], dtype: torch.dtype) -> tuple[Counts, Counts]:
    """How many pixels have each level, and at most each. Whole numbers add up in any order."""
    strict = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    try:
        counts = torch.zeros(*levels.shape[:2], LEVELS, dtype=dtype, device=levels.device)
        counts.scatter_add_(2, levels, constant(1.0, counts).expand_as(levels))
        return counts, counts.cumsum(dim=2)
    finally:
        torch.use_deterministic_algorithms(strict)


def _blended(
    images: Images, operation: Int[Tensor, " B"], of: Numbers, names: Collection[str]
) -> Images:
    """With grey, or with what is blurred; all others have a factor of 1."""
    if "sharpness" not in names:
        other = grey(images).expand_as(images)
    elif "colour" not in names:
        other = _smooth(images)
    else:
        other = torch.where(_is(operation, "colour")[:, None], grey(images), _smooth(images))
    return torch.lerp(other, images, of["factor"][:, None]).clamp(0, 1)


def _smooth(images: Images) -> Images:
    """Each pixel with its eight neighbours, itself five times; the border stays."""
    height, width = images.shape[2:]
    rows = constant((0.0, *[1.0] * (height - 2), 0.0), images)
    columns = constant((0.0, *[9 / 13] * (width - 2), 0.0), images)
    inside = rows[:, None] * columns  # (H, W)
    return torch.lerp(images, F.avg_pool2d(images, 3, stride=1, padding=1), inside)


def blurred(images: Images, radius: Float[Tensor, " B"]) -> Images:
    """By a Gaussian of each image's own width, in pixels; borders are mirrored.

    Along one axis at a time it is a product with a matrix, as in `resample`.
    """
    height, width = images.shape[2:]
    reach = min(REACH, height - 1, width - 1)
    places = constant(tuple(range(-reach, reach + 1)), images)
    bell = (-0.5 * (places / radius[:, None]).square()).exp()  # (B, 2 reach + 1)
    bell = bell / bell.sum(dim=1, keepdim=True)
    columns = _shifted(bell, width)
    rows = columns if height == width else _shifted(bell, height)
    x = F.pad(images, [reach] * 4, mode="reflect")
    x = (x.flatten(1, 2) @ columns.mT).unflatten(1, (3, -1))  # (B, 3, H + 2 reach, W)
    return rows[:, None] @ x


def _shifted(row: Float[Tensor, "B places"], size: int) -> Float[Tensor, "B size padded"]:
    """Row i of so many is a row with i zeros before it, and zeros after it."""
    around = F.pad(row, (size - 1, size - 1))
    return around.unfold(1, row.shape[1] + size - 1, 1).flip(1)
