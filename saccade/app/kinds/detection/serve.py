"""How detectors answer requests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.app.kinds.base import DecodeImage, Serving
from saccade.app.kinds.detection.model import PixelObject, in_pixels
from saccade.app.look.detection import BoxedImage, object_document, objects_text
from saccade.app.look.images import LONGEST, SeesImages, ShownImage
from saccade.app.look.settings import LookSettings
from saccade.app.serve.steps import ServedJob, Steps
from saccade.tasks.detection.detector import LIKELY, ObjectDetector

IN_FULL = 1 << 20  # pixels: as large as it came


class SizedImage(NamedTuple):
    """An image made to fit, and the height and width that it came with."""

    pixels: Tensor
    size: tuple[int, int]


class DetectionServing(Serving):
    """Images of several requests are looked through together."""

    takes = "image"
    does = "finds objects and writes nothing"
    uses = frozenset(("threshold", "stream"))

    def looks(self, model: nn.Module) -> bool:
        return True  # queries always look at the image

    def predict(self, tool: ObjectDetector, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given: list[SizedImage] = [one for job in jobs for one in job.work.given]
        best = iter(tool.best(torch.stack([one.pixels for one in given])))
        for job in jobs:
            threshold = LIKELY if job.work.threshold is None else job.work.threshold
            job.finish(
                [
                    objects_table(in_pixels(tool.told(next(best), threshold), one.size), one.size)
                    for one in job.work.given
                ]
            )

    def look(self, models: list[Any], given: ShownImage, settings: LookSettings) -> Any:
        return object_document(models, [BoxedImage(given)], settings)

    def image_to_predict(self, tool: ObjectDetector, decode: DecodeImage) -> SizedImage:
        whole, short = decode(IN_FULL), 2 * tool.settings.image
        height, width = whole.shape[1:]
        # A large JPEG is decoded once more, at the size at which `predict` reads it from a file.
        pixels = whole if min(height, width) < 2 * short else decode(short)
        return SizedImage(tool.prepare(pixels), (height, width))

    def image_to_look_at(self, tools: list[ObjectDetector], decode: DecodeImage) -> ShownImage:
        fits = {id(tool): tool.prepare(decode(2 * tool.settings.image)) for tool in tools}

        def seen_by(tool: SeesImages) -> Tensor:
            return fits[id(tool)]

        return replace(ShownImage.in_full(decode(LONGEST), name="image"), seen_by=seen_by)

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image}

    def about_tool(self, tool: ObjectDetector) -> dict[str, Any]:
        return {"objects": list(tool.classes)}


def objects_table(objects: list[PixelObject], size: tuple[int, int]) -> dict[str, Any]:
    """What an image shows, for JSON; boxes are left, top, right, bottom in its pixels."""
    return {
        "text": objects_text([one.label for one in objects]),
        "width": size[1],
        "height": size[0],
        "objects": [
            {
                "label": one.label,
                "score": round(one.score, 6),
                "box": [round(side, 2) for side in one.box],
            }
            for one in objects
        ],
    }
