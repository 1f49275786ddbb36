"""Vary images while training: steps on batches of tensors, one after another.

What is random in a step is a function of (seed, epoch, index of the example, place of the step):
the same example comes out the same in any batch, from any worker, and after any resumption.
Images go in as bytes or as floats in 0…1, and come out as floats. Nobody's captions are changed:
leave `Flip` out where they say left and right.
"""

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from saccade.data.images.constants import constant
from saccade.data.images.counter_random import uniforms
from saccade.data.images.resample import Filter, cubic, resample
from saccade.errors import ConfigError

Images = Float[Tensor, "B 3 H W"]
Range = tuple[float, float]
TRIES = 10  # boxes drawn until one fits into the image
GREY = (0.299, 0.587, 0.114)  # how bright red, green and blue look (ITU-R BT.601)


@runtime_checkable
class AugmentStep(Protocol):
    """A function of images and of `draws` uniform numbers for each of them."""

    @property
    def draws(self) -> int: ...

    def __call__(
        self, images: Float[Tensor, "B 3 H W"], u: Float[Tensor, "B draws"]
    ) -> Float[Tensor, "B 3 h w"]: ...


@dataclass(frozen=True)
class Augment:
    """Steps in order. Without a random one among them it is what an evaluation needs."""

    steps: tuple[AugmentStep, ...]

    def __call__(
        self,
        images: UInt8[Tensor, "B 3 H W"] | Float[Tensor, "B 3 H W"],
        indices: Int[Tensor, " B"],
        *,
        seed: int = 0,
        epoch: int = 0,
    ) -> Float[Tensor, "B 3 h w"]:
        """The images of these examples in this epoch."""
        return self.apply(images, self.draw(indices, seed=seed, epoch=epoch))

    def draw(
        self, indices: Int[Tensor, " B"], *, seed: int = 0, epoch: int = 0
    ) -> Float[Tensor, "B draws"]:
        """What is random in the steps, so that another device can take them."""
        return uniforms(indices, self.draws, seed=seed, epoch=epoch)

    @property
    def draws(self) -> dict[int, int]:
        """How many numbers each step takes, by its place."""
        return {place: step.draws for place, step in enumerate(self.steps)}

    def apply(
        self,
        images: UInt8[Tensor, "B 3 H W"] | Float[Tensor, "B 3 H W"],
        drawn: Float[Tensor, "B draws"],
    ) -> Float[Tensor, "B 3 h w"]:
        """The steps where the images are; also under autocast in the images' precision."""
        x = images.float() / 255 if images.dtype == torch.uint8 else images
        with torch.autocast(x.device.type, enabled=False):
            for step, u in zip(self.steps, drawn.to(x.device).split(tuple(self.draws.values()), 1)):
                x = step(x, u)
        return x


@dataclass(frozen=True, kw_only=True)
class Flip:
    """Left for right, with this probability."""

    chance: float = 0.5
    draws = 1

    def __post_init__(self) -> None:
        _check_chance("Flip", self.chance)

    def __call__(self, images: Images, u: Float[Tensor, "B 1"]) -> Images:
        return torch.where(u[:, :, None, None] < self.chance, images.flip(3), images)


@dataclass(frozen=True, kw_only=True)
class ResizedCrop:
    """A box of random area and proportions, at a random place, resized to a square.

        area ~ U(share) · H W        log(w / h) ~ U(log proportions)

    Boxes that do not fit are drawn anew, up to ten times; then the largest middle one that keeps to
    the proportions is taken (Szegedy et al. 2015, arXiv:1409.4842, as torchvision has it).
    """

    size: int = 224
    share: Range = (0.08, 1.0)
    proportions: Range = (3 / 4, 4 / 3)
    filter: Filter = cubic
    draws = 2 * TRIES + 2

    def __post_init__(self) -> None:
        _check_size("ResizedCrop", self.size)
        _check_range("share", self.share, most=1.0)
        _check_range("proportions", self.proportions, most=math.inf)

    def __call__(
        self, images: Images, u: Float[Tensor, "B draws"]
    ) -> Float[Tensor, "B 3 size size"]:
        height, width = images.shape[2:]
        boxes = random_boxes(u, height, width, share=self.share, proportions=self.proportions)
        x = resample(images, boxes, height=self.size, width=self.size, filter=self.filter)
        return x.clamp(0, 1)  # the cubic overshoots at edges


