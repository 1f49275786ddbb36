"""How classifiers answer requests."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from saccade.app.kinds.base import DecodeImage, Serving
from saccade.app.look.classification import Subject, class_document
from saccade.app.look.images import SIDE, SeesImages, ShownImage
from saccade.app.look.settings import LookSettings
from saccade.app.serve.steps import ServedJob, Steps
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.guesses import Guess

BEST = 5  # guesses, where a request does not say how many


class ClassificationServing(Serving):
    """Images of several requests are classified together."""

    takes = "image"
    does = "classifies images and writes nothing"
    uses = frozenset(("n_best", "stream"))

    def looks(self, model: nn.Module) -> bool:
        return True  # without attention there is Grad-CAM

    def classes(self, tool: ImageClassifier, given: Any) -> Sequence[str]:
        return tool.classes.names

    def predict(self, tool: ImageClassifier, jobs: Sequence[ServedJob], steps: Steps) -> None:
        given: list[Tensor] = [one for job in jobs for one in job.work.given]
        chances = iter(tool.probabilities(torch.stack(given)))
        for job in jobs:
            best = max(BEST, job.work.how.n_best)
            found = [next(chances) for _ in job.work.given]
            job.finish([guesses_table(tool.said(p), tool.guesses(p, best)) for p in found])

    def look(self, models: list[Any], given: ShownImage, settings: LookSettings) -> Any:
        return class_document(models, [Subject(given)], settings)

    def image_to_predict(self, tool: ImageClassifier, decode: DecodeImage) -> Tensor:
        return tool.prepare(decode(2 * tool.settings.kept))

    def image_to_look_at(self, tools: list[ImageClassifier], decode: DecodeImage) -> ShownImage:
        fits = {id(tool): self.image_to_predict(tool, decode) for tool in tools}

        def seen_by(tool: SeesImages) -> Tensor:
            return fits[id(tool)]

        return replace(ShownImage.of(decode(2 * SIDE), tools[0]), seen_by=seen_by)

    def about(self, task: Any) -> dict[str, Any]:
        return {"image": task.image}


def guesses_table(labels: list[str], guesses: list[Guess]) -> dict[str, Any]:
    """What an image was taken for, for JSON."""
    return {
        "text": ", ".join(labels),
        "labels": labels,
        "guesses": [one._asdict() for one in guesses],
    }
