"""Images and what is said of them: the user's, or the built-in shapes."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Int, UInt8
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data import shapes
from saccade.data.batching.packed_rows import RowParts, SomeRows
from saccade.data.images.cache import CacheSettings
from saccade.data.images.square import Fit
from saccade.data.readers.images.cached import cached_images
from saccade.data.readers.images.read import image_splits, read_images
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import Scene, ShapesSettings
from saccade.data.tokens.vocabulary import Level
from saccade.errors import ConfigError, DataError
from saccade.metrics.outcomes import read_groups
from saccade.models.protocol import ShowsAttention
from saccade.tasks.base import Preparation, Progress, Task, TextSettings, silent
from saccade.tasks.captioning.equalizer import EqualizerSettings
from saccade.tasks.captioning.regions import Hidden, HiddenRows, HiddenScenes
from saccade.tasks.images import Augmenting, ImageSource, SomeImages, cache_folder
from saccade.tasks.scenes import Scenes, announced, draw_and_tell
from saccade.tasks.tokenizer import learnt

HELD_OUT = 0.05  # of images without a validation split
HELD_BACK = 1000  # scenes of shapes to a split that is not learnt from
FIRST = 100  # scenes, whose captions have every word that is ever said of shapes
World = Literal["plain", "many", "biased"]


@dataclass(frozen=True, kw_only=True)
class HardSettings:
    """How looking at one cell at a time is learnt (Xu et al. 2015, arXiv:1502.03044, §4.1).

    Args:
        reinforce: weight of the score-function estimate.
        entropy: weight of the entropy that keeps attention from settling early.
        memory: of the moving baseline, how much stays.
    """

    reinforce: float = 0.1
    entropy: float = 0.002
    memory: float = 0.9

    def __post_init__(self) -> None:
        check_fraction(self, "memory")
        if min(self.reinforce, self.entropy) < 0:
            raise ConfigError("reinforce and entropy must be 0 or more")


@dataclass(frozen=True, kw_only=True)
class CaptioningSettings(TextSettings):
    """What to tell of which images. Without `data`: the built-in shapes.

    Args:
        data: folder with metadata.jsonl or COCO JSON, such a file, or a .tar or .zip of one.
        image: side of the images in pixels.
        fit: how an image becomes square: cut, squeezed, or filled up with grey.
        augment: vary images while training: mirrored (not where left and right are said), or
            mirrored and cut out at random.
        level: tokens are words, byte pairs trained on the captions, or characters.
        vocabulary: how many tokens at most.
        lowercase: read captions in lower case.
        longest: training captions of more tokens are left out and counted.
        captions: so many of an image are learnt from at a time, other ones in each epoch.
        label_smoothing: share of the probability spread over all words in the training loss; none
            where single glances are learnt, which are judged by the words themselves.
        cover: weight of the term that has every cell looked at as often as any (the doubly
            stochastic one); only for models that show where they look while training.
        cover_by: that term as published (summed over cells), its mean, or with the number of looks
            that a caption of that length can give to each cell.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        world: which scenes of shapes: plain, with many objects, or the biased ones.
        scenes: how many of them to train on.
    """

    example: ClassVar[str] = "photo.jpg"

    image: int = 64
    fit: Fit = "crop"
    augment: Augmenting = "none"
    level: Level = "words"
    vocabulary: int = 10_000
    lowercase: bool = True
    longest: int = 60
    captions: int = 5
    label_smoothing: float = 0.0
    cover: float = 0.0
    cover_by: Literal["paper", "mean", "length"] = "paper"
    skip_bad: int = 0
    world: World = "plain"
    scenes: int = 20_000
    hard: HardSettings = field(default_factory=HardSettings)
    equalizer: EqualizerSettings = field(default_factory=EqualizerSettings)
    shapes: ShapesSettings = field(default_factory=ShapesSettings)

    def __post_init__(self) -> None:
        check_positive(self, "image", "vocabulary", "longest", "captions", "scenes")
        check_fraction(self, "label_smoothing")
        if self.cover < 0:
            raise ConfigError(f"cover={self.cover} must be 0 or more")
        if self.equalizer.asks and self.level != "words":
            raise ConfigError(
                f"the equalizer needs to know which token says a group: level={self.level} may "
                "spell it in several; take level=words"
            )
        if self.equalizer.asks and not self.data and self.world != "biased":
            raise ConfigError(
                f"no one in world={self.world} is of a group; the equalizer needs world=biased, or "
                "data of your own"
            )

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            return f"reading {self.data}"
        return announced(self.scenes)

    def check(self, model: ModelConfig) -> None:
        if self.cover and not (isinstance(model, ShowsAttention) and model.shows_attention):
            raise ConfigError(
                f"cover={self.cover} needs a model that shows where it looks while training, such "
                "as show-attend-tell; leave it at 0"
            )
        if self.augment != "none" and not self.data:
            raise ConfigError(
                f"augment={self.augment} mirrors images, and captions of shapes say left and "
                "right; give --data of your own, or --augment none"
            )
        if not self.data and self.equalizer.groups != EqualizerSettings().groups:
            raise ConfigError(
                f"groups={' '.join(self.equalizer.groups)}: nobody in the built-in scenes is of "
                "them; give --data of your own, or leave --equalizer.groups out"
            )

    def fitted_sizes(self) -> dict[str, int]:
        if self.data:
            return super().fitted_sizes()
        scenes = _scenes(self, "train", min(self.scenes, FIRST))
        texts = (text for scene in scenes for text in shapes.captions(scene))
        return {"vocabulary": len(learnt(self, texts))}

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.captioning.task import Captioning

        return Captioning(self, how)


@dataclass(frozen=True)
class Captioned:
    """Images of one split and what is said of each.

    `scenes` are the truth where it is known; `rows` are what a user's file says of each image;
    `hidden` are the images without those who are of a group, for the Equalizer.
    """

    images: ImageSource
    captions: Sequence[tuple[str, ...]]
    report: str
    scenes: Sequence[Scene] = field(default_factory=list[Scene])
    rows: Sequence[ImageRow] = field(default_factory=list[ImageRow])
    hidden: Hidden | None = None

    def __len__(self) -> int:
        return len(self.captions)

    def only(self, numbers: Int[Tensor, " n"], report: str) -> "Captioned":
        """Some of it."""
        return Captioned(
            SomeImages(self.images, numbers),
            SomeRows(self.captions, numbers),
            report,
            SomeRows(self.scenes, numbers) if self.scenes else [],
            SomeRows(self.rows, numbers) if self.rows else [],
            None if self.hidden is None else _SomeHidden(self.hidden, numbers),
        )


@dataclass(frozen=True)
class _SomeHidden:
    """The same choice, hidden."""

    whole: Hidden
    numbers: Int[Tensor, " n"]

    def fingerprint(self) -> str:
        which = hashlib.sha256(self.numbers.numpy().tobytes()).hexdigest()
        return f"{self.whole.fingerprint()}:{which}"

    def __getitem__(
        self, numbers: Int[Tensor, " B"]
    ) -> tuple[UInt8[Tensor, "B 3 H W"], Bool[Tensor, " B"]]:
        return self.whole[self.numbers[numbers]]


def read_captioned(
    settings: CaptioningSettings, split: str | None, progress: Progress = silent
) -> Captioned:
    """A split of the user's images, or of shapes; None is all of a single file.

    `progress` is told how many images are there, and of how many.
    """
    if not settings.data:
        return _draw(settings, split or "test", progress)
    if split is None:
        return _read(settings, "train", progress)
    known = image_splits(Path(settings.data))
    if split in ("train", "valid") and "valid" not in known:
        return _held_out(_read(settings, "train", progress), split)
    return _read(settings, split, progress)


def read_both(
    settings: CaptioningSettings, progress: Progress = silent
) -> tuple[Captioned, Captioned]:
    """What is learnt from and what is validated on; one split that has both is read once."""
    if settings.data and "valid" not in image_splits(Path(settings.data)):
        whole = _read(settings, "train", progress)
        return _held_out(whole, "train"), _held_out(whole, "valid")
    train, valid = (read_captioned(settings, split, progress) for split in ("train", "valid"))
    return train, valid


SPLITS: dict[tuple[World, str], str] = {
    ("many", "train"): "many-train",
    ("many", "valid"): "many-valid",
    ("many", "test"): "many",
    ("biased", "train"): "biased-train",
    ("biased", "valid"): "biased-valid",
    ("biased", "test"): "biased-test",
}


def _draw(settings: CaptioningSettings, split: str, progress: Progress) -> Captioned:
    """Scenes of shapes, drawn now. A split may also be given by its full name."""
    count = settings.scenes if split == "train" else HELD_BACK
    scenes = _scenes(settings, split, count)
    images, captions = draw_and_tell(scenes, settings.image, shapes.captions, progress)
    hides = settings.equalizer.hides and split == "train"
    return Captioned(
        images,
        captions,
        f"{count:,} scenes of shapes, split {SPLITS.get((settings.world, split), split)}",
        scenes,
        hidden=HiddenScenes.of(scenes, settings.image) if hides else None,
    )


def _scenes(settings: CaptioningSettings, split: str, count: int) -> Scenes:
    name, how = SPLITS.get((settings.world, split), split), settings.shapes
    return Scenes(name, count, replace(how, size=settings.image))


def _read(settings: CaptioningSettings, split: str, progress: Progress) -> Captioned:
    bound = settings.skip_bad
    # Whatever is bad is told once, when the images have been decoded, too.
    read = read_images(Path(settings.data), split, skip_bad=sys.maxsize)
    size = CacheSettings(size=settings.image, fit=settings.fit)
    good, cache = cached_images(
        read, cache_folder(), settings=size, skip_bad=bound, progress=progress
    )
    captions = RowParts[ImageRow, tuple[str, ...]](good.rows, attrgetter("captions"))
    if not settings.equalizer.hides or split != "train":
        return Captioned(cache, captions, good.summary(), rows=good.rows)
    groups = read_groups(settings.equalizer.groups)
    hidden = HiddenRows(cache, good.rows, groups, settings.image, settings.fit)
    return Captioned(cache, captions, good.summary(), rows=good.rows, hidden=hidden)


def _held_out(read: Captioned, split: str) -> Captioned:
    """Every so-and-so-many-th image is for validation where the user gave no such split."""
    places, every = torch.arange(len(read)), round(1 / HELD_OUT)
    kept = places[(places % every == 0) == (split == "valid")]
    if not len(kept):
        raise DataError(f"{read.report}: too few to hold some out; add a validation file")
    rest = "held out for validation" if split == "valid" else f"of {read.report}"
    return read.only(kept, f"{len(kept):,} {rest}")
