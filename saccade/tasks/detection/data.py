"""Images and the objects in them: the user's, or the built-in shapes."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data import shapes
from saccade.data.batching.packed_rows import SomeRows
from saccade.data.boxes import to_corners
from saccade.data.images.cache import CacheSettings
from saccade.data.objects import NamedBox, ObjectRows, Objects
from saccade.data.readers.images.annotated import box_class_names, box_splits, read_boxes
from saccade.data.readers.images.cached import cached_images
from saccade.data.readers.images.rows import ImageRow
from saccade.data.shapes import Scene, ShapesSettings
from saccade.errors import ConfigError, DataError
from saccade.models.cost import multiply_adds
from saccade.models.detection.config import DetrConfig
from saccade.printable import printable
from saccade.tasks.base import Preparation, Progress, Task, TaskSettings, check_split, silent
from saccade.tasks.detection.matching import Weights
from saccade.tasks.detection.vary import STEP, VaryBoxes
from saccade.tasks.images import ImageSource, SomeImages, cache_folder, part_held_out
from saccade.tasks.scenes import announced, draw_scenes

HELD_BACK = 1000  # scenes of shapes to a split that is not learnt from


@dataclass(frozen=True, kw_only=True)
class DetectionSettings(TaskSettings):
    """Which objects to find. Without `data`: shapes, by their kinds.

    Args:
        data: COCO JSON, Pascal VOC, YOLO or .jsonl with boxes: a folder, a file, a .zip or .tar.
        image: side of the images that the model sees, in pixels; they are squeezed to be square.
        vary: how images vary while training.
        weights: how much classes, boxes and overlaps count.
        aligned: where each class is scored by itself, a score is to tell how well the box fits too.
        held_out: share of the images for validation, where the data have no such split.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        scenes: how many of shapes to train on.
    """

    budget_unit: ClassVar[str] = "images"
    example: ClassVar[str] = "photo.jpg"
    fitted: ClassVar[frozenset[str]] = frozenset({"classes"})

    image: int = 128
    vary: VaryBoxes = field(default_factory=VaryBoxes)
    weights: Weights = field(default_factory=Weights)
    aligned: bool = True
    held_out: float = 0.1
    skip_bad: int = 0
    scenes: int = 20_000
    shapes: ShapesSettings = field(default_factory=ShapesSettings)

    def __post_init__(self) -> None:
        check_positive(self, "image", "scenes")
        check_fraction(self, "held_out")
        if self.image % STEP:
            raise ConfigError(f"image={self.image} must be a multiple of {STEP}")

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
        if not isinstance(model, DetrConfig):
            raise ConfigError(f"{type(model).__name__} finds no objects; take one that does: detr")
        self.smallest(model).build()  # which refuses stages that are not there

    def multiply_adds(self, model: ModelConfig) -> int | None:
        return multiply_adds(model, self.image, self.image)

    def smallest(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, DetrConfig)
        return replace(model, classes=1)

    def fitted_sizes(self) -> dict[str, int]:
        return {} if self.data else {"classes": len(shapes.KINDS)}

    def sized_for(self, model: ModelConfig) -> "DetectionSettings":
        """With images as large as those that published models were made for."""
        return replace(self, image=800)

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.detection.task import Detection

        return Detection(self, how)


@dataclass(frozen=True)
class Annotated:
    """Images of one split, the objects of each, and how large it was in pixels (height, width).

    `scenes` are the truth where it is known; `rows` are what the user's data say of each image.
    """

    images: ImageSource
    objects: Sequence[Objects]
    sizes: Int[Tensor, "images 2"]
    classes: tuple[str, ...]
    report: str
    scenes: Sequence[Scene] = field(default_factory=list[Scene])
    rows: Sequence[ImageRow] = field(default_factory=list[ImageRow])

    def __len__(self) -> int:
        return len(self.objects)

    def only(self, numbers: Int[Tensor, " n"], report: str) -> "Annotated":
        """Some of it."""
        return replace(
            self,
            images=SomeImages(self.images, numbers),
            objects=SomeRows(self.objects, numbers),
            sizes=self.sizes[numbers],
            report=report,
            scenes=SomeRows(self.scenes, numbers) if self.scenes else [],
            rows=SomeRows(self.rows, numbers) if self.rows else [],
        )


def read_split(
    settings: DetectionSettings,
    split: str | None,
    progress: Progress = silent,
    classes: tuple[str, ...] | None = None,
) -> Annotated:
    """A split of the user's images, or of shapes; None is all of data without splits.

    Other splits than that which is learnt from have its `classes`.
    """
    if not settings.data:
        return _draw(settings, split or "test", progress)
    if split is None:
        return _read(settings, "train", progress, classes)
    known = box_splits(Path(settings.data))
    if split in ("train", "valid") and "valid" not in known:
        return part_held_out(
            _read(settings, "train", progress, classes), split, settings.held_out, usual=0.1
        )
    return _read(settings, split, progress, classes)


def read_both(settings: DetectionSettings, progress: Progress) -> tuple[Annotated, Annotated]:
    """What is learnt from and what is validated on; one split that has both is read once.

    What is wrong with the first is told before the second is read.
    """
    if settings.data and "valid" not in box_splits(Path(settings.data)):
        whole, share = _read(settings, "train", progress, None), settings.held_out
        _check_any(whole)
        train, valid = (part_held_out(whole, x, share, usual=0.1) for x in ("train", "valid"))
        return train, valid
    train = read_split(settings, "train", progress)
    _check_any(train)
    return train, read_split(settings, "valid", progress, train.classes)


def _check_any(read: Annotated) -> None:
    if not read.classes:
        raise DataError(f"{read.report}: no object in any image; nothing can be learnt")


def scene_objects(scene: Scene, side: int) -> Objects:
    """What one sees of the objects of a scene."""
    boxes = to_corners(torch.from_numpy(shapes.visible_boxes(scene, side)))
    labels = torch.tensor([shapes.KINDS.index(thing.kind) for thing in scene.objects])
    return Objects(boxes, labels, torch.zeros(len(labels), dtype=torch.bool))


def _draw(settings: DetectionSettings, split: str, progress: Progress) -> Annotated:
    """Scenes of shapes, drawn now."""
    check_split(split, ("train", "valid", "test", "compositional", "many"), "shapes")
    count, side = settings.scenes if split == "train" else HELD_BACK, settings.image
    scenes = [shapes.scene(split, index, settings.shapes) for index in range(count)]
    images = draw_scenes(scenes, side, progress)
    objects = [scene_objects(scene, side) for scene in scenes]
    found = sum(len(each.labels) for each in objects)
    report = f"{count:,} scenes of shapes, split {split}, with {found:,} objects"
    sizes = torch.full((count, 2), side)
    return Annotated(images, objects, sizes, shapes.KINDS, report, scenes)


def _read(
    settings: DetectionSettings, split: str, progress: Progress, classes: tuple[str, ...] | None
) -> Annotated:
    # Whatever is bad is told once, when the images have been decoded, too.
    read = read_boxes(Path(settings.data), split, skip_bad=sys.maxsize)
    good, cache = cached_images(
        read,
        cache_folder(),
        settings=CacheSettings(size=settings.image, fit="squeeze"),
        skip_bad=settings.skip_bad,
        progress=progress,
    )
    classes = classes or tuple(box_class_names(good))
    _check_known(good.rows, classes, split)
    objects = ObjectRows.of((row.extras["objects"] for row in good.rows), classes)
    sides = (side for row in good.rows for side in row.extras["size"])
    sizes = torch.from_numpy(np.fromiter(sides, np.int64, 2 * len(good.rows))).view(-1, 2)
    return Annotated(cache, objects, sizes, classes, good.summary(), rows=good.rows)


def _check_known(rows: Sequence[ImageRow], classes: tuple[str, ...], split: str) -> None:
    """Refuse objects that training has not seen."""
    for row in rows:
        boxes: tuple[NamedBox, ...] = row.extras["objects"]
        strange = next((box.label for box in boxes if box.label not in classes), None)
        if strange is not None:
            raise DataError(
                f"{row.file}, row {row.line}: {printable(strange)!r} is not among the "
                f"{len(classes):,} classes of the training data; mend the {split} data, or train "
                "on such objects too"
            )
