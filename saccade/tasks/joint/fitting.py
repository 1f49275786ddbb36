"""Finding images by sentences, and sentences by images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task, silent
from saccade.tasks.joint.batch import JointBatch, seen_regions
from saccade.tasks.joint.captions import read_both_captions, read_captions
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.pretraining import fitting
from saccade.tasks.joint.retrieval import recalls
from saccade.tasks.joint.task import JointLearning, TextsOfImages


@dataclass(frozen=True, kw_only=True)
class FittingSettings(JointSettings):
    """Which images and sentences belong together. Without `data`: shapes and their captions.

    Args:
        data: folder with metadata.jsonl or COCO JSON, such a file, or a .tar or .zip of one.
        shortlist: so many that seem alike beforehand are looked at together; 0: all.
        validated: so many images of the validation data are searched.
    """

    example: ClassVar[str] = "photo.jpg"
    decides: ClassVar[Mapping[str, Any]] = {"head": "fit"}
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", *decides})

    shortlist: int = 16
    validated: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "validated")
        if self.shortlist < 0:
            raise ConfigError(f"shortlist={self.shortlist} must be 0 or more")

    def prepare(self, how: Preparation) -> Task[Any]:
        return Fitting(self, how)


class Fitting(JointLearning):
    """Implements `Task[JointBatch]`."""

    deciding = Deciding("R@1", label="R@1, mean of both ways", higher=True)
    what = "sentences"

    def __init__(self, settings: FittingSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        return read_captions(self.settings, split, progress)

    def read_both(self, progress: Progress) -> tuple[TextsOfImages, TextsOfImages]:
        return read_both_captions(self.settings, progress)

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        return batch

    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        alone = model.alone(batch.text, batch.types, seen_regions(model, self.varied(batch).seen))
        right = model.fits(model.joined(alone, batch.of))
        found = fitting(model, alone, batch, right)
        return {name: loss * batch.tokens for name, loss in found.items()}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        images = torch.arange(min(self.settings.validated, len(self._valid.sighted)))
        how = {"shortlist": self.settings.shortlist}
        found = recalls(model, self._valid, images, device, **how, progress=progress)
        figures = {
            f"{way} R@{k}": value for way, some in found.items() for k, value in some.items()
        }
        return {"R@1": sum(some[1] for some in found.values()) / len(found), **figures}
