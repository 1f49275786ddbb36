"""What a user of Saccade gets: the updates of `train`, the search and class scores of `predict`."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.app.bench.sentences import numbered, text_of
from saccade.app.bench.settings import RaceSettings
from saccade.app.bench.timing import Work
from saccade.blocks.inference.affine import Precision
from saccade.config import ModelConfig
from saccade.decode.engine import Decoding
from saccade.models.image_tokens.dalle import Dalle
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.models.inference.encoder import ClassScores, EncoderForInference
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.tasks.base import Batch, Deciding, Progress, Task, silent
from saccade.tasks.detection.losses import set_losses
from saccade.tasks.detection.matching import TrueObjects, Weights, match
from saccade.tasks.text_to_image.data import TextToImageSettings
from saccade.tasks.text_to_image.drawer import Drawing, Drawn, ImageDrawer
from saccade.tasks.translation.translator import Translator
from saccade.train.devices.distributed import World
from saccade.train.fit import Trainer
from saccade.train.settings import TrainSettings

Texts = list[list[int]]
B = TypeVar("B", bound=Batch)


def updates(
    bench: RaceSettings,
    model: nn.Module,
    task: Task[Any],
    *,
    compiled: bool = False,
    count: int | None = None,
) -> Work:
    """Updates after which someone looks at the losses; fetching the batches included."""
    settings = TrainSettings(
        steps=1_000_000,
        learning_rate=1e-4,
        warmup=0,
        precision="bfloat16" if bench.arithmetic == "bf16" else "float32",
        batches="mixed",
        compile=compiled,
    )
    trainer = Trainer(copy.deepcopy(model), task, settings, World(0, 1, bench.where))

    def work() -> None:
        for _ in range(count or bench.repeats):
            trainer.advance()
        trainer.settle()

    return work


class _Exactly(Translator):
    """Ends nothing before `words` words; the weights see to it that nothing wants to."""

    def __init__(self, model: nn.Module, words: int) -> None:
        config: Any = model.config
        super().__init__(model, numbered(config.vocabulary))
        self.words = words

    def limits(self, lengths: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
        return torch.full_like(lengths, self.words)


def translations(
    model: nn.Module,
    sources: list[Int[Tensor, " _"]],
    *,
    beam: int,
    words: int,
    precision: Precision = "float32",
) -> Callable[[], Texts]:
    """The best translation of each source, all in one batch; tokens in, tokens out."""
    translator, how = _Exactly(model, words), Decoding(beam=beam, precision=precision)

    def work() -> Texts:
        found = translator._decode(sources, how)  # type: ignore[reportPrivateUsage]
        return [hypotheses[0].tokens for hypotheses in found]

    return work


@dataclass(frozen=True, kw_only=True)
class _InPrecision(Drawing):
    """As users draw, who have no choice of precision."""

    precision: Precision

    @property
    def decoding(self) -> Decoding:
        return replace(super().decoding, precision=self.precision)


def drawn_images(
    model: Dalle, texts: Int[Tensor, "B n"], *, precision: Precision = "float32"
) -> Callable[[], list[Drawn]]:
    """The codes of an image for each text; no discrete VAE is asked."""
    vocabulary, how = numbered(model.config.vocabulary), _InPrecision(precision=precision)
    unasked = DvaeConfig(image=8, codes=1, width=4, groups=1, blocks=1, code_width=1).build()
    drawer = ImageDrawer(model, unasked, vocabulary, TextToImageSettings())
    prompts = [text_of(row.tolist()) for row in texts]

    def work() -> list[Drawn]:
        return drawer.draw(prompts, how)

    return work


class LabelledImages(NamedTuple):
    """A batch that is where it is needed already, as the peers' is."""

    image: Float[Tensor, "B 3 H W"]
    label: Int[Tensor, " B"]

    @property
    def tokens(self) -> int:
        return len(self.label)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.image.shape)

    def to(self, device: torch.device) -> "LabelledImages":
        return LabelledImages(self.image.to(device), self.label.to(device))

    def pinned(self) -> "LabelledImages":
        return self


@dataclass(frozen=True)
class SameBatch(ABC, Generic[B]):
    """The same batch for ever: what the trainer needs of a task to train on it."""

    only: B
    padding: float = 0.0
    batches_per_epoch: int = 1
    sizes: str = ""

    @property
    def deciding(self) -> Deciding:
        return Deciding("loss", label="loss per image")

    @property
    def report(self) -> list[str]:
        return []

    def assets(self) -> dict[str, bytes]:
        return {}

    def fit(self, model: ModelConfig) -> ModelConfig:
        return model

    def fingerprint(self) -> str:
        return ""

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> B:
        return self.only

    @abstractmethod
    def losses(self, model: Any, batch: B) -> dict[str, Float[Tensor, ""]]: ...

    def validate(
        self, model: nn.Module, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        raise AssertionError("a bench does not validate")


class Classify(SameBatch[LabelledImages]):
    """To tell images apart."""

    def losses(self, model: nn.Module, batch: LabelledImages) -> dict[str, Float[Tensor, ""]]:
        """Σ −log p(label)."""
        loss = F.cross_entropy(model(batch.image), batch.label, reduction="sum")
        return {"cross_entropy": loss}


class BoxedImages(NamedTuple):
    """Images and their objects, where they are needed already."""

    image: Float[Tensor, "B 3 H W"]
    true: TrueObjects
    tokens: int  # objects

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.image.shape)

    def to(self, device: torch.device) -> "BoxedImages":
        true = TrueObjects(*(x.to(device) for x in self.true))
        return BoxedImages(self.image.to(device), true, self.tokens)

    def pinned(self) -> "BoxedImages":
        return self


class Detect(SameBatch[BoxedImages]):
    """To find objects, as DETR was published."""

    def losses(self, model: Any, batch: BoxedImages) -> dict[str, Float[Tensor, ""]]:
        found, weights = model(batch.image), Weights()
        with torch.autocast(batch.image.device.type, enabled=False):
            matched = match(found, batch.true, weights, no_object=True)
            return set_losses(found, batch.true, matched, weights, no_object=True, aligned=False)


def compiled_scores(model: ImageEncoder, precision: Precision) -> ClassScores:
    """Those of a form for inference whose kernels torch.compile makes."""
    return EncoderForInference(model, precision, compiled=True)


@torch.no_grad()
def mean_loss(model: nn.Module, task: Task[Any], device: torch.device) -> float:
    """Per token, without dropout, in float32: what every peer's must be."""
    batch = task.batch(0).to(device)
    losses = task.losses(model.eval(), batch).values()
    model.train()
    return sum(loss.item() for loss in losses) / batch.tokens


def agreement(found: Texts, expected: Texts) -> float:
    """The share of sentences whose every word is the same."""
    return sum(a == b for a, b in zip(found, expected, strict=True)) / len(expected)
