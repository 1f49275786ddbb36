"""Using a trained detector: which objects an image shows, where, and how sure the model is."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from saccade.data.images.given import AnyImage, pixels_of
from saccade.data.images.square import fit_square
from saccade.models.inference.detector import DetectorForInference
from saccade.models.inference.scores import KeptForm
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.task import Best, DetectionNetwork, best_objects
from saccade.tasks.detection.vary import BoxVariation

BATCH, GPU_BATCH = 8, 32  # images at a time
LIKELY = 0.5  # objects below this score are not told of


class FoundObject(NamedTuple):
    """An object; the box is left, top, right, bottom as shares of the image as it was given.

    `query` is the one that found it.
    """

    label: str
    score: float
    box: tuple[float, float, float, float]
    query: int


class ObjectDetector:
    """A model, its classes, and how images are made to fit."""

    def __init__(
        self, model: nn.Module, classes: Sequence[str], settings: DetectionSettings
    ) -> None:
        assert isinstance(model, DetectionNetwork)
        self.model, self.classes, self.settings = model.eval(), tuple(classes), settings
        self.device = next(model.parameters()).device
        self.found = KeptForm(model, DetectorForInference)
        self.vary = BoxVariation(settings.vary, image=settings.image)

    @property
    def batch(self) -> int:
        """How many images are looked through at a time."""
        return GPU_BATCH if self.device.type == "cuda" else BATCH

    def prepare(self, image: AnyImage, *, name: str = "") -> UInt8[Tensor, "3 side side"]:
        """An image upright and squeezed to a square, just as those that were learnt from.

        `name` is for messages, where the image has none of its own.
        """
        side = self.settings.image
        return fit_square(pixels_of(image, name=name, short=2 * side), side, "squeeze")

    def shown(self, images: UInt8[Tensor, "B 3 side side"]) -> Float[Tensor, "B 3 H W"]:
        """Prepared images as the model is given them."""
        return self.vary.plain(images.to(self.device))

    @torch.no_grad()
    def best(self, images: UInt8[Tensor, "B 3 side side"]) -> list[Best]:
        """The likeliest objects of each image, however unlikely they are."""
        found: list[Best] = []
        for some in images.split(self.batch):
            found += best_objects(self.found(self.shown(some)), classes=len(self.classes))
        return found

    def detect(
        self, images: UInt8[Tensor, "B 3 side side"], *, threshold: float = LIKELY
    ) -> list[list[FoundObject]]:
        """The objects of each image whose score reaches a threshold, the likeliest first."""
        return [self.told(best, threshold) for best in self.best(images)]

    def told(self, best: Best, threshold: float) -> list[FoundObject]:
        """Those of an image that are likely enough, by name."""
        boxes, labels, scores = best.objects
        rows = zip(boxes.tolist(), labels.tolist(), scores.tolist(), best.queries.tolist())
        return [
            FoundObject(self.classes[label], score, (box[0], box[1], box[2], box[3]), query)
            for box, label, score, query in rows
            if score >= threshold
        ]
