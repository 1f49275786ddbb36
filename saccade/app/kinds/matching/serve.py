"""How models that compare images with texts answer requests."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from saccade.app.kinds.base import DecodeImage, Serving
from saccade.app.look.classification import Subject, class_document
from saccade.app.look.images import SIDE, SeesImages, ShownImage
from saccade.app.look.settings import LookSettings
from saccade.app.serve.http.errors import invalid
from saccade.app.serve.steps import ServedJob, Steps
from saccade.errors import DataError
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.guesses import best_guesses
from saccade.tasks.matching.tool import MatchingTool


@dataclass(frozen=True)
class AskedImage:
    """An image as the model is given it, or as people see it, and the texts it is compared with."""

    image: Any
    texts: tuple[str, ...]


class NamedClassifier(NamedTuple):
    """A classifier whose classes are the texts of a request."""

    name: str
    tool: ImageClassifier


class MatchingServing(Serving):
    """Each image comes with a text, or with several, one a line: which of them fits."""

    takes = "image"
    pairs = True
    does = "compares and writes nothing"
    uses = frozenset(("n_best", "stream"))

    def looks(self, model: nn.Module) -> bool:
        return True  # without attention there is Grad-CAM

    def classes(self, tool: MatchingTool, given: AskedImage) -> Sequence[str]:
        return given.texts

    def check(self, run: str, tool: MatchingTool, given: AskedImage) -> int:
        try:
            return sum(len(tool.reading(text).tokens) for text in given.texts)
        except DataError as error:
            raise invalid(f"{run}: {error}", "text") from error

    def predict(self, tool: MatchingTool, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given: list[AskedImage] = [one for job in jobs for one in job.work.given]
        images = tool.image_vectors(torch.stack([one.image for one in given]))
        found = iter(zip(given, images))
        for job in jobs:
            job.finish([matches_table(tool, *next(found)) for _ in job.work.given])

    def look(self, models: list[Any], given: AskedImage, settings: LookSettings) -> Any:
        named = [NamedClassifier(one.name, one.tool.classifier(given.texts)) for one in models]
        return class_document(named, [Subject(given.image)], settings)

    def with_text(self, tool: MatchingTool, image: Any, text: str, boxes: Any) -> AskedImage:
        if boxes is not None:
            raise invalid("images are compared as a whole: leave boxes out", "boxes")
        lines = dict.fromkeys(line.strip() for line in text.splitlines() if line.strip())
        return AskedImage(image, tuple(lines) or (text,))

    def image_to_predict(self, tool: MatchingTool, decode: DecodeImage) -> Tensor:
        return tool.prepare(decode(2 * tool.settings.image))

    def image_to_look_at(self, tools: list[MatchingTool], decode: DecodeImage) -> ShownImage:
        sides = {one.settings.image: self.image_to_predict(one, decode) for one in tools}

        def seen_by(tool: SeesImages) -> Tensor:
            return sides[tool.settings.image]

        return replace(ShownImage.of(decode(2 * SIDE), tools[0]), seen_by=seen_by)

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image, "asks": True}


def matches_table(tool: MatchingTool, asked: AskedImage, image: Tensor) -> dict[str, Any]:
    """The texts, the likeliest first, with their probabilities among themselves and cosines."""
    cosines = (tool.text_vectors(asked.texts) @ image).float()
    chances = (tool.model.scale.detach().float() * cosines).softmax(dim=0)
    alike = dict(zip(asked.texts, cosines.tolist()))
    guesses = best_guesses(asked.texts, chances, len(asked.texts))
    return {
        "text": guesses[0].label,
        "similarity": round(alike[guesses[0].label], 6),
        "guesses": [{**one._asdict(), "similarity": round(alike[one.label], 6)} for one in guesses],
    }
