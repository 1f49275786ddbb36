"""Classification: images, the class of each, and how far the model is from knowing it."""

import hashlib
import json
from collections.abc import Callable, Hashable
from typing import NamedTuple, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.images.mixing import Mixed
from saccade.metrics.classification import average_precision, top_share
from saccade.models.vision.image_encoder import ImageEncoderConfig
from saccade.tasks.base import Deciding, Preparation, Progress, silent
from saccade.tasks.classification.data import (
    Classes,
    ClassificationSettings,
    Labelled,
    read_both,
)
from saccade.tasks.classification.vary import Vary
from saccade.tasks.epochs import equal_batches
from saccade.tasks.images import digest

ASSET = "classes.json"
VALIDATED = 256  # images at a time
BEST = 5  # guesses

TOP = Deciding("top1", label="top-1 accuracy", higher=True)
PRECISION = Deciding("mAP", label="mean average precision", higher=True)


@runtime_checkable
class ImageNetwork(Protocol):
    """Images in, a score for each class out."""

    def __call__(self, images: Float[Tensor, "B 3 H W"], /) -> Float[Tensor, "B C"]: ...


class ImageBatch(NamedTuple):
    """Images as they are kept, the class of each (or those it has), and how each varies.

    `counts` is 1 for an image that counts, and 0 for one that is there so that a process has any.
    """

    images: UInt8[Tensor, "B 3 K K"]
    labels: Int[Tensor, " B"] | Bool[Tensor, "B C"]
    counts: Float[Tensor, " B"]
    tokens: int
    drawn: Float[Tensor, "B draws"]

    @property
    def shape(self) -> Hashable:
        return tuple(self.images.shape)

    def to(self, device: torch.device) -> "ImageBatch":
        return self._each(lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> "ImageBatch":
        return self._each(lambda x: x.pin_memory())

    def _each(self, move: Callable[[Tensor], Tensor]) -> "ImageBatch":
        images, labels, counts = move(self.images), move(self.labels), move(self.counts)
        return ImageBatch(images, labels, counts, self.tokens, move(self.drawn))


class Classification:
    """Implements `Task[ImageBatch]`. An epoch sees every image once, in any order.

    Where copies are asked for, it sees fewer of them, each as often, and is no longer.
    """

    def __init__(self, settings: ClassificationSettings, how: Preparation) -> None:
        self.settings, self.seed = settings, how.seed
        self._train, self._valid = read_both(settings, how.progress)
        self.classes = self._train.classes
        self.report = [f"train: {self._train.report}", f"valid: {self._valid.report}"]
        self.vary = Vary(
            settings.vary, image=settings.image, kept=settings.kept, pixels=settings.pixels
        )
        self.deciding = PRECISION if self.classes.several else TOP
        self.padding = 0.0
        repeats = settings.vary.repeats
        self._order = equal_batches(len(self._train), how.budget, seed=how.seed, repeats=repeats)
        self.batches_per_epoch = len(self._order)

    @property
    def sizes(self) -> str:
        several = ", several to an image" if self.classes.several else ""
        return f"{len(self.classes.names):,} classes{several}"

    def assets(self) -> dict[str, bytes]:
        return {ASSET: json.dumps(self.classes._asdict(), ensure_ascii=False, indent=1).encode()}

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, ImageEncoderConfig)
        return model.for_images(self.settings.image, classes=len(self.classes.names))

    def fingerprint(self) -> str:
        return " ".join(_fingerprint_of(side) for side in (self._train, self._valid))

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> ImageBatch:
        examples, counts, epoch = self._order.at(position, shard, shards)
        rows = examples % len(self._train)
        return ImageBatch(
            self._train.images[rows],
            self._train.labels[rows],
            torch.full((len(rows),), float(counts)),
            len(rows) if counts else 0,
            self.vary.draw(examples, seed=self.seed, epoch=epoch),
        )

    def hide_from_compiler(self) -> None:
        self.vary.hide_from_compiler()

    def losses(self, model: ImageNetwork, batch: ImageBatch) -> dict[str, Float[Tensor, ""]]:
        """How far scores z are from the targets t, which are mixed as the images are.

        cross-entropy:  −Σ_c t_c log softmax(z)_c
        binary:         −mean_c [t_c log σ(z_c) + (1 − t_c) log (1 − σ(z_c))],  t_c = 1 if t_c > 0
        """
        shown = self.vary.shown(batch.images, batch.drawn)
        scores = model(shown.images).float()
        each = self._loss(scores, self._targets(batch.labels, shown))
        return {"classes": (each * batch.counts.to(each)).sum()}

    def _targets(self, labels: Tensor, shown: Mixed) -> Float[Tensor, "B C"]:
        if not self.classes.several:
            labels = F.one_hot(labels, len(self.classes.names))
        targets = shown.also(labels.to(shown.own))
        smoothing = self.settings.label_smoothing
        if self._binary:
            targets = (targets > 0).to(targets)
            return targets * (1 - smoothing) + smoothing / 2 if smoothing else targets
        return targets * (1 - smoothing) + smoothing / targets.shape[1] if smoothing else targets

    @property
    def _binary(self) -> bool:
        return self.classes.several or self.settings.loss == "binary"

    def _loss(self, scores: Float[Tensor, "B C"], targets: Float[Tensor, "B C"]) -> Tensor:
        if self._binary:
            each = F.binary_cross_entropy_with_logits(scores, targets, reduction="none")
            return each.mean(dim=1)
        return -(targets * scores.log_softmax(dim=1)).sum(dim=1)

    def validate(
        self, model: ImageNetwork, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        scores = class_scores(model, self.vary, self._valid, device, progress)
        return held_out_figures(scores, self._valid.labels)


@torch.no_grad()
def class_scores(
    model: ImageNetwork,
    vary: Vary,
    read: Labelled,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
) -> Float[Tensor, "R C"]:
    """The scores of all images of a split, in order."""
    found: list[Tensor] = []
    for rows in torch.arange(len(read)).split(VALIDATED):
        images = read.images[rows].to(device)
        found.append(model(vary.plain(images)).float())
        if progress is not None:
            progress(int(rows[-1]) + 1, len(read))
    return torch.cat(found).cpu()


def held_out_figures(
    scores: Float[Tensor, "R C"], labels: Int[Tensor, " R"] | Bool[Tensor, "R C"]
) -> dict[str, float]:
    """The share of right best guesses and of five, and the loss; of several labels the mean
    average precision.
    """
    if labels.dim() == 2:
        loss = F.binary_cross_entropy_with_logits(scores, labels.to(scores)).item()
        return {"mAP": average_precision(scores, labels).nanmean().item(), "loss": loss}
    few = {} if scores.shape[1] <= BEST else {"top5": top_share(scores, labels, BEST)}
    loss = F.cross_entropy(scores, labels).item()
    return {"top1": top_share(scores, labels, 1), **few, "loss": loss}


def read_classes_asset(raw: bytes) -> Classes:
    """The inverse of what a run keeps; a ValueError if it cannot be."""
    match json.loads(raw):
        case {"names": [*names], "several": bool(several)} if all(
            isinstance(name, str) for name in names
        ):
            return Classes(tuple(names), several)
        case _:
            raise ValueError("names and several are not both there")


def _fingerprint_of(read: Labelled) -> str:
    """Changes when an image does, or its class, or what classes are called."""
    names = json.dumps(read.classes.names).encode()
    labels = hashlib.sha256(names + read.labels.numpy().tobytes()).hexdigest()
    return f"{digest(read.images)} {labels}"
