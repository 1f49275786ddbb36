"""Detection: images, the objects in each, and how far what was found is from them."""

import hashlib
import json
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.boxes import to_centres, to_corners
from saccade.errors import ConfigError
from saccade.metrics.detection import FoundObjects, detection_scores
from saccade.models.detection.config import DetrConfig
from saccade.models.detection.detr import Detections
from saccade.tasks.base import Deciding, Preparation, Progress, silent
from saccade.tasks.detection.data import Annotated, DetectionSettings, read_both
from saccade.tasks.detection.losses import set_losses
from saccade.tasks.detection.matching import TrueObjects, match
from saccade.tasks.detection.vary import BoxVariation
from saccade.tasks.epochs import equal_batches
from saccade.tasks.images import digest

ASSET = "classes.json"
VALIDATED = 32  # images at a time
MOST = 100  # objects that are told of an image, as COCO counts them
ROOM = 4  # images have room for a multiple of so many objects

AP = Deciding("AP", label="AP (COCO)", higher=True)


@runtime_checkable
class DetectionNetwork(Protocol):
    """Standardised images in, detections out."""

    def __call__(
        self, images: Float[Tensor, "B 3 H W"], inside: Bool[Tensor, "B H W"] | None = None, /
    ) -> Detections: ...


class DetectionBatch(NamedTuple):
    """Images as they are kept, where each is cut, and the objects that are then left.

    The losses are summed over `tokens` objects; `items` counts images.
    """

    images: UInt8[Tensor, "B 3 K K"]
    cuts: Float[Tensor, "B 4"]
    boxes: Float[Tensor, "B N 4"]
    labels: Int[Tensor, "B N"]
    there: Bool[Tensor, "B N"]
    drawn: Float[Tensor, "B draws"]
    size: int
    tokens: int
    items: int

    @property
    def shape(self) -> Hashable:
        return (*self.images.shape, self.boxes.shape[1], self.size)

    def to(self, device: torch.device) -> "DetectionBatch":
        return self._each(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> "DetectionBatch":
        return self._each(lambda x: x.pin_memory())

    def _each(self, move: Callable[[Tensor], Tensor]) -> "DetectionBatch":
        images, cuts, boxes, labels, there, drawn = map(move, self[:6])
        return DetectionBatch(images, cuts, boxes, labels, there, drawn, *self[6:])


class Detection:
    """Implements `Task[DetectionBatch]`. An epoch sees every image once, in any order."""

    deciding = AP
    padding = 0.0

    def __init__(self, settings: DetectionSettings, how: Preparation) -> None:
        self.settings, self.seed = settings, how.seed
        self._train, self._valid = read_both(settings, how.progress)
        self.classes = self._train.classes
        self.report = [f"train: {self._train.report}", f"valid: {self._valid.report}"]
        self.vary = BoxVariation(settings.vary, image=settings.image)
        self._most = max(len(each.learnt_from().labels) for each in self._train.objects)
        self._match = match
        self._order = equal_batches(len(self._train), how.budget, seed=how.seed)
        self.batches_per_epoch = len(self._order)

    @property
    def sizes(self) -> str:
        return f"{len(self.classes):,} classes, up to {self._most:,} objects in an image"

    def assets(self) -> dict[str, bytes]:
        content = {"names": self.classes}
        return {ASSET: json.dumps(content, ensure_ascii=False, indent=1).encode()}

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, DetrConfig)
        if self._most > model.queries:
            raise ConfigError(
                f"an image has {self._most:,} objects, and queries={model.queries}: a query finds "
                f"one object; raise --model.queries, to {2 * self._most:,} say"
            )
        return replace(model, classes=len(self.classes))

    def fingerprint(self) -> str:
        return " ".join(_fingerprint_of(side) for side in (self._train, self._valid))

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> DetectionBatch:
        rows, counts, epoch = self._order.at(position, shard, shards)
        true = _filled(self._train, rows, most=self._most)
        varied = self.vary.settle(rows, true.boxes, true.there, seed=self.seed, epoch=epoch)
        there = varied.there & counts
        return DetectionBatch(
            self._train.images[rows],
            varied.cuts,
            to_centres(varied.boxes),
            true.labels,
            there,
            self.vary.draw(rows, seed=self.seed, epoch=epoch),
            self.vary.size(position, seed=self.seed),
            max(1, int(there.sum())) if counts else 0,
            len(rows) if counts else 0,
        )

    def losses(
        self, model: DetectionNetwork, batch: DetectionBatch
    ) -> dict[str, Float[Tensor, ""]]:
        """Of every pass over the queries, matched by itself."""
        shown = self.vary.shown(batch.images, batch.cuts, batch.drawn, batch.size)
        found = model(shown)
        true = TrueObjects(batch.boxes, batch.labels, batch.there)
        how = self.settings
        with torch.autocast(shown.device.type, enabled=False):
            no_object = found.scores.shape[-1] > len(self.classes)
            matched = self._match(found, true, how.weights, no_object=no_object)
            return set_losses(
                found, true, matched, how.weights, no_object=no_object, aligned=how.aligned
            )

    def hide_from_compiler(self) -> None:
        """Neither what varies images nor what matches objects can be traced."""
        self.vary.hide_from_compiler()
        hidden: Any = torch.compiler.disable(self._match)
        self._match = hidden

    def validate(
        self, model: DetectionNetwork, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        found = list(find_all(model, self.vary, self._valid, device, progress))
        scores = detection_scores(found, self._valid.objects, self._valid.sizes, self.classes)
        return {"AP": scores.ap, "AP50": scores.ap50, "AP75": scores.ap75}


def read_names_asset(raw: bytes) -> tuple[str, ...]:
    """The inverse of what a run keeps; a ValueError if it cannot be."""
    match json.loads(raw):
        case {"names": [*names]} if all(isinstance(name, str) for name in names):
            return tuple(names)
        case _:
            raise ValueError("names is not there")


def find_all(
    model: DetectionNetwork,
    vary: BoxVariation,
    read: Annotated,
    device: torch.device,
    progress: Progress = silent,
) -> Iterator[FoundObjects]:
    """What is found in each image of a split, in order."""
    for rows in torch.arange(len(read)).split(VALIDATED):
        with torch.no_grad():
            found = model(vary.plain(read.images[rows].to(device)))
        yield from (best.objects for best in best_objects(found, classes=len(read.classes)))
        progress(int(rows[-1]) + 1, len(read))


class Best(NamedTuple):
    """The likeliest objects of an image, the likeliest first, and the query of each."""

    objects: FoundObjects
    queries: Int[Tensor, " n"]


def class_chances(found: Detections, *, classes: int) -> Float[Tensor, "B Q C"]:
    """How likely each query is to have found something of each class."""
    z = found.scores[-1].float()
    alone = z.shape[-1] > classes  # the last class is: nothing
    return z.softmax(dim=-1)[..., :-1] if alone else z.sigmoid()


def best_objects(found: Detections, *, classes: int) -> list[Best]:
    """Those of each image; a query may stand for several where each class is scored by itself."""
    chances = class_chances(found, classes=classes)
    best = chances.flatten(1).topk(min(MOST, chances[0].numel()), dim=1)
    boxes = to_corners(found.boxes[-1].float()).clamp(0, 1)  # (B, Q, 4)
    rows = best.indices // classes
    chosen = boxes.gather(1, rows[..., None].expand(-1, -1, 4)).cpu()
    labels, scores, queries = (best.indices % classes).cpu(), best.values.cpu(), rows.cpu()
    return [Best(FoundObjects(*each[:3]), each[3]) for each in zip(chosen, labels, scores, queries)]


def _filled(read: Annotated, rows: Int[Tensor, " B"], *, most: int) -> TrueObjects:
    """The objects of some images that are learnt from, by corners, with room for `most` in each."""
    room = max(1, -(-most // ROOM)) * ROOM
    boxes = torch.zeros(len(rows), room, 4)
    labels = torch.zeros(len(rows), room, dtype=torch.long)
    there = torch.zeros(len(rows), room, dtype=torch.bool)
    for place, number in enumerate(rows.tolist()):
        each = read.objects[number].learnt_from()
        count = len(each.labels)
        boxes[place, :count], labels[place, :count] = each.boxes, each.labels
        there[place, :count] = True
    return TrueObjects(boxes, labels, there)


def _fingerprint_of(read: Annotated) -> str:
    """Changes when an image does, or an object, or what classes are called."""
    made = hashlib.sha256(json.dumps(read.classes).encode())
    for objects in read.objects:
        for part in objects:
            made.update(part.numpy().tobytes())
    return f"{digest(read.images)} {made.hexdigest()}"
