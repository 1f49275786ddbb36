"""A trained classifier in Python: what an image shows, and what in it the class came from."""

from dataclasses import dataclass, replace
from typing import Any, overload

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from saccade.app.kinds.base import LoadedRun, TrainedModel, one_given
from saccade.app.kinds.many_images import in_batches
from saccade.app.kinds.run_classes import classes_of
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.classification import Subject, class_look
from saccade.app.look.images import SIDE, SeesImages, ShownImage
from saccade.app.look.settings import LookSettings, make_selection
from saccade.data.images.given import AnyImage, pixels_of
from saccade.errors import ConfigError
from saccade.models.inference.scores import ScorePrecision
from saccade.tasks.base import Progress, silent
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.guesses import Guess

BEST = 5  # guesses


@dataclass(frozen=True)
class ClassPrediction:
    """What an image was taken for: its class, or several, and the best guesses.

    `image` is the image as it was given, `pixels` as the model is; `name` is its file's.
    """

    name: str
    image: AnyImage
    pixels: UInt8[Tensor, "3 H W"]
    labels: list[str]
    guesses: list[Guess]
    probabilities: Float[Tensor, " C"]
    _model: "ClassificationModel"

    @property
    def text(self) -> str:
        """The class; of several those that are likely there."""
        return ", ".join(self.labels)

    @property
    def score(self) -> float:
        """The probability of the best guess."""
        return self.guesses[0].probability

    def look(self, *, of: str | None = None, **select: Any) -> ImageLook:
        """What in the image the class came from, or another one, `of`; see `Selection`."""
        model = self._model
        # Shown as large as it is, not as small as the model saw it.
        image = pixels_of(self.image, name=self.name, short=2 * SIDE)
        shown = ShownImage.of(image, model.tool, name=self.name)
        shown = replace(shown, seen_by=self._seen_by)
        chosen = make_selection(select)
        return class_look(model, Subject(shown), LookSettings(of=of), chosen)

    def _seen_by(self, tool: SeesImages) -> UInt8[Tensor, "3 H W"]:
        """The very pixels that were classified: a file comes in other ones at another size."""
        return self.pixels

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"ClassPrediction({self.name!r}, {self.text!r}, score={self.score:.4g})"


class ClassificationModel(TrainedModel[ImageClassifier]):
    """A trained classifier."""

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of their scores."""
        return self.tool.classes.names

    @overload
    def predict(
        self, image: AnyImage, *, best: int = ..., precision: ScorePrecision = ...
    ) -> ClassPrediction: ...
    @overload
    def predict(
        self,
        image: list[Any],
        *,
        best: int = ...,
        precision: ScorePrecision = ...,
        progress: Progress = ...,
    ) -> list[ClassPrediction]: ...
    def predict(
        self,
        image: Any,
        *,
        best: int = BEST,
        precision: ScorePrecision = "auto",
        progress: Progress = silent,
    ) -> ClassPrediction | list[ClassPrediction]:
        """Tell what an image shows, or many: files, their bytes, Pillow images, arrays or tensors
        of uint8. `best` is how many guesses are told; `precision` is bfloat16 on a GPU unless told.
        """
        if best < 1:
            raise ConfigError(f"best={best} must be at least 1")
        made: list[ClassPrediction] = []
        for some in in_batches(image, self.tool.batch, self.tool.prepare, progress):
            pixels = torch.stack([one.prepared for one in some])
            for one, chances in zip(some, self.tool.probabilities(pixels, precision)):
                said, guesses = self.tool.said(chances), self.tool.guesses(chances, best)
                made.append(ClassPrediction(*one, said, guesses, chances, self))
        return made if isinstance(image, list) else made[0]

    def look(self, image: AnyImage, *, of: str | None = None, **select: Any) -> ImageLook:
        """Tell what an image shows, and what in it the class came from."""
        return self.predict(one_given(image)).look(of=of, **select)


def load_classifier(run: LoadedRun) -> ClassificationModel:
    settings = run.recipe.task
    assert isinstance(settings, ClassificationSettings)
    tool = ImageClassifier(run.network, classes_of(run), settings)
    return ClassificationModel(run.name, run.recipe, tool)
