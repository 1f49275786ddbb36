"""Which region of an image a phrase means."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data import shapes
from saccade.data.boxes import iou
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams, Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task
from saccade.tasks.joint.batch import JointBatch, seen_regions
from saccade.tasks.joint.data import JointSettings, drawn_scenes
from saccade.tasks.joint.task import JointLearning, TextsOfImages

MEANT = 0.5  # a region that shares so much with the true box is right


@dataclass(frozen=True, kw_only=True)
class ReferringSettings(JointSettings):
    """Which phrases mean what in which images. Without `data`: shapes and phrases about them.

    Args:
        data: .jsonl with image, phrase and box: a folder, a file, a .zip or .tar.
    """

    example: ClassVar[str] = 'photo.jpg "the red circle"'
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary"})

    def prepare(self, how: Preparation) -> Task[Any]:
        return Referring(self, how)


class Referring(JointLearning):
    """Implements `Task[JointBatch]`."""

    deciding = Deciding("accuracy", label="accuracy at IoU 0.5", higher=True)
    what = "phrases"

    def __init__(self, settings: ReferringSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        sighted = drawn_scenes(self.settings, split, progress)
        said = [shapes.referring(scene) for scene in sighted.scenes]
        texts = [tuple(one.text for one in some) for some in said]
        boxes = [sighted.boxes[image, one.thing] for image, some in enumerate(said) for one in some]
        return TextsOfImages(sighted, texts, boxes)

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, VilbertConfig)
        return replace(model, head="regions", vocabulary=len(self.vocabulary), contrast=False)

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: list[Any]) -> JointBatch:
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
        return {"regions": (each * (pair < len(boxes))).sum()}

    def validate(self, model: Any, device: torch.device) -> dict[str, float]:
        right = total = 0.0
        with torch.no_grad():
            for batch in self.validation(device):
                boxes = batch.asked["boxes"]
                regions = seen_regions(model, batch.seen)
                found = model(batch.text, batch.types, regions, batch.of)
                shared, pair = _shared(found, regions, boxes)
                best = best_regions(model.chosen(found).float(), pair, len(boxes))
                right += float((shared[best] >= MEANT).sum())
                total += len(boxes)
        return {"accuracy": right / total}


def best_regions(
    z: Float[Tensor, " regions"], pair: Int[Tensor, " regions"], pairs: int
) -> Int[Tensor, " pairs"]:
    """The likeliest region of each pair; of equals the first."""
    most = z.new_full((pairs,), -torch.inf).scatter_reduce_(0, pair, z, "amax")
    places = torch.arange(len(z), device=z.device)
    first = torch.where(z == most[pair], places, len(z))
    return torch.full_like(pair[:pairs], len(z)).scatter_reduce_(0, pair, first, "amin")


def _shared(
    found: Streams, regions: RegionRows, boxes: Float[Tensor, "T 4"]
) -> tuple[Float[Tensor, " regions"], Int[Tensor, " regions"]]:
    """How much of its phrase's box each region shares, and which pair it is of."""
    assert found.which is not None
    places = torch.arange(len(found.which), device=boxes.device)
    pair = torch.bucketize(places, found.region_starts, right=True) - 1
    true = boxes[pair.clamp(max=len(boxes) - 1)]
    return iou(regions.boxes[found.which], true)[0], pair
