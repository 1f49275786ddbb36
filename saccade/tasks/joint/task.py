"""What all learning from images and texts has in common: reading, tokens, and the order."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.joint.config import VilbertConfig
from saccade.models.joint.vilbert import Vilbert
from saccade.tasks.base import Deciding, Preparation, Progress, each_told, silent
from saccade.tasks.images import augmentation, cache_folder, varied
from saccade.tasks.joint.batch import JointBatch, SightedTexts, image_order
from saccade.tasks.joint.boxes import RegionPlaces
from saccade.tasks.joint.data import JointSettings, Sighted, said_of_shapes
from saccade.tasks.joint.seen_once import see_once
from saccade.tasks.kept_texts import KeptTexts
from saccade.tasks.tokenizer import tokenizer_asset

VALIDATED = 64  # images at a time
UNKNOWN_SHARE = 0.05  # of all tokens; where more are unknown, the user is told


class TextsOfImages(NamedTuple):
    """What a split holds: images, the texts about each, and what is true of each text.

    `sizes` has how many texts belong together, row by row, where they do.
    """

    sighted: Sighted
    texts: Sequence[tuple[str, ...]]
    truth: Sequence[Any]
    sizes: list[int] | None = None

    def located(self, places: RegionPlaces, progress: Progress) -> "TextsOfImages":
        """With the regions of images of which the data do not say where they are."""
        return self._replace(sighted=places(self.sighted, progress))


class JointLearning(ABC):
    """Implements `Task[JointBatch]` but for what is asked."""

    deciding: Deciding
    train_truth: Sequence[Any]  # of each text
    valid_truth: Sequence[Any]
    padding = 0.0
    what: ClassVar[str] = "texts"

    def __init__(self, settings: Any, how: Preparation) -> None:
        joint: JointSettings = settings
        self.seed, self._most, self._decides = how.seed, joint.texts, joint.decides
        places = RegionPlaces(joint, how.open_run)
        read = self.read_both(how.progress)
        train, valid = (side.located(places, how.progress) for side in read)
        learnt, held = (KeptTexts(side.texts, how.progress) for side in (train, valid))
        own = learnt if joint.data else KeptTexts([said_of_shapes(joint.shapes)])
        self.vocabulary = own.tokenizer(joint, how, masks=joint.masks)
        bound = how.bound(joint.longest, "--longest")
        self.report = [
            f"{split}: {line}"
            for split, read in (("train", train), ("valid", valid))
            for line in (read.sighted.report, *read.sighted.notes)
        ]
        self.names = train.sighted.names
        found = list[tuple[SightedTexts, Sequence[Any]]]()
        for name, side, about in (("training", train, learnt), ("validation", valid, held)):
            texts, told, kept = SightedTexts.of(
                side.sighted,
                about,
                self.vocabulary,
                bound,
                f"{name} {self.what}",
                side.sizes,
            )
            self.report += told
            all_kept = len(kept) == len(side.truth)
            truth = side.truth if all_kept else [side.truth[i] for i in kept.tolist()]
            found.append((texts, truth))
        (self._train, self.train_truth), (self._valid, self.valid_truth) = found
        self.report += dict.fromkeys([*learnt.notes, *held.notes])
        self.report += _unknown(self.vocabulary, self._train)
        self._vary = augmentation(joint.augment, joint.image)
        self._order = image_order(self._train, self._most, budget=how.budget, seed=how.seed)

    @abstractmethod
    def read(self, split: str, progress: Progress) -> TextsOfImages:
        """A split of the data."""

    def read_both(self, progress: Progress) -> tuple[TextsOfImages, TextsOfImages]:
        """What is learnt from and what is validated on."""
        return self.read("train", progress), self.read("valid", progress)

    @abstractmethod
    def ask(self, batch: JointBatch, texts: Int[Tensor, " T"], truth: Sequence[Any]) -> JointBatch:
        """A batch with what is true of its texts."""

    @abstractmethod
    def losses(self, model: Vilbert, batch: JointBatch) -> dict[str, Float[Tensor, ""]]:
        """By name, each times the number of texts."""

    @property
    def batches_per_epoch(self) -> int:
        return len(self._order)

    @property
    def sizes(self) -> str:
        return f"{len(self.vocabulary):,} tokens in the vocabulary"

    def assets(self) -> dict[str, bytes]:
        return tokenizer_asset(self.vocabulary)

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, VilbertConfig)
        for data in (self._train, self._valid):
            data.sighted.check(model.regions)
        decided = {**self.sizes_for(model), **self._decides}
        return replace(model, vocabulary=len(self.vocabulary), **decided)

    def sizes_for(self, model: VilbertConfig) -> dict[str, int]:
        """What else the data decide of a model."""
        return {}

    def fingerprint(self) -> str:
        return f"{self._train.fingerprint()} {self._valid.fingerprint()}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> JointBatch:
        images, counts, epoch = self._order.at(position, shard, shards)
        draws = {"seed": self.seed, "epoch": epoch}
        texts, of = self._train.some(images, self._most, **draws)
        made = self.made(self._train, images, texts, of, counts=counts, epoch=epoch)
        drawn = self._vary.draw(images, **draws) if self._vary.steps else None
        return self.ask(made._replace(drawn=drawn), texts, self.train_truth)

    def varied(self, batch: JointBatch) -> JointBatch:
        """With images that are never quite the same, where a model learns from them."""
        if batch.seen.images is None:
            return batch
        images = varied(self._vary, batch.seen.images, batch.drawn)
        return batch._replace(seen=batch.seen._replace(images=images))

    def see_once(self, model: Vilbert, device: torch.device, progress: Progress) -> list[str]:
        """Where neither images nor what looks at them change, look once; else each time anew."""
        if self._vary.steps or not model.image_encoder.fixed:
            return []
        try:
            train, valid = (
                replace(data, seen=see_once(model, data.sighted, device, progress))
                for data in (self._train, self._valid)
            )
        except OSError as error:
            why = f"what it sees cannot be kept in {cache_folder()} ({error.strerror})"
            return [f"the image encoder looks at every image again and again, for {why}"]
        self._train, self._valid = train, valid
        count = len(train.sighted) + len(valid.sighted)
        return [f"the image encoder stays as it is, and has looked at {count:,} images once"]

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
        """Without what is asked; `epoch` is that of training."""
        return data.batch(images, texts, of, counts=counts)

    def validation(self, device: torch.device, progress: Progress = silent) -> Iterator[JointBatch]:
        """All held-out texts, in order."""
        for images, texts, of in in_order(self._valid, progress):
            batch = self.made(self._valid, images, texts, of)
            yield self.ask(batch, texts, self.valid_truth).to(device)


def _unknown(vocabulary: Vocabulary, data: SightedTexts) -> list[str]:
    """A line for the user where the tokenizer knows many of the words not."""
    tokens, unknown = data.texts.lines.tokens, vocabulary.special.unknown
    flat, _ = tokens.take(torch.arange(len(tokens)))
    share = 0.0 if unknown is None else float((flat.numpy() == unknown).mean())
    told = f"{share:.0%} of the tokens of the training texts are unknown to the tokenizer"
    return [told] * (share > UNKNOWN_SHARE)


def in_order(
    data: SightedTexts, progress: Progress = silent
) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Images some at a time, all texts about them, and which of these images each is about."""
    for images in each_told(torch.arange(len(data.sighted)).split(VALIDATED), progress):
        texts = torch.arange(int(data.first[images[0]]), int(data.first[images[-1] + 1]))
        if len(texts):
            yield images, texts, data.image_of[texts] - images[0]
