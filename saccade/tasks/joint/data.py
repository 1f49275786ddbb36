"""Images with their regions, and texts about them: the user's, or the built-in shapes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig, check_positive
from saccade.data import shapes
from saccade.data.batching.kept_rows import KeptRows
from saccade.data.boxes import to_corners
from saccade.data.images.members import Member
from saccade.data.images.regions import fitted_boxes
from saccade.data.images.square import Fit
from saccade.data.shapes import Scene, ShapesSettings
from saccade.data.tokens.vocabulary import Level
from saccade.errors import ConfigError, DataError
from saccade.models.joint.config import RegionKind, VilbertConfig
from saccade.printable import printable
from saccade.tasks.base import Progress, TextSettings, check_split, refuse_without_data
from saccade.tasks.images import Augmenting, ImageSource, digest
from saccade.tasks.scenes import announced, draw_and_tell
from saccade.tasks.tokenizer import learnt

HELD_BACK = 1000  # scenes of shapes to a split that is not learnt from
FIRST = 300  # scenes, of which every word is said that ever is of shapes
UNKNOWN = -1  # the class of a region that nobody has named
SHAPES = ("train", "valid", "test", "compositional", "many")


@dataclass(frozen=True, kw_only=True)
class JointSettings(TextSettings):
    """What all learning from images and texts together is set by.

    Args:
        image: side of the images in pixels.
        fit: how an image becomes square: cut, squeezed, or filled up with grey.
        augment: vary images while training: mirrored (not where left and right are said), or
            mirrored and cut out at random.
        boxes: a file that says where the regions of your images are, where their rows do not:
            .jsonl with image and boxes in pixels, or COCO's.
        detector: a run that finds objects, which become the regions, where rows do not give them.
        level: tokens are words, byte pairs trained on the texts, or characters.
        vocabulary: how many tokens at most.
        lowercase: read texts in lower case.
        longest: texts of more tokens are left out and counted.
        texts: so many of an image are learnt from at a time, other ones in each epoch.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        scenes: how many of shapes to train on.
    """

    budget_unit: ClassVar[str] = "texts"
    places: ClassVar[frozenset[str]] = frozenset({"data", "boxes", "detector"})
    decides: ClassVar[Mapping[str, Any]]  # of a model, whatever the data are
    placed: ClassVar[bool] = False  # whether what is true of a text is a place in its image
    masks: ClassVar[bool] = False  # whether the tokenizer needs a token for hidden words

    image: int = 64
    fit: Fit = "crop"
    augment: Augmenting = "none"
    boxes: str = ""
    detector: str = ""
    level: Level = "words"
    vocabulary: int = 10_000
    lowercase: bool = True
    longest: int = 60
    texts: int = 5
    skip_bad: int = 0
    scenes: int = 20_000
    shapes: ShapesSettings = field(default_factory=ShapesSettings)

    def __post_init__(self) -> None:
        check_positive(self, "image", "vocabulary", "longest", "texts", "scenes")
        if self.boxes and self.detector:
            raise ConfigError(
                f"boxes={printable(self.boxes)} and detector={printable(self.detector)} both say "
                "where regions are; leave one out"
            )

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            finds = f"; {printable(self.detector)} finds the objects of its images, once"
            return f"reading {self.data}{finds * bool(self.detector)}"
        return announced(self.scenes)

    def check(self, model: ModelConfig) -> None:
        if not isinstance(model, VilbertConfig):
            raise ConfigError(
                f"{type(model).__name__} does not read images and texts together; take one that "
                "does: vilbert-nano"
            )
        refuse_without_data(self, "boxes", "detector")
        for name in ("boxes", "detector"):
            if vars(self)[name] and model.regions != "boxes":
                raise ConfigError(
                    f"{name}={printable(vars(self)[name])} says where boxes are, and regions="
                    f"{model.regions} looks at none; add --model.regions boxes, or leave --{name} "
                    "out"
                )
        self.check_mirrored()
        if self.augment != "none" and (self.placed or model.regions == "boxes"):
            raise ConfigError(
                f"augment={self.augment} moves what is in an image, and its boxes would stay; use "
                f"--augment none{', or --model.regions cells' * (not self.placed)}"
            )

    def check_mirrored(self) -> None:
        """Refuse to mirror images whose texts say left and right."""
        if self.augment != "none" and not self.data:
            raise ConfigError(
                f"augment={self.augment} mirrors images, and texts about shapes say left and "
                "right; give --data of your own, or --augment none"
            )

    def smallest(self, model: ModelConfig) -> ModelConfig:
        least: dict[str, Any] = dict.fromkeys(self.fitted, 1)
        return replace(model, **{**least, **self.decides})

    def fitted_sizes(self) -> dict[str, Any]:
        if self.data:
            return {"vocabulary": self.vocabulary, **self.decides}
        vocabulary = learnt(self, said_of_shapes(self.shapes), masks=self.masks)
        return {"vocabulary": len(vocabulary), **self.decides}


@cache
def said_of_shapes(settings: ShapesSettings) -> tuple[str, ...]:
    """Texts with every word that any work on shapes asks or tells, so that one can start from what
    another has learnt.
    """
    scenes = [shapes.scene("train", index, settings) for index in range(FIRST)]
    asked = [one.text for scene in scenes for one in shapes.questions(scene)]
    meant = [one.text for scene in scenes for one in shapes.referring(scene)]
    return (*(text for scene in scenes for text in shapes.captions(scene)), *asked, *meant)


class FoundClasses(NamedTuple):
    """How likely each region is of each class: rows of `chances` end to end, and where those of
    each image begin; UNKNOWN where nobody was asked.
    """

    rows: KeptRows
    first: Int[Tensor, " I"]


@dataclass(frozen=True)
class Sighted:
    """Images of one split and the regions of each, filled up to as many; boxes are corners.

    `kinds` are the classes of regions by number, UNKNOWN where nobody has named one; `found` has
    what a detector says of them. `files` are where the user's images come from, `notes` lines for
    the user. `basis` is what found boxes depend on: another machine finds slightly other ones.
    """

    images: ImageSource
    boxes: Float[Tensor, "I R 4"]
    counts: Int[Tensor, " I"]
    kinds: Int[Tensor, "I R"]
    names: tuple[str, ...]
    report: str
    scenes: list[Scene] = field(default_factory=list[Scene])
    files: Sequence[Member] = field(default_factory=list[Member])
    found: FoundClasses | None = None
    notes: tuple[str, ...] = ()
    basis: str = ""

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def of(
        cls,
        images: ImageSource,
        boxes: list[Float[Tensor, "_ 4"]],
        kinds: list[Int[Tensor, " _"]],
        names: tuple[str, ...],
        report: str,
        scenes: list[Scene] | None = None,
    ) -> "Sighted":
        counts = torch.tensor([len(one) for one in boxes], dtype=torch.long)
        most = max(1, int(counts.max())) if len(counts) else 1
        filled = torch.zeros(len(boxes), most, 4)
        known = torch.full((len(boxes), most), UNKNOWN)
        for row, (places, labels) in enumerate(zip(boxes, kinds, strict=True)):
            filled[row, : len(places)], known[row, : len(labels)] = places, labels
        return cls(images, filled, counts, known, names, report, scenes or [])

    @classmethod
    def without_boxes(cls, images: ImageSource, files: Sequence[Member], report: str) -> "Sighted":
        """For models that look at the cells of a grid, or until somebody says where regions are."""
        count = len(files)
        boxes, kinds = torch.zeros(count, 1, 4), torch.full((count, 1), UNKNOWN)
        counts = torch.zeros(count, dtype=torch.long)
        return cls(images, boxes, counts, kinds, (), report, files=files)

    def check(self, regions: RegionKind) -> None:
        """Refuse a model that looks at boxes where nobody has given any."""
        if regions == "boxes" and not self.counts.any():
            raise DataError(
                f"{self.report}: they give no boxes, and regions=boxes looks at nothing else; name "
                "a detector with --detector RUN or a file of boxes with --boxes FILE, give each "
                "image its boxes (JSON Lines of questions or phrases), or pass --model.regions "
                "cells"
            )

    def classes(self, images: Int[Tensor, " B"]) -> Float[Tensor, "B n C"]:
        """How likely each region that images may have is of each class: all zero where nobody has
        said, as of the whole image, which is the first.
        """
        most, classes = self.boxes.shape[1], torch.arange(len(self.names))
        made = torch.zeros(len(images), most + 1, len(classes))
        if self.found is None:
            made[:, 1:] = (self.kinds[images][..., None] == classes).float()
            return made
        first, places = self.found.first[images][:, None], torch.arange(most)
        there = (places < self.counts[images][:, None]) & (first != UNKNOWN)
        made[:, 1:][there] = self.found.rows.take("chances", (first + places)[there])
        return made

    def labels(self, image: int) -> tuple[str, ...]:
        """What its regions are called, where anybody knows."""
        if self.scenes:
            return tuple(f"{one.colour} {one.kind}" for one in self.scenes[image].objects)
        if not self.names:
            return ()
        best = self.classes(torch.tensor([image]))[0, 1 : 1 + int(self.counts[image])].max(dim=1)
        return tuple(
            self.names[kind] if likely else "" for likely, kind in zip(*(x.tolist() for x in best))
        )

    def fingerprint(self) -> str:
        """Changes when an image does, or a region."""
        if self.basis:
            return self.basis
        made = hashlib.sha256()
        for part in (self.boxes, self.counts, self.kinds):
            made.update(part.numpy().tobytes())
        return f"{digest(self.images)} {made.hexdigest()}"


def drawn_scenes(settings: JointSettings, split: str, progress: Progress) -> Sighted:
    """Scenes of shapes, drawn now; their regions are what one sees of their objects."""
    check_split(split, SHAPES, "shapes")
    count = settings.scenes if split == "train" else HELD_BACK
    scenes = [shapes.scene(split, index, settings.shapes) for index in range(count)]
    seen = partial(shapes.visible_boxes, size=settings.image)
    images, visible = draw_and_tell(scenes, settings.image, seen, progress)
    boxes = [to_corners(torch.from_numpy(one).float()) for one in visible]
    kinds = [
        torch.tensor([shapes.KINDS.index(thing.kind) for thing in scene.objects])
        for scene in scenes
    ]
    report = f"{count:,} scenes of shapes, split {split}"
    return Sighted.of(images, boxes, kinds, shapes.KINDS, report, scenes)


def square_boxes(boxes: Any, size: tuple[int, int], fit: Fit) -> Float[Tensor, "n 4"]:
    """Corners as shares of an image of that height and width, where they lie once it is square."""
    given = torch.as_tensor(boxes, dtype=torch.float32).view(-1, 4)
    return fitted_boxes(given, *size, fit).clamp(0, 1)
