"""Where the images that a task learns from come from: the user's, or the built-in shapes."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from saccade.data.batching.held_out import held_out
from saccade.data.images.augment import Augment, Flip, ResizedCrop
from saccade.data.images.cache import ImageCache
from saccade.data.images.counter_random import uniform
from saccade.errors import ConfigError, DataError
from saccade.printable import printable

CHOICE = 1 << 20  # the stream of draws that choose texts, apart from those that vary images
SHOWN = (0.6, 1.0)  # the share of an image that is cut out
CACHE = "SACCADE_CACHE"  # the variable that names the folder of what is kept between runs
Augmenting = Literal["none", "flip", "crop"]


@runtime_checkable
class ImageSource(Protocol):
    """Square images by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, numbers: Int[Tensor, " B"], /) -> UInt8[Tensor, "B 3 H W"]: ...


@dataclass(frozen=True)
class SomeImages:
    """A choice of other images."""

    whole: ImageSource
    numbers: Int[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, numbers: Int[Tensor, " B"]) -> UInt8[Tensor, "B 3 H W"]:
        return self.whole[self.numbers[numbers]]


@runtime_checkable
class ReadImages(Protocol):
    """What was read of a user's images; some of it may be taken."""

    @property
    def report(self) -> str: ...

    def __len__(self) -> int: ...

    def only(self, numbers: Int[Tensor, " n"], report: str, /) -> Any:
        """Another of the same."""
        ...


Read = TypeVar("Read", bound=ReadImages)


def part_held_out(read: Read, split: str, share: float, *, usual: float) -> Read:
    """Some are for validation where the user gave no such split; the others are learnt from."""
    if not share:
        raise DataError(
            f"held_out=0, and {read.report} has no validation split; give one, or --held-out "
            f"{usual}"
        )
    kept = torch.tensor(held_out([0] * len(read), share)) == (split == "valid")
    if not kept.any():
        raise DataError(
            f"{read.report}: too few to hold some out for validation; add images, a validation "
            "split, or a larger --held-out"
        )
    rest = "held out for validation" if split == "valid" else f"of {read.report}"
    return read.only(kept.nonzero()[:, 0], f"{int(kept.sum()):,} {rest}")


def augmentation(kind: Augmenting, size: int) -> Augment:
    """How images of which something is told may vary: mirrored, or also cut out."""
    crop = (ResizedCrop(size=size, share=SHOWN),) if kind == "crop" else ()
    return Augment(crop if kind == "none" else (*crop, Flip()))


def varied(
    augment: Augment, images: UInt8[Tensor, "B 3 H W"], drawn: Float[Tensor, "B draws"] | None
) -> UInt8[Tensor, "B 3 H W"]:
    """Images as they vary by these numbers, on the device that they are on."""
    if drawn is None or not augment.steps:
        return images
    return augment.apply(images, drawn).mul_(255).round_().to(torch.uint8)


def digest(images: ImageSource) -> str:
    """Changes when any pixel does, or the order. Those of a cache were read when it was made."""
    if isinstance(images, ImageCache):
        return images.digest
    if isinstance(images, SomeImages):
        which = hashlib.sha256(images.numbers.numpy().tobytes()).hexdigest()
        return f"{digest(images.whole)}:{which}"
    made = hashlib.sha256()
    for rows in torch.arange(len(images)).split(1000):
        made.update(images[rows].numpy().tobytes())
    return made.hexdigest()


def some_of_each(
    first: Int[Tensor, " boundaries"],
    images: Int[Tensor, " B"],
    most: int,
    *,
    seed: int,
    epoch: int,
) -> tuple[Int[Tensor, " T"], Int[Tensor, " T"]]:
    """At most so many of the texts about each image, and which of the images each is about.

    Those about image i are `first[i]` up to `first[i + 1]`.
    """
    begin, counts = first[images], first.diff()[images]
    draws = uniform(images, int(counts.max()), seed=seed, epoch=epoch, stream=CHOICE)  # (B, n)
    there = torch.arange(draws.shape[1]) < counts[:, None]
    order = draws.masked_fill(~there, 2).argsort(dim=1)[:, :most]
    kept = order < counts[:, None]
    return (begin[:, None] + order)[kept], kept.nonzero()[:, 0]


def cache_folder() -> Path:
    """Where decoded images and tokens are kept between runs; SACCADE_CACHE names another place."""
    return Path(os.environ.get(CACHE) or Path.home() / ".cache" / "saccade")


def keep_in(folder: str) -> None:
    """Have this process, and those that it starts, keep them in another folder."""
    if not folder:
        return
    path = Path(folder).absolute()
    try:
        other = not stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        other = False  # it will be made
    except (OSError, ValueError):
        other = True
    if other:
        raise ConfigError(f"--cache {printable(folder)} is no folder; name one, or a new one")
    os.environ[CACHE] = str(path)
