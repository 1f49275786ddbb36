"""How images vary while a classifier is trained, all of it on the device, in batches."""

from dataclasses import dataclass
from typing import Any, Literal

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from saccade.config import check_positive
from saccade.data.images.augment import (
    HALF,
    IMAGENET,
    Augment,
    AugmentStep,
    CentreCrop,
    ColourJitter,
    Erase,
    Flip,
    Normalise,
    PadCrop,
    Resize,
    ResizedCrop,
)
from saccade.data.images.counter_random import uniforms
from saccade.data.images.mixing import Mixed, Mixing
from saccade.data.images.policies import AutoAugment, RandAugment, ThreeAugment
from saccade.errors import ConfigError

MIXING = 1 << 20  # the stream of draws that mix images, apart from those that vary each
PADDING = 8  # a crop may stick out by this part of a side: 4 of 32 pixels
NORMS: dict[str, Normalise] = {"imagenet": IMAGENET, "half": HALF}
POLICIES: dict[str, AugmentStep] = {
    "three": ThreeAugment(),
    "rand": RandAugment(),
    "auto": AutoAugment(),
}


@dataclass(frozen=True, kw_only=True)
class VarySettings:
    """How images vary while training.

    Args:
        crop: of the whole image, shifted by up to an eighth of a side, or a box of random size.
        smallest: the smallest share of the image that such a box has.
        flip: left for right, half the time; not where left and right make a difference.
        policy: 3-Augment, RandAugment (two operations of strength 9), or AutoAugment's for CIFAR.
        jitter: brightness, contrast and saturation change by up to this share.
        erase: how often a box of the image is erased.
        erased: the largest share of the image that such a box has.
        mixup: α of mixup; 0 leaves it out.
        cutmix: α of CutMix; 0 leaves it out.
        mixed: how often an image is mixed with another.
        repeats: so many copies of an image are in a batch, each varied otherwise; an epoch then has
            as many fewer images.
    """

    crop: Literal["none", "shift", "box"] = "none"
    smallest: float = 0.08
    flip: bool = False
    policy: Literal["none", "three", "rand", "auto"] = "none"
    jitter: float = 0.0
    erase: float = 0.0
    erased: float = 1 / 3
    mixup: float = 0.0
    cutmix: float = 0.0
    mixed: float = 1.0
    repeats: int = 1

    def __post_init__(self) -> None:
        check_positive(self, "repeats")
        for name in ("smallest", "jitter", "erase", "erased", "mixed"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name}={getattr(self, name)} must be from 0 to 1")
        if self.smallest == 0 or self.erased < 0.02:
            raise ConfigError(
                f"smallest={self.smallest} must be above 0, and erased={self.erased} at least 0.02"
            )
        self.mixing()

    def mixing(self) -> Mixing:
        """With which other images an image is mixed, and how."""
        return Mixing(mixup=self.mixup, cutmix=self.cutmix, chance=self.mixed)


class Vary:
    """Kept images → what the model is shown, while it learns and afterwards."""

    def __init__(self, how: VarySettings, *, image: int, kept: int, pixels: str) -> None:
        norm = NORMS[pixels]
        # Boxes show things larger than they are in the whole; so does the middle.
        smaller = CentreCrop(size=image) if how.crop == "box" else Resize(size=image)
        self._plain = Augment((smaller, norm) if kept > image else (norm,))
        self._steps = Augment(tuple(_steps(how, image, kept, norm)))
        self._mixing = how.mixing()

    def draw(self, rows: Int[Tensor, " B"], *, seed: int, epoch: int) -> Float[Tensor, "B draws"]:
        """What is random about these examples in this epoch; how they are mixed comes last."""
        mixing = {MIXING: self._mixing.draws} if self._mixing.asked else {}
        return uniforms(rows, self._steps.draws | mixing, seed=seed, epoch=epoch)

    def shown(self, images: UInt8[Tensor, "B 3 K K"], drawn: Float[Tensor, "B draws"]) -> Mixed:
        """Images as they vary by these numbers, on the device that they are on."""
        if not self._mixing.asked:
            x = self._steps.apply(images, drawn)
            return Mixed(x, x.new_ones(len(x)))
        draws = self._mixing.draws
        x = self._steps.apply(images, drawn[:, :-draws])
        with torch.autocast(x.device.type, enabled=False):
            return self._mixing(x, drawn[:, -draws:])

    def hide_from_compiler(self) -> None:
        """Its steps are many small ones over few bytes, and some cannot be traced."""
        hidden: Any = torch.compiler.disable(self.shown)
        self.shown = hidden

    def plain(self, images: UInt8[Tensor, "B 3 K K"]) -> Float[Tensor, "B 3 H W"]:
        """Images as they are, when nobody learns from them."""
        nothing = images.new_zeros(images.shape[0], 0, dtype=torch.float32)  # is random here
        return self._plain.apply(images, nothing)


def _steps(how: VarySettings, image: int, kept: int, norm: Normalise) -> list[AugmentStep]:
    """Where from, mirrored, as a policy says, recoloured; brought to mean and deviation; erased."""
    found: list[AugmentStep] = []
    if how.crop == "box":
        found.append(ResizedCrop(size=image, share=(how.smallest, 1.0)))
    elif kept > image:
        found.append(Resize(size=image))
    if how.crop == "shift":
        found.append(PadCrop(padding=max(1, image // PADDING)))
    found += [Flip()] * how.flip
    found += [POLICIES[how.policy]] if how.policy != "none" else []
    if how.jitter:
        found.append(
            ColourJitter(brightness=how.jitter, contrast=how.jitter, saturation=how.jitter)
        )
    found.append(norm)
    found += [Erase(chance=how.erase, share=(0.02, how.erased))] if how.erase else []
    return found
