"""A trained detector in Python: which objects an image shows, and where it looked for them."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, overload

import torch
from jaxtyping import UInt8
from torch import Tensor

from saccade.app.kinds.base import LoadedRun, TrainedModel, one_given
from saccade.app.kinds.many_images import in_batches
from saccade.app.kinds.run_classes import object_names
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.detection import BoxedImage, object_look, objects_text
from saccade.app.look.images import SeesImages, ShownImage
from saccade.app.look.settings import LookSettings, make_selection
from saccade.data.images.given import AnyImage, size_of
from saccade.errors import ConfigError
from saccade.tasks.base import Progress, silent
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.detector import LIKELY, FoundObject, ObjectDetector


class PixelObject(NamedTuple):
    """An object: its class, its score in 0 … 1, and left, top, right, bottom in pixels."""

    label: str
    score: float
    box: tuple[float, float, float, float]


class PreparedImage(NamedTuple):
    """An image as the model is given it, and as it came; `size` is its height and width."""

    name: str
    image: AnyImage
    pixels: UInt8[Tensor, "3 side side"]
    size: tuple[int, int]


@dataclass(frozen=True)
class ObjectsPrediction:
    """The objects of an image, the likeliest first; boxes are in its pixels.

    `image` is the image as it was given, `size` its height and width; `name` is its file's.
    """

    name: str
    image: AnyImage
    size: tuple[int, int]
    objects: list[PixelObject]
    threshold: float
    _pixels: UInt8[Tensor, "3 side side"]
    _model: "DetectionModel"

    @property
    def text(self) -> str:
        """How many there are of each class."""
        return objects_text([one.label for one in self.objects])

    def look(self, **select: Any) -> ImageLook:
        """Where on the image each object was looked for; see `Selection`."""
        shown = ShownImage.in_full(self.image, name=self.name)
        shown = replace(shown, seen_by=self._seen_by)
        how = LookSettings(threshold=self.threshold)
        return object_look(self._model, BoxedImage(shown), how, make_selection(select))

    def _seen_by(self, tool: SeesImages) -> UInt8[Tensor, "3 side side"]:
        """The very pixels that were looked through."""
        return self._pixels

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ObjectsPrediction({self.name!r}, {self.text!r})"


class DetectionModel(TrainedModel[ObjectDetector]):
    """A trained detector."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their scores."""
        return self.tool.classes

    @overload
    def predict(self, image: AnyImage, *, threshold: float = ...) -> ObjectsPrediction: ...
    @overload
    def predict(
        self, image: list[Any], *, threshold: float = ..., progress: Progress = ...
    ) -> list[ObjectsPrediction]: ...
    def predict(
        self, image: Any, *, threshold: float = LIKELY, progress: Progress = silent
    ) -> ObjectsPrediction | list[ObjectsPrediction]:
        """Find the objects of an image, or of many: files, their bytes, Pillow images, arrays or
        tensors of uint8. Those of a score below the `threshold` are left out.
        """
        check_threshold(threshold)
        made: list[ObjectsPrediction] = []
        for some in in_batches(image, self.tool.batch, self.prepare, progress):
            made += self.predict_prepared([one.prepared for one in some], threshold=threshold)
        return made if isinstance(image, list) else made[0]

    def prepare(self, image: AnyImage, *, name: str = "") -> PreparedImage:
        """An image made to fit; `name` is for messages."""
        pixels = self.tool.prepare(image, name=name)
        return PreparedImage(name, image, pixels, size_of(image, name=name))

    def predict_prepared(
        self, images: list[PreparedImage], *, threshold: float = LIKELY
    ) -> list[ObjectsPrediction]:
        """The same for images that were prepared, all at once."""
        if not images:
            return []
        found = self.tool.detect(torch.stack([one.pixels for one in images]), threshold=threshold)
        return [
            ObjectsPrediction(
                one.name,
                one.image,
                one.size,
                in_pixels(objects, one.size),
                threshold,
                one.pixels,
                self,
            )
            for one, objects in zip(images, found)
        ]

    def look(self, image: AnyImage, *, threshold: float = LIKELY, **select: Any) -> ImageLook:
        """Find the objects of an image, and show where each was looked for."""
        return self.predict(one_given(image), threshold=threshold).look(**select)


def check_threshold(threshold: float) -> None:
    """Refuse what no score can reach, or all do."""
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold={threshold} must be from 0 to 1, as scores are")


def in_pixels(found: list[FoundObject], size: tuple[int, int]) -> list[PixelObject]:
    """Objects of an image of this height and width."""
    height, width = size
    made: list[PixelObject] = []
    for one in found:
        left, top, right, bottom = one.box
        box = left * width, top * height, right * width, bottom * height
        made.append(PixelObject(one.label, one.score, box))
    return made


def load_detector(run: LoadedRun) -> DetectionModel:
    settings = run.recipe.task
    assert isinstance(settings, DetectionSettings)
    tool = ObjectDetector(run.network, object_names(run), settings)
    return DetectionModel(run.name, run.recipe, tool)