@dataclass(frozen=True, kw_only=True)
class PadCrop:
    """Mirror the borders `padding` pixels outwards, and cut the old size out at a random place."""

    padding: int = 4
    draws = 2

    def __post_init__(self) -> None:
        if self.padding < 0:
            raise ConfigError(f"PadCrop: padding={self.padding} is below 0; give pixels")

    def __call__(self, images: Images, u: Float[Tensor, "B 2"]) -> Images:
        height, width = images.shape[2:]
        if self.padding >= min(height, width):
            raise ConfigError(
                f"PadCrop: padding={self.padding} mirrors no more than {min(height, width) - 1} "
                f"pixels of {height}×{width}; lower it"
            )
        wide = F.pad(images, [self.padding] * 4, mode="reflect")
        top, left = (u * (2 * self.padding + 1)).long().unbind(dim=1)  # (B,)
        row = top[:, None] + constant(tuple(range(height)), top)  # (B, H)
        column = left[:, None] + constant(tuple(range(width)), left)  # (B, W)
        batch = torch.arange(len(u), device=u.device)[:, None, None]
        return wide.permute(0, 2, 3, 1)[batch, row[:, :, None], column[:, None]].permute(0, 3, 1, 2)


@dataclass(frozen=True, kw_only=True)
class ColourJitter:
    """Brightness, contrast and saturation by random factors, in this order.

        x ← (1 − f) · dark + f · x        f ~ U(1 − strength, 1 + strength)

    where dark is black, the image's mean grey, and the image in grey in turn. Hue stays.
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    draws = 3

    def __post_init__(self) -> None:
        for name in ("brightness", "contrast", "saturation"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"ColourJitter: {name}={getattr(self, name)} is not in 0…1")

    def __call__(self, images: Images, u: Float[Tensor, "B 3"]) -> Images:
        strength = constant((self.brightness, self.contrast, self.saturation), u)
        bright, contrast, colour = (1 + strength * (2 * u - 1)).T[:, :, None, None, None]
        x = (bright * images).clamp(0, 1)
        mean = grey(x).mean(dim=(2, 3), keepdim=True)  # (B, 1, 1, 1)
        x = torch.lerp(mean, x, contrast).clamp(0, 1)
        return torch.lerp(grey(x).expand_as(x), x, colour).clamp(0, 1)


@dataclass(frozen=True, kw_only=True)
class Erase:
    """A random box becomes zero, with this probability (Zhong et al. 2020, arXiv:1708.04896).

    After `Normalise`, zero is the mean colour.
    """

    chance: float = 0.25
    share: Range = (0.02, 1 / 3)
    proportions: Range = (0.3, 1 / 0.3)
    draws = 2 * TRIES + 3

    def __post_init__(self) -> None:
        _check_chance("Erase", self.chance)
        _check_range("share", self.share, most=1.0)
        _check_range("proportions", self.proportions, most=math.inf)

    def __call__(self, images: Images, u: Float[Tensor, "B draws"]) -> Images:
        height, width = images.shape[2:]
        boxes = random_boxes(
            u[:, 1:], height, width, share=self.share, proportions=self.proportions
        )
        top, left, tall, wide = boxes[:, :, None].unbind(dim=1)  # (B, 1) each
        y = constant(tuple(range(height)), u) - top  # (B, H)
        x = constant(tuple(range(width)), u) - left  # (B, W)
        happens = u[:, :1] < self.chance
        rows, columns = (y >= 0) & (y < tall) & happens, (x >= 0) & (x < wide)
        gone = rows[:, None, :, None] & columns[:, None, None]  # (B, 1, H, W)
        return torch.where(gone, constant(0.0, images), images)


@dataclass(frozen=True, kw_only=True)
class Normalise:
    """(x − mean) / deviation, of each channel."""

    mean: tuple[float, float, float] = (0.485, 0.456, 0.406)  # of ImageNet
    deviation: tuple[float, float, float] = (0.229, 0.224, 0.225)
    draws = 0

    def __post_init__(self) -> None:
        if min(self.deviation) <= 0:
            raise ConfigError(f"Normalise: deviation={self.deviation} is not above 0 throughout")

    def __call__(self, images: Images, u: Float[Tensor, "B 0"]) -> Images:
        mean, deviation = constant((self.mean, self.deviation), images)[..., None, None]
        return (images - mean) / deviation


IMAGENET = Normalise()
HALF = Normalise(mean=(0.5, 0.5, 0.5), deviation=(0.5, 0.5, 0.5))


@dataclass(frozen=True, kw_only=True)
class Resize:
    """The whole image at `size` × `size`, antialiased; `mode` is "bilinear" or "bicubic"."""

    size: int = 224
    mode: str = "bicubic"
    draws = 0

    def __post_init__(self) -> None:
        _check_size("Resize", self.size)
        if self.mode not in ("bilinear", "bicubic"):
            raise ConfigError(f"Resize: mode={self.mode!r} is neither 'bilinear' nor 'bicubic'")

    def __call__(self, images: Images, u: Float[Tensor, "B 0"]) -> Float[Tensor, "B 3 size size"]:
        if images.shape[2:] == (self.size, self.size):
            return images
        x = F.interpolate(images, (self.size, self.size), mode=self.mode, antialias=True)
        return x.clamp(0, 1)


@dataclass(frozen=True, kw_only=True)
class CentreCrop:
    """The middle `size` × `size` pixels."""

    size: int = 224
    draws = 0

    def __post_init__(self) -> None:
        _check_size("CentreCrop", self.size)

    def __call__(self, images: Images, u: Float[Tensor, "B 0"]) -> Float[Tensor, "B 3 size size"]:
        height, width = images.shape[2:]
        if min(height, width) < self.size:
            raise ConfigError(
                f"CentreCrop: size={self.size} does not fit into {height}×{width}; resize first"
            )
        top, left = (height - self.size) // 2, (width - self.size) // 2
        return images[:, :, top : top + self.size, left : left + self.size]


def grey(images: Images) -> Float[Tensor, "B 1 H W"]:
    """How bright each pixel looks."""
    weights = constant(GREY, images)[:, None, None]
    return (images * weights).sum(dim=1, keepdim=True)


def random_boxes(
    u: Float[Tensor, "B draws"], height: int, width: int, *, share: Range, proportions: Range
) -> Float[Tensor, "B 4"]:
    """Boxes of whole pixels inside the image: (top, left, height, width)."""
    low, high = (math.log(bound) for bound in proportions)
    area = (share[0] + (share[1] - share[0]) * u[:, :TRIES]) * (height * width)  # (B, TRIES)
    ratio = (low + (high - low) * u[:, TRIES : 2 * TRIES]).exp()
    sides = torch.stack([area / ratio, area * ratio], dim=1).sqrt().round()  # (B, 2, TRIES)
    whole = constant((float(height), float(width)), u)
    fits = ((sides >= 1) & (sides <= whole[:, None])).all(dim=1, keepdim=True)  # (B, 1, TRIES)
    some, first = fits.to(u).max(dim=2, keepdim=True)  # the first that is 1, if any is
    found = sides.gather(2, first.expand(-1, 2, -1))[:, :, 0]  # (B, 2)
    some = some[:, :, 0] > 0
    size = torch.where(some, found, constant(_largest(height, width, proportions), u))
    spare = whole - size
    corner = torch.where(some, u[:, -2:] * (spare + 1), spare / 2).floor()
    return torch.cat([corner, size], dim=1)


def _largest(height: int, width: int, proportions: Range) -> tuple[float, float]:
    """The height and width of the largest box that keeps to the proportions."""
    ratio = min(max(width / height, proportions[0]), proportions[1])
    tall, wide = min(height, width / ratio), min(width, height * ratio)
    return max(1.0, float(round(tall))), max(1.0, float(round(wide)))


def _check_size(step: str, size: int) -> None:
    if size < 1:
        raise ConfigError(f"{step}: size={size} is below 1; give the side of an image in pixels")


def _check_chance(step: str, chance: float) -> None:
    if not 0 <= chance <= 1:
        raise ConfigError(f"{step}: chance={chance} is not a probability, 0…1")


def _check_range(name: str, bounds: Range, *, most: float) -> None:
    low, high = bounds
    if not 0 < low <= high <= most:
        raise ConfigError(f"{name}=({low}, {high}) is not a range above 0 and within {most:g}")
