"""Learning which images and texts belong together."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig
from saccade.models.joint.clip import Clip, ClipConfig
from saccade.tasks.base import Deciding, Preparation, Progress, silent
from saccade.tasks.joint.batch import JointBatch
from saccade.tasks.joint.task import JointLearning, TextsOfImages
from saccade.tasks.matching.data import MatchingSettings, read_both_matches, read_matches
from saccade.tasks.matching.losses import equally_right, matching_loss
from saccade.tasks.matching.retrieval import recalls, vectors
from saccade.tasks.matching.same import numbered


class Matching(JointLearning):
    """Implements `Task[JointBatch]`. Texts compete with those of the same process alone."""

    deciding = Deciding("R@1", label="R@1, mean of both ways", higher=True)
    what = "captions"

    def __init__(self, settings: MatchingSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        return read_matches(self.settings, split, progress)

    def read_both(self, progress: Progress) -> tuple[TextsOfImages, TextsOfImages]:
        return read_both_matches(self.settings, progress)

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, ClipConfig)
        return replace(model, vocabulary=len(self.vocabulary))

    def see_once(self, model: Any, device: torch.device, progress: Progress) -> list[str]:
        """Nothing: whole images are seen, each time anew, and no regions are kept."""
        return []

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        said = numbered([truth[text] for text in texts.tolist()])
        return batch._replace(asked={"said": said})

    def losses(self, model: Any, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        clip: Clip = model
        pixels = self.varied(batch).seen.images
        assert pixels is not None
        images = clip.images(pixels)
        texts, of = clip.texts(batch.text)[: batch.texts], batch.of[: batch.texts]
        right = equally_right(of, batch.asked["said"], len(images))
        loss = matching_loss(clip.logits(texts, images), of, right)
        return {"contrast": loss * batch.tokens}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        most = self.settings.validated
        known = self._valid, self.valid_truth
        found = recalls(vectors(model, *known, device, most=most, progress=progress))
        figures = {
            f"{way} R@{k}": value for way, some in found.items() for k, value in some.items()
        }
        return {"R@1": sum(some[1] for some in found.values()) / len(found), **figures}
