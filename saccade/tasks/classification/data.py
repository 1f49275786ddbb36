"""Images and their classes: the user's, or the built-in shapes."""

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data import shapes
from saccade.data.batching.held_out import held_out
from saccade.data.batching.packed_rows import SomeRows
from saccade.data.images.cache import CacheSettings
from saccade.data.images.square import Fit
from saccade.data.readers.images.cached import cached_images
from saccade.data.readers.images.labels import (
    LabelColumns,
    class_names,
    label_splits,
    read_labelled,
)
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import Scene, ShapesSettings
from saccade.errors import ConfigError, DataError
from saccade.models.cost import multiply_adds
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.printable import printable
from saccade.tasks.base import (
    Preparation,
    Progress,
    Task,
    TaskSettings,
    check_split,
    refuse_without_data,
    silent,
)
from saccade.tasks.classification.published import pixel_notes
from saccade.tasks.classification.vary import VarySettings
from saccade.tasks.images import ImageSource, SomeImages, cache_folder
from saccade.tasks.scenes import Scenes, announced, draw_and_tell

PUBLISHED = 224  # side of the images that published sizes are for
HELD_BACK = 1000  # scenes of shapes to a split that is not learnt from


@dataclass(frozen=True, kw_only=True)
class ClassificationSettings(TaskSettings):
    """Which images to tell apart. Without `data`: shapes, by the kind of the largest object.

    Args:
        data: a folder for each class (also in a .tar or .zip), a .csv, .tsv, .jsonl or .parquet
            with images and labels, COCO JSON, or a folder saved by Hugging Face datasets.
        image_column: the column of images, where a file of rows has an unusual name for it.
        label_column: the column of labels, likewise.
        label_separator: what parts several labels in a cell.
        image: side of the images that the model sees, in pixels.
        keep: side at which images are kept, to cut from; 0 is no larger than is seen.
        fit: how an image becomes square: cut, squeezed, or filled up with grey.
        pixels: the mean and deviation that pixels are brought to: those of ImageNet, or ½ and ½.
        vary: how images vary while training.
        loss: cross-entropy, or of each class by itself; that one where images have several labels.
        label_smoothing: share of the probability spread over all classes in the training loss.
        held_out: share of each class for validation, where the data have no such split.
        share: of the training images of each class, how much to learn from; a smaller share lies
            within a larger one, and is the same for every seed.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        scenes: how many of shapes to train on.
    """

    budget_unit: ClassVar[str] = "images"
    example: ClassVar[str] = "photo.jpg"
    fitted: ClassVar[frozenset[str]] = frozenset({"classes", "image"})

    image_column: str = ""
    label_column: str = ""
    label_separator: str = LabelColumns.separator
    image: int = 64
    keep: int = 0
    fit: Fit = "crop"
    pixels: Literal["imagenet", "half"] = "imagenet"
    vary: VarySettings = field(default_factory=VarySettings)
    loss: Literal["cross-entropy", "binary"] = "cross-entropy"
    label_smoothing: float = 0.0
    held_out: float = 0.05
    share: float = 1.0
    skip_bad: int = 0
    scenes: int = 20_000
    shapes: ShapesSettings = field(default_factory=ShapesSettings)

    def __post_init__(self) -> None:
        check_positive(self, "image", "scenes")
        check_fraction(self, "label_smoothing", "held_out")
        refuse_without_data(self, "image_column", "label_column")
        if not 0 < self.share <= 1:
            raise ConfigError(f"share={self.share} must be above 0 and at most 1")
        if self.keep and self.keep < self.image:
            raise ConfigError(
                f"keep={self.keep} is below image={self.image}: what is kept cannot be smaller than"
                " what is seen; raise it, or leave it at 0"
            )

    @property
    def columns(self) -> LabelColumns:
        """Where a file of rows has what."""
        return LabelColumns(
            image=self.image_column, label=self.label_column, separator=self.label_separator
        )

    @property
    def kept(self) -> int:
        """The side at which images are kept."""
        return self.keep or self.image

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            return f"reading {printable(self.data)}"
        return announced(self.scenes)

    @property
    def data_name(self) -> str:
        part = "" if self.share == 1 else f"{100 * self.share:g}% of "
        whole = super().data_name if self.data else f"{self.scenes:,} scenes of shapes"
        return part + whole

    def multiply_adds(self, model: ModelConfig) -> int | None:
        assert isinstance(model, ImageEncoderConfig)
        return multiply_adds(model, self.image, self.image)

    def check(self, model: ModelConfig) -> None:
        if not isinstance(model, ImageEncoderConfig):
            raise ConfigError(f"{type(model).__name__} reads no images; take one that does: vit")
        self.smallest(model)  # which refuses sizes that do not go together

    def smallest(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, ImageEncoderConfig)
        return model.for_images(self.image, classes=1)

    def sized_for(self, model: ModelConfig) -> "ClassificationSettings":
        """With images as large as those that a model was published for."""
        assert isinstance(model, ImageEncoderConfig)
        return replace(self, image=model.expects or PUBLISHED)

    def notes_on_start(self, folder: Path) -> list[str]:
        return pixel_notes(folder, self.pixels)

    def fitted_sizes(self) -> dict[str, int]:
        return {} if self.data else {"classes": len(shapes.KINDS)}

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.classification.task import Classification

        return Classification(self, how)


