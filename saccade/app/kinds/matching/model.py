"""A trained CLIP in Python: how alike images and texts are, and what in either that came from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from saccade.app.kinds.base import LoadedRun, TrainedModel
from saccade.app.kinds.classification.model import BEST, ClassificationModel
from saccade.app.kinds.joint.model import checked_text
from saccade.app.kinds.many_images import in_batches
from saccade.app.kinds.soundness import load_vocabulary
from saccade.app.kinds.understanding.model import UnderstandingModel
from saccade.app.look.captioning.film import ImageLook
from saccade.app.look.draw.figure import MatrixLook
from saccade.data.images.given import AnyImage, an_image, image_name
from saccade.errors import DataError
from saccade.tasks.base import Progress, silent
from saccade.tasks.matching.data import MatchingSettings
from saccade.tasks.matching.tool import MatchingTool


@dataclass(frozen=True)
class Match:
    """How alike an image and a text are: the cosine of the angle between their vectors."""

    name: str
    given: str
    score: float

    @property
    def text(self) -> str:
        return f"{self.score:.4f}"

    def __str__(self) -> str:
        return self.text


class MatchingModel(TrainedModel[MatchingTool]):
    """A trained CLIP."""

    def classifier(self, texts: Sequence[str]) -> ClassificationModel:
        """A classifier whose classes are texts."""
        read = distinct_texts(texts)
        return ClassificationModel(self.name, self.recipe, self.tool.classifier(read))

    def reader(self, images: Sequence[AnyImage]) -> UnderstandingModel:
        """A classifier of texts whose classes are images."""
        names = distinct_names([image_name(one, number) for number, one in enumerate(images)])
        prepared = [self.tool.prepare(one, name=name) for one, name in zip(images, names)]
        tool = self.tool.reader(torch.stack(prepared), names)
        return UnderstandingModel(self.name, self.recipe, tool)

    def predict(
        self, image: Any, text: Any, *, best: int = BEST, progress: Progress = silent
    ) -> Any:
        """Of a text: how alike it and the image are, a `Match`. Of a list of texts: which of them
        the image shows, with probabilities among them, a `ClassPrediction`. Of a list of images a
        list.
        """
        if isinstance(text, list | tuple):
            return self.classifier(text).predict(image, best=best, progress=progress)
        asked, made = checked_text(text), list[Match]()
        for some in in_batches(image, self.tool.batch, self.tool.prepare, progress):
            pixels = torch.stack([one.prepared for one in some])
            found = self.tool.similarity(pixels, asked).tolist()
            made += [Match(one.name, asked, score) for one, score in zip(some, found)]
        return made if isinstance(image, list) else made[0]

    def rank(self, images: Any, text: str) -> list[Match]:
        """An image or a list of them by a text, the most alike first."""
        found: list[Match] = self.predict(images if isinstance(images, list) else [images], text)
        return sorted(found, key=lambda one: -one.score)

    def look(
        self, image: AnyImage, text: str | Sequence[str], *, of: str | None = None, **select: Any
    ) -> ImageLook:
        """Where in an image its likeness to a text came from: to the likeliest of several, or to
        the one that is named, `of`; see `Selection`.
        """
        texts = [text] if isinstance(text, str) else list(text)
        return self.classifier(texts).look(image, of=of, **select)

    def look_at_words(self, image: Any, text: str, **select: Any) -> MatrixLook:
        """Which words of a text its likeness to an image came from; of several images to that
        which is likeliest.
        """
        images = list(image) if isinstance(image, list | tuple) else [image]
        return self.reader(list(map(an_image, images))).look(checked_text(text), **select)


def distinct_texts(texts: Sequence[Any]) -> tuple[str, ...]:
    """Each once; none at all are refused."""
    found = tuple(dict.fromkeys(checked_text(text) for text in texts))
    if not found:
        raise DataError("there are no texts to tell images apart by; give one or more")
    return found


def distinct_names(names: Sequence[str]) -> tuple[str, ...]:
    """With a number where a name comes again."""
    seen, made = dict[str, int](), list[str]()
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        made.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(made)


def load_matching(run: LoadedRun) -> MatchingModel:
    settings = run.recipe.task
    assert isinstance(settings, MatchingSettings)
    tool = MatchingTool(run.network, load_vocabulary(run), settings)
    return MatchingModel(run.name, run.recipe, tool)
