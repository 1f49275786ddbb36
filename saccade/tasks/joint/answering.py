"""Questions about images, each with the answers that people gave."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data import shapes
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task
from saccade.tasks.joint.batch import JointBatch, read_together, seen_regions
from saccade.tasks.joint.data import JointSettings, drawn_scenes
from saccade.tasks.joint.task import JointLearning, TextsOfImages
from saccade.tasks.tokenizer import tokenizer_asset

ASSET = "answers.json"
Sees = Literal["both", "question", "image"]


@dataclass(frozen=True, kw_only=True)
class AnsweringSettings(JointSettings):
    """Which questions to answer about which images. Without `data`: the questions of shapes.

    Args:
        data: .jsonl with image, question and answers: a folder, a file, a .zip or .tar.
        answers: how many there may be at most, the most frequent ones.
        sees: to learn what can be guessed: from the question alone, or from the image alone.
    """

    example: ClassVar[str] = 'photo.jpg "what colour is it?"'
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", "labels", "region_classes"})

    answers: int = 3000
    sees: Sees = "both"

    def prepare(self, how: Preparation) -> Task[Any]:
        return Answering(self, how)


class Answering(JointLearning):
    """Implements `Task[JointBatch]`: every answer is true by itself, as much as people say so."""

    deciding = Deciding("accuracy", label="accuracy", higher=True)
    what = "questions"

    def __init__(self, settings: AnsweringSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)
        self.names_of_answers = _most_frequent(self.train_truth, settings.answers)
        self._numbers = {name: place for place, name in enumerate(self.names_of_answers)}

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        sighted = drawn_scenes(self.settings, split, progress)
        asked = [shapes.questions(scene) for scene in sighted.scenes]
        texts = [tuple(one.text for one in some) for some in asked]
        return TextsOfImages(sighted, texts, [(one.answer,) for some in asked for one in some])

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, VilbertConfig)
        labels, words = len(self.names_of_answers), len(self.vocabulary)
        return replace(model, head="answers", labels=labels, vocabulary=words, contrast=False)

    def assets(self) -> dict[str, bytes]:
        names = json.dumps({"answers": self.names_of_answers}, ensure_ascii=False, indent=1)
        return {**tokenizer_asset(self.vocabulary), ASSET: names.encode()}

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: list[Any]) -> JointBatch:
        targets = torch.zeros(len(texts), len(self.names_of_answers))
        for row, text in enumerate(texts.tolist()):
            given = truth[text]
            for answer in set(given):
                place = self._numbers.get(answer)
                if place is not None:
                    targets[row, place] = min(1.0, given.count(answer) * 10 / (3 * len(given)))
        return batch._replace(asked={"targets": targets})

    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        """Σ BCE(σ(z), share), over the answers and the questions."""
        targets = batch.asked["targets"]
        z = self.scores(model, batch)[: len(targets)].float()
        return {"answers": F.binary_cross_entropy_with_logits(z, targets, reduction="sum")}

    def scores(self, model: Vilbert, batch: JointBatch) -> Float[Tensor, "T labels"]:
        """Of each answer, from what the model may see."""
        sees = self.settings.sees
        if sees == "both":
            return model.answers(read_together(model, batch))
        regions = seen_regions(model, batch.seen)
        text = batch.text
        if sees == "question":
            blind = torch.zeros_like(regions.features), torch.zeros_like(regions.boxes)
            regions = regions._replace(features=blind[0], boxes=blind[1])
        else:
            text = text._replace(tokens=torch.zeros_like(text.tokens))
        return model.answers(model(text, batch.types, regions, batch.of))

    def validate(self, model: Any, device: torch.device) -> dict[str, float]:
        right = total = loss = 0.0
        with torch.no_grad():
            for batch in self.validation(device):
                targets = batch.asked["targets"]
                z = self.scores(model, batch).float()
                right += float(targets.gather(1, z.argmax(dim=1, keepdim=True)).sum())
                loss += float(F.binary_cross_entropy_with_logits(z, targets, reduction="sum"))
                total += len(targets)
        return {"accuracy": right / total, "loss": loss / total}


def _most_frequent(truth: Iterable[tuple[str, ...]], most: int) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for given in truth:
        for answer in given:
            counts[answer] = counts.get(answer, 0) + 1
    return tuple(sorted(counts, key=lambda one: (-counts[one], one))[:most])
