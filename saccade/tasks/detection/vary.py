"""How images vary while a detector is trained, and their boxes with them.

Where an image is cut and whether it is mirrored is settled where its batch is made, for that
decides which objects are left; the pixels follow on the device.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from saccade.data.boxes import area
from saccade.data.images.augment import IMAGENET, Augment, ColourJitter
from saccade.data.images.counter_random import uniform, uniforms
from saccade.data.images.resample import resample
from saccade.errors import ConfigError

GEOMETRY, COLOURS, SIZES = 0, 1, 1 << 20  # streams of random numbers
VISIBLE = 0.3  # an object of which a cut leaves less is gone
STEP = 32  # sides of images are multiples of this


@dataclass(frozen=True, kw_only=True)
class VaryBoxes:
    """How images vary while training, and their boxes with them.

    Args:
        flip: left for right, half the time; not where left and right make a difference.
        cut: how often a part of the image is cut out and shown in full size.
        smallest: the shortest side of such a part, as a share of the image's.
        scale: batches have images of other sizes, down to this share.
        jitter: brightness, contrast and saturation change by up to this share.
    """

    flip: bool = True
    cut: float = 0.5
    smallest: float = 0.5
    scale: float = 1.0
    jitter: float = 0.0

    def __post_init__(self) -> None:
        for name in ("cut", "smallest", "scale", "jitter"):
            if not 0 <= vars(self)[name] <= 1:
                raise ConfigError(f"{name}={vars(self)[name]} must be from 0 to 1")
        if not self.smallest or not self.scale:
            raise ConfigError(
                f"smallest={self.smallest} and scale={self.scale} must be above 0: nothing is left"
            )


class Varied(NamedTuple):
    """Where images are cut, and what is then left of their objects (by corners)."""

    cuts: Float[Tensor, "B 4"]  # top, left, height, width; a negative width mirrors
    boxes: Float[Tensor, "B N 4"]
    there: Bool[Tensor, "B N"]


class BoxVariation:
    """Kept images and their boxes → what the model is shown, while it learns and afterwards."""

    def __init__(self, how: VaryBoxes, *, image: int) -> None:
        self.how, self.image = how, image
        jitter = ColourJitter(brightness=how.jitter, contrast=how.jitter, saturation=how.jitter)
        self._colours = Augment((jitter, IMAGENET) if how.jitter else (IMAGENET,))
        self._plain = Augment((IMAGENET,))
        least = max(STEP, round(image * how.scale / STEP) * STEP)
        self._sizes = [*range(least, image, STEP), image]

    def size(self, position: int, *, seed: int) -> int:
        """The side of the images of a batch."""
        place = uniform(torch.tensor([position]), 1, seed=seed, epoch=0, stream=SIZES)
        return self._sizes[int(place * len(self._sizes))]

    def settle(
        self,
        rows: Int[Tensor, " B"],
        boxes: Float[Tensor, "B N 4"],
        there: Bool[Tensor, "B N"],
        *,
        seed: int,
        epoch: int,
    ) -> Varied:
        """Where the images are cut and mirrored, as shares, and their boxes then."""
        flip, cut, *rest = uniform(rows, 6, seed=seed, epoch=epoch, stream=GEOMETRY).unbind(1)
        sides = self.how.smallest + (1 - self.how.smallest) * torch.stack(rest[:2], dim=1)
        sides = torch.where(cut[:, None] < self.how.cut, sides, 1.0)
        corner = (1 - sides) * torch.stack(rest[2:], dim=1)  # (B, 2): top, left
        origin, scale = corner.flip(1).repeat(1, 2)[:, None], sides.flip(1).repeat(1, 2)[:, None]
        moved = (boxes - origin) / scale
        seen = moved.clamp(0, 1)
        there = there & (area(seen) >= VISIBLE * area(moved))
        mirrored = flip < (0.5 if self.how.flip else 0.0)
        left, top, right, bottom = seen.unbind(dim=2)
        turned = torch.stack([1 - right, top, 1 - left, bottom], dim=2)
        seen = torch.where(mirrored[:, None, None], turned, seen)
        sides = sides * torch.stack([torch.ones_like(flip), 1 - 2.0 * mirrored], dim=1)
        return Varied(torch.cat([corner, sides], dim=1), seen, there)

    def draw(self, rows: Int[Tensor, " B"], *, seed: int, epoch: int) -> Float[Tensor, "B draws"]:
        """What is random about the colours of these examples."""
        streams = {COLOURS + place: count for place, count in self._colours.draws.items()}
        return uniforms(rows, streams, seed=seed, epoch=epoch)

    def shown(
        self,
        images: UInt8[Tensor, "B 3 K K"],
        cuts: Float[Tensor, "B 4"],
        drawn: Float[Tensor, "B draws"],
        size: int,
    ) -> Float[Tensor, "B 3 size size"]:
        """The parts of images that were cut out, at one size, recoloured, on their device."""
        with torch.autocast(images.device.type, enabled=False):
            pixels = images.float() / 255
            x = resample(pixels, cuts * images.shape[2], height=size, width=size)
        return self._colours.apply(x.clamp(0, 1), drawn)

    def hide_from_compiler(self) -> None:
        """Its steps are many small ones over few bytes, and some cannot be traced."""
        hidden: Any = torch.compiler.disable(self.shown)
        self.shown = hidden

    def plain(self, images: UInt8[Tensor, "B 3 K K"]) -> Float[Tensor, "B 3 H W"]:
        """Images as they are, when nobody learns from them."""
        nothing = images.new_zeros(len(images), 0, dtype=torch.float32)  # is random here
        return self._plain.apply(images, nothing)
