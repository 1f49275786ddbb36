"""Which region of an image a phrase means."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data import shapes
from saccade.data.boxes import iou
from saccade.data.readers.images.asked.forms import REFERRING
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams, Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task, silent
from saccade.tasks.joint.asked import read_about_images
from saccade.tasks.joint.batch import JointBatch, seen_regions
from saccade.tasks.joint.data import JointSettings, drawn_scenes, square_boxes
from saccade.tasks.joint.task import JointLearning, TextsOfImages

MEANT = 0.5  # a region that shares so much with the true box is right


@dataclass(frozen=True, kw_only=True)
class ReferringSettings(JointSettings):
    """Which phrases mean what in which images. Without `data`: shapes and phrases about them.

    Args:
        data: .jsonl with image, phrase and box: a folder, a file, a .zip or .tar.
    """

    example: ClassVar[str] = 'photo.jpg "the red circle"'
    placed: ClassVar[bool] = True
    decides: ClassVar[Mapping[str, Any]] = {"head": "regions", "contrast": False}
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", *decides})

    def prepare(self, how: Preparation) -> Task[Any]:
        return Referring(self, how)


def read_phrases(
    settings: ReferringSettings, split: str | None, progress: Progress
) -> TextsOfImages:
    """A split of the user's phrases, or of those about shapes; None is all of a single file.

    What is true of a phrase is its box, by its corners on the square image.
    """
    if settings.data:
        read = read_about_images(settings, split, REFERRING, progress)
        boxes = [square_boxes([said.item.box], said.size, settings.fit)[0] for said in read.truth]
        return read._replace(truth=boxes)
    sighted = drawn_scenes(settings, split or "test", progress)
    said = [shapes.referring(scene) for scene in sighted.scenes]
    texts = [tuple(one.text for one in some) for some in said]
    boxes = [sighted.boxes[image, one.thing] for image, some in enumerate(said) for one in some]
    return TextsOfImages(sighted, texts, boxes)


class Referring(JointLearning):
    """Implements `Task[JointBatch]`."""

    deciding = Deciding("accuracy", label="accuracy at IoU 0.5", higher=True)
    what = "phrases"

    def __init__(self, settings: ReferringSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        return read_phrases(self.settings, split, progress)

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        return batch._replace(asked={"boxes": torch.stack([truth[i] for i in texts.tolist()])})

    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        """Of each region by itself, how much of the true box it shares, where that is enough.

        −Σ t log p + (1 − t) log(1 − p)        t = IoU where it is 0.5 at least, else 0
        """
        boxes = batch.asked["boxes"]
        regions = seen_regions(model, batch.seen)
        found = model(batch.text, batch.types, regions, batch.of)
        shared, pair = _shared(found, regions, boxes)
        target = shared * (shared >= MEANT)
        each = F.binary_cross_entropy_with_logits(
            model.chosen(found).float(), target, reduction="none"
        )
        return {"regions": (each * (pair < len(boxes))).sum() * batch.counted}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        batches = self.validation(device, progress)
        right = torch.cat([points_right(model, batch) for batch in batches])
        return {"accuracy": float(right.float().mean())}


@torch.no_grad()
def points_right(model: Vilbert, batch: JointBatch) -> Bool[Tensor, " T"]:
    """Whether the likeliest region of each phrase shares half of its box at least."""
    boxes = batch.asked["boxes"]
    regions = seen_regions(model, batch.seen)
    found = model(batch.text, batch.types, regions, batch.of)
    shared, pair = _shared(found, regions, boxes)
    best = best_regions(model.chosen(found).float(), pair, len(boxes))
    return (shared[best] >= MEANT).cpu()


def best_regions(
    z: Float[Tensor, " regions"], pair: Int[Tensor, " regions"], pairs: int
) -> Int[Tensor, " pairs"]:
    """The likeliest region of each pair; of equals the first."""
    most = z.new_full((pairs,), -torch.inf).scatter_reduce_(0, pair, z, "amax")
    places = torch.arange(len(z), device=z.device)
    first = torch.where(z == most[pair], places, len(z))
    return pair.new_full((pairs,), len(z)).scatter_reduce_(0, pair, first, "amin")


def _shared(
    found: Streams, regions: RegionRows, boxes: Float[Tensor, "T 4"]
) -> tuple[Float[Tensor, " regions"], Int[Tensor, " regions"]]:
    """How much of its phrase's box each region shares, and which pair it is of."""
    assert found.beside is not None, "words and regions have not met"
    which, pair = found.beside.which, found.beside.pair
    true = boxes[pair.clamp(max=len(boxes) - 1)]
    return iou(regions.boxes[which], true)[0], pair
