"""Questions about images, each with the answers that people gave."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import check_positive
from saccade.data import shapes
from saccade.data.answers import AnswerSet
from saccade.data.readers.images.asked.forms import QUESTIONS
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task, silent
from saccade.tasks.joint.asked import read_about_images
from saccade.tasks.joint.batch import JointBatch, Sees, blinded, seen_regions
from saccade.tasks.joint.data import JointSettings, drawn_scenes
from saccade.tasks.joint.task import JointLearning, TextsOfImages
from saccade.tasks.tokenizer import tokenizer_asset

ASSET = "answers.json"


@dataclass(frozen=True, kw_only=True)
class AnsweringSettings(JointSettings):
    """Which questions to answer about which images. Without `data`: the questions of shapes.

    Args:
        data: .jsonl with image, question and answers: a folder, a file, a .zip or .tar.
        answers: how many there may be at most, the most frequent ones.
        sees: to learn what can be guessed: from the question alone, or from the image alone.
    """

    example: ClassVar[str] = 'photo.jpg "what colour is it?"'
    decides: ClassVar[Mapping[str, Any]] = {"head": "answers", "contrast": False}
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", "labels", *decides})

    answers: int = 3000
    sees: Sees = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "answers")

    def fitted_sizes(self) -> dict[str, Any]:
        answers = self.answers if self.data else min(self.answers, len(shapes.ANSWERS))
        return {**super().fitted_sizes(), "labels": answers}

    def prepare(self, how: Preparation) -> Task[Any]:
        return Answering(self, how)


class Asked(NamedTuple):
    """What people answered to a question, and what it takes, where that is known."""

    answers: tuple[str, ...]
    takes: str = ""


def read_questions(
    settings: AnsweringSettings, split: str | None, progress: Progress
) -> TextsOfImages:
    """A split of the user's questions, or of those about shapes; None is all of a single file."""
    if settings.data:
        read = read_about_images(settings, split, QUESTIONS, progress)
        return read._replace(truth=[Asked(said.item.answers) for said in read.truth])
    sighted = drawn_scenes(settings, split or "test", progress)
    asked = [shapes.questions(scene) for scene in sighted.scenes]
    texts = [tuple(one.text for one in some) for some in asked]
    truth = [Asked((one.answer,), one.takes) for some in asked for one in some]
    return TextsOfImages(sighted, texts, truth)


class Answering(JointLearning):
    """Implements `Task[JointBatch]`: every answer is true by itself, as much as people say so."""

    deciding = Deciding("accuracy", label="accuracy", higher=True)
    what = "questions"

    def __init__(self, settings: AnsweringSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)
        given = [one.answers for one in self.train_truth]
        self.answers = AnswerSet.most_frequent(given, settings.answers)
        unknown = self.answers.unknown([one.answers for one in self.valid_truth])
        self.report += [f"validation: {unknown}"] * bool(unknown)
        self.train_truth, self.valid_truth = (
            [self.answers.scores(one.answers) for one in truth]
            for truth in (self.train_truth, self.valid_truth)
        )

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        return read_questions(self.settings, split, progress)

    @property
    def sizes(self) -> str:
        return f"{super().sizes}, {len(self.answers):,} answers"

    def sizes_for(self, model: VilbertConfig) -> dict[str, int]:
        return {"labels": len(self.answers)}

    def assets(self) -> dict[str, bytes]:
        return {**tokenizer_asset(self.vocabulary), ASSET: answers_asset(self.answers)}

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        scores = [truth[text] for text in texts.tolist()]
        return batch._replace(asked={"targets": targets(scores, len(self.answers))})

    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        """Σ BCE(σ(z), share), over the answers and the questions."""
        true = batch.asked["targets"]
        z = answer_scores(model, self.varied(batch), self.settings.sees)[: len(true)]
        total = F.binary_cross_entropy_with_logits(z, true, reduction="sum")
        return {"answers": total * batch.counted}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        right = loss = 0.0
        with torch.no_grad():
            for batch in self.validation(device, progress):
                true = batch.asked["targets"]
                z = answer_scores(model, batch, self.settings.sees)
                right += float(true.gather(1, z.argmax(dim=1, keepdim=True)).sum())
                loss += float(F.binary_cross_entropy_with_logits(z, true, reduction="sum"))
        total = len(self.valid_truth)
        return {"accuracy": right / total, "loss": loss / total}


def answer_scores(model: Vilbert, batch: JointBatch, sees: Sees) -> Float[Tensor, "T labels"]:
    """Of each answer, from what the model may see."""
    text, regions = blinded(batch.text, seen_regions(model, batch.seen), sees)
    return model.answers(model(text, batch.types, regions, batch.of)).float()


def targets(scores: Sequence[Mapping[int, float]], labels: int) -> Float[Tensor, "T labels"]:
    """How right each answer is to each question, of which some numbers are known."""
    made = torch.zeros(len(scores), labels)
    for row, some in enumerate(scores):
        for place, score in some.items():
            made[row, place] = score
    return made


def answers_asset(answers: AnswerSet) -> bytes:
    """What a run keeps of them."""
    return json.dumps({"answers": answers.names}, ensure_ascii=False, indent=1).encode()


def read_answers_asset(raw: bytes) -> AnswerSet:
    """The inverse; a ValueError if it cannot be."""
    match json.loads(raw):
        case {"answers": [*names]} if all(isinstance(name, str) for name in names):
            return AnswerSet(tuple(names))
        case _:
            raise ValueError("answers is not there")