class Classes(NamedTuple):
    """The names of the classes in order, and whether an image may have several, or none."""

    names: tuple[str, ...]
    several: bool = False

    def numbers(self, rows: Sequence[ImageRow]) -> Int[Tensor, " B"] | Bool[Tensor, "B C"]:
        """The class of each row by its number; where there are several, which ones it has."""
        places = {name: number for number, name in enumerate(self.names)}
        if not self.several:
            of = (places[row.extras["labels"][0]] for row in rows)
            return torch.from_numpy(np.fromiter(of, np.int64, len(rows)))
        there = torch.zeros(len(rows), len(self.names), dtype=torch.bool)
        for number, row in enumerate(rows):
            there[number, [places[label] for label in row.extras["labels"]]] = True
        return there


@dataclass(frozen=True)
class Labelled:
    """Images of one split and the class of each, or those that it has.

    `scenes` are the truth where it is known; `rows` are what the user's data say of each image.
    """

    images: ImageSource
    labels: Int[Tensor, " B"] | Bool[Tensor, "B C"]
    classes: Classes
    report: str
    scenes: Sequence[Scene] = field(default_factory=list[Scene])
    rows: Sequence[ImageRow] = field(default_factory=list[ImageRow])

    def __len__(self) -> int:
        return len(self.labels)

    def only(self, numbers: Int[Tensor, " n"], report: str) -> "Labelled":
        """Some of it."""
        return replace(
            self,
            images=SomeImages(self.images, numbers),
            labels=self.labels[numbers],
            report=report,
            scenes=SomeRows(self.scenes, numbers) if self.scenes else [],
            rows=SomeRows(self.rows, numbers) if self.rows else [],
        )


def read_split(
    settings: ClassificationSettings,
    split: str | None,
    progress: Progress = silent,
    classes: Classes | None = None,
) -> Labelled:
    """A split of the user's images, or of shapes; None is all of data without splits.

    Other splits than that which is learnt from have its `classes`.
    """
    read = _whole_split(settings, split, progress, classes)
    return _share_of(read, settings.share) if split == "train" and settings.share < 1 else read


def read_both(settings: ClassificationSettings, progress: Progress) -> tuple[Labelled, Labelled]:
    """What is learnt from and what is validated on; one split that has both is read once.

    What is wrong with the first is told before the second is read.
    """
    if settings.data and "valid" not in label_splits(Path(settings.data), settings.columns):
        whole = _read(settings, "train", progress, None)
        _check_classes(whole.classes, whole.report)
        train, valid = (_held_out(whole, split, settings.held_out) for split in ("train", "valid"))
        return _share_of(train, settings.share) if settings.share < 1 else train, valid
    train = read_split(settings, "train", progress)
    _check_classes(train.classes, train.report)
    return train, read_split(settings, "valid", progress, train.classes)


def _check_classes(classes: Classes, report: str) -> None:
    if len(classes.names) < 2 and not classes.several:
        told = ", ".join(classes.names) or "none"
        raise DataError(
            f"{report}: a single class ({told}) leaves nothing to tell apart; give a folder for "
            "each class, or rows with different labels"
        )


