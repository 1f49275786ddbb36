"""Images to be told by codes: the user's, or the built-in shapes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from jaxtyping import Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.batching.packed_rows import SomeRows
from saccade.data.images.cache import CacheSettings
from saccade.data.images.square import Fit
from saccade.data.readers.images.cached import cached_images
from saccade.data.readers.images.plain import plain_image_splits, read_plain_images
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import ShapesSettings
from saccade.errors import ConfigError
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.printable import printable
from saccade.tasks.base import Preparation, Progress, Task, TaskSettings, check_split, silent
from saccade.tasks.images import (
    Augmenting,
    ImageSource,
    SomeImages,
    cache_folder,
    part_held_out,
)
from saccade.tasks.scenes import Scenes, announced, draw_scenes

HELD_BACK = 1000  # scenes of shapes to a split that is not learnt from


@dataclass(frozen=True, kw_only=True)
class ReconstructionSettings(TaskSettings):
    """Which images to tell by codes, and to make again from these. Without `data`: shapes.

    Args:
        data: a folder of images (also in a .tar or .zip), with folders for splits or classes or
            without; or images with captions, as captioning reads them.
        image: side of the images in pixels.
        fit: how an image becomes square: cut, squeezed, or filled up with grey.
        augment: vary images while training: mirrored, or mirrored and cut out at random.
        beta: weight of the KL between codes and chance, once it has risen.
        beta_batches: over so many micro-batches it rises from 0, in a line.
        diversity: weight of the KL between how often all images use each code and chance, in the
            units of beta; 0 as published. Of many codes more are then in use.
        temperature: of the draws of codes, once it has fallen; the smaller, the more like codes.
        cool_batches: over so many micro-batches it falls from 1, by half a cosine.
        held_out: share of the images for validation, where the data have no such split.
        skip_bad: this many bad images are skipped and counted; one more stops.
        scenes: how many of shapes to train on.
    """

    budget_unit: ClassVar[str] = "images"
    example: ClassVar[str] = "photo.jpg -o pair.png"
    fitted: ClassVar[frozenset[str]] = frozenset({"image"})
    lower_is_better: ClassVar[frozenset[str]] = frozenset({"mse", "laplace", "kl", "dead"})

    image: int = 64
    fit: Fit = "crop"
    augment: Augmenting = "none"
    beta: float = 6.6
    beta_batches: int = 5000
    diversity: float = 0.0
    temperature: float = 1 / 16
    cool_batches: int = 150_000
    held_out: float = 0.05
    skip_bad: int = 0
    scenes: int = 20_000
    shapes: ShapesSettings = field(default_factory=ShapesSettings)

    def __post_init__(self) -> None:
        check_positive(self, "image", "scenes")
        check_fraction(self, "held_out")
        for name in ("beta", "beta_batches", "diversity", "cool_batches"):
            if not vars(self)[name] >= 0:
                raise ConfigError(f"{name}={vars(self)[name]} must be 0 or more")
        if not 0 < self.temperature <= 1:
            raise ConfigError(
                f"temperature={self.temperature} must be above 0 and at most 1, from where it falls"
            )

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            return f"reading {printable(self.data)}"
        return announced(self.scenes)

    @property
    def data_name(self) -> str:
        return super().data_name if self.data else f"{self.scenes:,} scenes of shapes"

    def check(self, model: ModelConfig) -> None:
        if not isinstance(model, DvaeConfig):
            raise ConfigError(
                f"{type(model).__name__} does not tell images by codes; take one that does: dvae"
            )
        self.fit_model(model)  # which refuses sizes that do not go together

    def fit_model(self, model: ModelConfig) -> DvaeConfig:
        """The model for images of this size."""
        assert isinstance(model, DvaeConfig)
        return replace(model, image=self.image)

    def smallest(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, DvaeConfig)
        return replace(model, image=model.cell)

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.reconstruction.task import Reconstruction

        return Reconstruction(self, how)


@dataclass(frozen=True)
class PlainImages:
    """Images of one split; `rows` say where each is from, where they are the user's."""

    images: ImageSource
    report: str
    rows: Sequence[ImageRow] = field(default_factory=list[ImageRow])

    def __len__(self) -> int:
        return len(self.images)

    def only(self, numbers: Int[Tensor, " n"], report: str) -> "PlainImages":
        """Some of it."""
        rows = SomeRows(self.rows, numbers) if self.rows else []
        return PlainImages(SomeImages(self.images, numbers), report, rows)


def read_plain(
    settings: ReconstructionSettings, split: str | None, progress: Progress = silent
) -> PlainImages:
    """A split of the user's images, or of shapes; None is all of data without splits."""
    if not settings.data:
        return _draw(settings, split or "test", progress)
    if split is None:
        return _read(settings, "train", progress)
    if split in ("train", "valid") and "valid" not in plain_image_splits(Path(settings.data)):
        return part_held_out(
            _read(settings, "train", progress), split, settings.held_out, usual=0.05
        )
    return _read(settings, split, progress)


def read_both(
    settings: ReconstructionSettings, progress: Progress
) -> tuple[PlainImages, PlainImages]:
    """What is learnt from and what is validated on; one split that has both is read once."""
    if settings.data and "valid" not in plain_image_splits(Path(settings.data)):
        whole, share = _read(settings, "train", progress), settings.held_out
        train, valid = (part_held_out(whole, x, share, usual=0.05) for x in ("train", "valid"))
        return train, valid
    return read_plain(settings, "train", progress), read_plain(settings, "valid", progress)


def _draw(settings: ReconstructionSettings, split: str, progress: Progress) -> PlainImages:
    """Scenes of shapes, drawn now."""
    check_split(split, ("train", "valid", "test", "compositional", "many"), "shapes")
    count = settings.scenes if split == "train" else HELD_BACK
    images = draw_scenes(Scenes(split, count, settings.shapes), settings.image, progress)
    return PlainImages(images, f"{count:,} scenes of shapes, split {split}")


def _read(settings: ReconstructionSettings, split: str, progress: Progress) -> PlainImages:
    # Whatever is bad is told once, when the images have been decoded, too.
    read = read_plain_images(Path(settings.data), split, skip_bad=sys.maxsize)
    kept = CacheSettings(size=settings.image, fit=settings.fit)
    good, cache = cached_images(
        read, cache_folder(), settings=kept, skip_bad=settings.skip_bad, progress=progress
    )
    return PlainImages(cache, good.summary(), good.rows)
