"""Mix images with one another, and their classes alike: mixup and CutMix.

Zhang et al. 2018, arXiv:1710.09412; Yun et al. 2019, arXiv:1905.04899. Both say how much of each
pixel is an image's own; the rest is that of its partner, the image as far from the batch's end.

    x̃ = m ⊙ x + (1 − m) ⊙ x′        t̃ = m̄ t + (1 − m̄) t′

For mixup m is λ everywhere; for CutMix it is 0 within a box of the share 1 − λ and 1 elsewhere.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from saccade.data.images.augment import Images
from saccade.data.images.constants import constant
from saccade.errors import ConfigError

QUANTILES = 4096


class Mixed(NamedTuple):
    """Images, and how much of each is its own."""

    images: Float[Tensor, "B 3 H W"]
    own: Float[Tensor, " B"]

    def also(self, targets: Float[Tensor, "B C"]) -> Float[Tensor, "B C"]:
        """What the images are, mixed just as they were."""
        return torch.lerp(targets.flip(0), targets, self.own[:, None])


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """λ ~ Beta(α, α) for each image. Where both are asked for, either comes half the time.

    Args:
        mixup: its α; 0 leaves it out.
        cutmix: its α; 0 leaves it out.
        chance: how often an image is mixed at all.
    """

    mixup: float = 0.0
    cutmix: float = 0.0
    chance: float = 1.0
    draws = 5

    def __post_init__(self) -> None:
        if min(self.mixup, self.cutmix) < 0:
            raise ConfigError(f"mixup={self.mixup} and cutmix={self.cutmix} must be 0 or more")
        if not 0 <= self.chance <= 1:
            raise ConfigError(f"chance={self.chance} is not a probability, 0…1")

    @property
    def asked(self) -> bool:
        """Whether anything is to be mixed."""
        return self.chance > 0 and max(self.mixup, self.cutmix) > 0

    def __call__(self, images: Images, u: Float[Tensor, "B 5"]) -> Mixed:
        height, width = images.shape[2:]
        happens, which, level, down, across = u.unbind(dim=1)
        cuts = which < (0.5 if self.mixup and self.cutmix else float(bool(self.cutmix)))
        own = _beta(level, self.cutmix)  # λ
        if self.mixup != self.cutmix:
            own = torch.where(cuts, own, _beta(level, self.mixup))
        half = (1 - own).sqrt() / 2  # of the box's sides, as shares
        inside = _within(down, half, height)[:, :, None] & _within(across, half, width)[:, None]
        mask = torch.where(cuts[:, None, None], (~inside).to(u), own[:, None, None])  # (B, H, W)
        kept = (happens >= self.chance)[:, None, None]
        mask = torch.where(kept, constant(1.0, u), mask)[:, None]
        return Mixed(torch.lerp(images.flip(0), images, mask), mask.mean(dim=(1, 2, 3)))


def _within(
    middle: Float[Tensor, " B"], half: Float[Tensor, " B"], size: int
) -> Bool[Tensor, "B size"]:
    """Which of so many pixels in a row lie in a stretch; what sticks out is cut off."""
    places = constant(tuple((place + 0.5) / size for place in range(size)), middle)
    return (places - middle[:, None]).abs() < half[:, None]


def _beta(u: Float[Tensor, " B"], alpha: float) -> Float[Tensor, " B"]:
    """Uniform numbers made Beta(α, α) ones, by the inverse of its distribution; 1 where α is 0."""
    if not alpha:
        return torch.ones_like(u)
    table = constant(quantiles(alpha), u)
    place = u * (QUANTILES - 1)
    low = place.long().clamp(max=QUANTILES - 2)
    return torch.lerp(table[low], table[low + 1], place - low)


@lru_cache
def quantiles(alpha: float) -> tuple[float, ...]:
    """Those of Beta(α, α), equally far apart.

    With x = sin² θ the density 2 (sin θ cos θ)^(2α − 1) dθ is tame for α ≥ ½, and summable below.
    """
    edges = np.linspace(0, np.pi / 2, 1 << 16)
    middle = (edges[1:] + edges[:-1]) / 2
    mass = np.cumsum((np.sin(middle) * np.cos(middle)) ** (2 * alpha - 1))
    shares = np.concatenate([[0.0], mass / mass[-1]])
    found = np.interp(np.linspace(0, 1, QUANTILES), shares, np.sin(edges) ** 2)
    return tuple(found.tolist())
