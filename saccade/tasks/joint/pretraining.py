"""Pre-training on captions: hidden words, hidden regions, and whether a caption fits.

Lu et al. 2019, arXiv:1908.02265. Which caption does not fit is drawn among the hardest ones of a
batch (Li et al. 2021, arXiv:2107.07651), where the model compares texts and images beforehand.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data import shapes
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, Task, silent
from saccade.tasks.cross_entropy import IGNORED
from saccade.tasks.joint.batch import JointBatch, SightedTexts, seen_regions
from saccade.tasks.joint.captions import read_both_captions, read_captions
from saccade.tasks.joint.data import JointSettings
from saccade.tasks.joint.losses import (
    choose_regions,
    contrast_loss,
    fit_loss,
    hidden_regions,
    hidden_words,
    wrong_images,
)
from saccade.tasks.joint.task import JointLearning, TextsOfImages
from saccade.tasks.masked.masking import Masking

SLOTS = 64  # hidden words are filled up to a multiple
FIXED = 16  # the streams of random numbers of held-out captions


@dataclass(frozen=True, kw_only=True)
class JointPretrainingSettings(JointSettings):
    """Which images and captions to learn from. Without `data`: the built-in shapes.

    Args:
        data: folder with metadata.jsonl or COCO JSON, such a file, or a .tar or .zip of one.
        masked: share of the words that are hidden.
    """

    example: ClassVar[str] = 'photo.jpg "a ___ on a table"'
    decides: ClassVar[Mapping[str, Any]] = {"head": "pretraining"}
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", "region_classes", *decides})
    lower_is_better: ClassVar[frozenset[str]] = frozenset(
        {"loss", "words", "regions", "fit", "contrast"}
    )
    masks: ClassVar[bool] = True

    masked: float = 0.15

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.masked < 1:
            raise ConfigError(f"masked={self.masked} must be above 0 and below 1, as 0.15")

    def fitted_sizes(self) -> dict[str, Any]:
        return {**super().fitted_sizes(), "region_classes": 0 if self.data else len(shapes.KINDS)}

    def prepare(self, how: Preparation) -> Task[Any]:
        return JointPretraining(self, how)


class JointPretraining(JointLearning):
    """Implements `Task[JointBatch]`."""

    deciding = Deciding("loss", label="validation loss")
    what = "captions"

    def __init__(self, settings: JointPretrainingSettings, how: Preparation) -> None:
        self.settings = settings
        super().__init__(settings, how)
        self._masking = Masking.of(
            self.vocabulary, share=settings.masked, whole_words=False, seed=how.seed
        )
        self._fixed = fixed_hiding(self.vocabulary, settings)

    def read(self, split: str, progress: Progress) -> TextsOfImages:
        return read_captions(self.settings, split, progress)

    def read_both(self, progress: Progress) -> tuple[TextsOfImages, TextsOfImages]:
        return read_both_captions(self.settings, progress)

    def sizes_for(self, model: VilbertConfig) -> dict[str, int]:
        return {"region_classes": len(self.names) if model.regions == "boxes" else 0}

    def made(
        self,
        data: SightedTexts,
        images: Int[Tensor, " B"],
        texts: Int[Tensor, " T"],
        of: Int[Tensor, " T"],
        *,
        counts: bool = True,
        epoch: int | None = None,
    ) -> JointBatch:
        """With words hidden."""
        masking = self._fixed if epoch is None else self._masking
        return hidden_batch(data, masking, images, texts, of, counts=counts, epoch=epoch or 0)

    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        return batch

    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        """Of hidden words and regions in right pairs, of what fits, and of what is alike."""
        regions, asked = seen_regions(model, self.varied(batch).seen), batch.asked
        chosen, emptied = choose_regions(regions, overlap=model.config.regions == "boxes")
        alone = model.alone(batch.text, batch.types, regions.hidden(emptied))
        found = model.joined(alone, batch.of)
        true = asked["classes"].flatten(0, 1)[batch.seen.which.tokens]
        losses = {
            "words": hidden_words(model, found, asked["at"], asked["labels"]),
            "regions": hidden_regions(model, found, regions, chosen, true, batch.texts),
            **fitting(model, alone, batch, model.fits(found)),
        }
        return {name: loss * batch.tokens for name, loss in losses.items()}

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        """Every part of the loss, with draws that are always the same."""
        sums, texts = dict[str, float](), 0
        with torch.no_grad(), torch.random.fork_rng([device] if device.type == "cuda" else []):
            torch.manual_seed(0)
            for batch in self.validation(device, progress):
                for name, loss in self.losses(model, batch).items():
                    sums[name] = sums.get(name, 0.0) + float(loss)
                texts += batch.tokens
        figures = {name: total / texts for name, total in sums.items()}
        return {"loss": sum(figures.values()), **figures}


def fixed_hiding(vocabulary: Vocabulary, settings: JointPretrainingSettings) -> Masking:
    """The words of held-out captions that are hidden: the same whenever they are asked for."""
    some: dict[str, Any] = {"share": settings.masked, "whole_words": False}
    return Masking.of(vocabulary, **some, seed=0, stream=FIXED)


def hidden_batch(
    data: SightedTexts,
    masking: Masking,
    images: Int[Tensor, " B"],
    texts: Int[Tensor, " T"],
    of: Int[Tensor, " T"],
    *,
    counts: bool = True,
    epoch: int = 0,
) -> JointBatch:
    """Images with texts, of which words are hidden: where these are, and which they were."""
    framed = data.texts.take(texts)
    hidden = masking.hide(framed, data.texts.first[texts], epoch=epoch)
    framed = framed._replace(tokens=hidden.tokens)
    batch = data.batch(images, texts, of, counts=counts, framed=framed)
    more = -len(hidden.at) % SLOTS
    at = torch.cat([hidden.at, hidden.at.new_zeros(more)])
    labels = torch.cat([hidden.labels, hidden.labels.new_full((more,), IGNORED)])
    classes = data.sighted.classes(images)
    return batch._replace(asked={"at": at, "labels": labels, "classes": classes})


def fitting(
    model: Vilbert, alone: Any, batch: JointBatch, right: Float[Tensor, " T"]
) -> dict[str, Float[Tensor, ""]]:
    """Texts with their images against texts with others; before they meet, too."""
    T, images = batch.texts, len(batch.seen.boxes)
    z = model.compared(alone)[:T, :images].float() if model.contrast is not None else None
    losses = dict[str, Tensor]()
    wrong = None
    if images > 1:
        other = batch.of.clone()
        other[:T] = wrong_images(z, batch.of[:T], images)
        wrong = model.fits(model.joined(alone, other))[:T].float()
    losses["fit"] = fit_loss(right[:T].float(), wrong)
    if z is not None:
        losses["contrast"] = contrast_loss(z, batch.of[:T])
    return losses