def _whole_split(
    settings: ClassificationSettings,
    split: str | None,
    progress: Progress,
    classes: Classes | None,
) -> Labelled:
    if not settings.data:
        return _draw(settings, split or "test", progress)
    if split is None:
        return _read(settings, "train", progress, classes)
    known = label_splits(Path(settings.data), settings.columns)
    if split in ("train", "valid") and "valid" not in known:
        return _held_out(_read(settings, "train", progress, classes), split, settings.held_out)
    return _read(settings, split, progress, classes)


def _draw(settings: ClassificationSettings, split: str, progress: Progress) -> Labelled:
    """Scenes of shapes, drawn now."""
    check_split(split, ("train", "valid", "test", "compositional", "many"), "shapes")
    count = settings.scenes if split == "train" else HELD_BACK
    scenes = Scenes(split, count, settings.shapes)
    images, labels = draw_and_tell(scenes, settings.kept, attrgetter("label"), progress)
    report = f"{count:,} scenes of shapes, split {split}, by the kind of the largest object"
    return Labelled(images, torch.tensor(labels), Classes(shapes.KINDS), report, scenes)


def _read(
    settings: ClassificationSettings, split: str, progress: Progress, classes: Classes | None
) -> Labelled:
    # Whatever is bad is told once, when the images have been decoded, too.
    data = Path(settings.data)
    read = read_labelled(data, split, columns=settings.columns, skip_bad=sys.maxsize)
    kept = CacheSettings(size=settings.kept, fit=settings.fit)
    good, cache = cached_images(
        read, cache_folder(), settings=kept, skip_bad=settings.skip_bad, progress=progress
    )
    if classes is None:
        several = any(len(row.extras["labels"]) != 1 for row in good.rows)
        classes = Classes(tuple(class_names(good)), several)
    _check_known(good.rows, classes, split)
    labels = classes.numbers(good.rows)
    return Labelled(cache, labels, classes, good.summary(), rows=good.rows)


def _check_known(rows: Sequence[ImageRow], classes: Classes, split: str) -> None:
    """Refuse labels that training has not seen, and several where it has seen one."""
    known = set(classes.names)
    for row in rows:
        labels: tuple[str, ...] = row.extras["labels"]
        strange = [label for label in labels if label not in known]
        where = f"{row.file}, row {row.line}"
        if strange:
            raise DataError(
                f"{where}: {printable(strange[0])!r} is not among the {len(known):,} classes of the"
                f" training data; mend the {split} data, or train on such images too"
            )
        if len(labels) != 1 and not classes.several:
            raise DataError(
                f"{where}: {len(labels)} labels, where every image of the training data has one; "
                f"mend the {split} data"
            )


def _held_out(read: Labelled, split: str, share: float) -> Labelled:
    """Some of each class are for validation where the user gave no such split."""
    if not share:
        raise DataError(
            f"held_out=0, and {read.report} has no validation split; give one, or --held-out 0.05"
        )
    classes = [0] * len(read) if read.classes.several else read.labels.tolist()
    kept = torch.tensor(held_out(classes, share)) == (split == "valid")
    if not kept.any():
        largest = max(Counter(classes).values(), default=0)
        more = f", or pass --held-out {0.2 if largest >= 5 else 0.5}" if largest > 1 else ""
        raise DataError(
            f"{read.report}: too few to hold some out for validation; add images or a validation "
            f"split{more}"
        )
    rest = "held out for validation" if split == "valid" else f"of {read.report}"
    return read.only(kept.nonzero()[:, 0], f"{int(kept.sum()):,} {rest}")


def _share_of(read: Labelled, share: float) -> Labelled:
    """The first so many of each class, in an order that is drawn once for all; at least one."""
    part = Fraction(str(share))
    drawn = torch.randperm(len(read), generator=torch.Generator().manual_seed(0)).argsort()
    chosen = [
        mine[drawn[mine].argsort()[: math.ceil(len(mine) * part)]] for mine in _by_class(read)
    ]
    numbers = torch.cat(chosen).sort().values
    return read.only(numbers, f"{len(numbers):,}, {100 * share:g}% of each class, {read.report}")


def _by_class(read: Labelled) -> Iterator[Int[Tensor, " n"]]:
    """The numbers of the images of each class; of all where an image has several."""
    if read.classes.several:
        yield torch.arange(len(read))
        return
    for number in range(len(read.classes.names)):
        yield (read.labels == number).nonzero()[:, 0]
