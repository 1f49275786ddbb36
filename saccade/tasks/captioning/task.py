"""Captioning: pictures with several captions each, cross-entropy of the words given the picture."""

import hashlib
from collections.abc import Hashable
from functools import cached_property
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.blocks.output import OutputLayer
from saccade.data.images.augment import Augment, Flip, ResizedCrop
from saccade.data.images.draws import uniform
from saccade.data.ragged import Ragged
from saccade.data.rows import Rows, with_token
from saccade.data.vocabulary import END, PAD, START, Vocabulary
from saccade.errors import DataError
from saccade.metrics.outcomes import read_groups
from saccade.models.caption.captioner import Told
from saccade.models.caption.show_attend_tell import Baseline
from saccade.tasks.base import shard_rows
from saccade.tasks.captioning.data import (
    Augmenting,
    Captioned,
    CaptioningSettings,
    Pictures,
    Progress,
    digest,
    read_captioned,
    silent,
)
from saccade.tasks.captioning.equalizer import Concern, concern, group_table, terms
from saccade.tasks.captioning.losses import reinforced, uncovered
from saccade.tasks.captioning.regions import Hidden
from saccade.tasks.cross_entropy import summed_cross_entropy

VALIDATED = 100  # pictures at a time
CHOICE = 1 << 20  # the stream of draws that choose captions, apart from those that vary pictures


class CaptionBatch(NamedTuple):
    """Pictures, and captions end to end, those of a picture side by side; `of` names it.

    `labels` says what follows each word; `asked` is what the Equalizer needs to know.
    """

    pictures: UInt8[Tensor, "B 3 H W"]
    captions: Rows
    of: Int[Tensor, " R"]
    labels: Int[Tensor, " words"]
    tokens: int
    asked: Concern | None = None

    @property
    def shape(self) -> Hashable:
        asked = None if self.asked is None else self.asked.shape
        return tuple(self.pictures.shape), self.captions.shape, asked

    def to(self, device: torch.device) -> "CaptionBatch":
        pictures, of, labels = (
            x.to(device, non_blocking=True) for x in (self.pictures, self.of, self.labels)
        )
        asked = None if self.asked is None else self.asked.to(device)
        return CaptionBatch(pictures, self.captions.to(device), of, labels, self.tokens, asked)

    def pinned(self) -> "CaptionBatch":
        pictures, of, labels = (x.pin_memory() for x in (self.pictures, self.of, self.labels))
        asked = None if self.asked is None else self.asked.pinned()
        return CaptionBatch(pictures, self.captions.pinned(), of, labels, self.tokens, asked)


class Tokens(NamedTuple):
    """Captions as tokens: those of picture i are `first[i]` up to `first[i + 1]` of `captions`."""

    pictures: Pictures
    captions: Ragged
    first: Int[Tensor, " boundaries"]
    hidden: Hidden | None = None

    def fingerprint(self) -> str:
        """Changes when a picture does, or a word, what is said of which picture, or is hidden."""
        said_of = hashlib.sha256(self.first.numpy().tobytes()).hexdigest()
        found = f"{self.captions.fingerprint()} {said_of} {digest(self.pictures)}"
        return found if self.hidden is None else f"{found} {self.hidden.fingerprint()}"

    @property
    def size(self) -> int:
        """How many pictures there are."""
        return len(self.first) - 1

    def chosen(
        self, rows: Int[Tensor, " B"], most: int, *, seed: int, epoch: int
    ) -> tuple[Int[Tensor, " R"], Int[Tensor, " R"]]:
        """At most so many captions of each picture, and which of the pictures each is about."""
        first, counts = self.first[rows], self.first.diff()[rows]
        draws = uniform(rows, int(counts.max()), seed=seed, epoch=epoch, stream=CHOICE)  # (B, n)
        there = torch.arange(draws.shape[1]) < counts[:, None]
        order = draws.masked_fill(~there, 2).argsort(dim=1)[:, :most]
        kept = order < counts[:, None]
        return (first[:, None] + order)[kept], kept.nonzero()[:, 0]


class Captioning:
    """Implements `Task[CaptionBatch]`. An epoch sees every picture once, with some of its captions.

    A batch holds as many pictures as have `batch_tokens` words in their captions on average, in
    any order: pictures of a kind in a batch would mislead batch norms.
    """

    def __init__(
        self,
        settings: CaptioningSettings,
        *,
        batch_tokens: int,
        seed: int,
        vocabulary: Vocabulary | None = None,
        progress: Progress = silent,
    ) -> None:
        self.settings, self.seed = settings, seed
        train, valid = (read_captioned(settings, split, progress) for split in ("train", "valid"))
        self.vocabulary = vocabulary or Vocabulary.train(
            (caption for captions in train.captions for caption in captions),
            level=settings.level,
            size=settings.vocabulary,
            lowercase=settings.lowercase,
        )
        self._train, too_long = encode(train, self.vocabulary, longest=settings.longest)
        self._valid, _ = encode(valid, self.vocabulary, longest=10 * settings.longest)
        self.report = [f"train: {train.report}", f"valid: {valid.report}"]
        if too_long:
            self.report.append(f"left out: {too_long:,} captions over {settings.longest} tokens")
        counts = self._train.first.diff().float()
        taken = counts.clamp(max=settings.captions).mean() / counts.mean()
        words = len(self._train.captions.flat) + len(self._train.captions)
        self.pictures = max(1, round(batch_tokens * self._train.size / float(words * taken)))
        self._vary = _augment(settings.augment, settings.image)
        groups = read_groups(settings.equalizer.groups)
        self._groups = group_table(groups, self.vocabulary) if settings.equalizer.asks else None
        self._epoch: tuple[int, list[Tensor]] = (-1, [])

    @property
    def batches_per_epoch(self) -> int:
        return -(-self._train.size // self.pictures)

    @property
    def padding(self) -> float:
        """Captions lie end to end; models that pad do it themselves."""
        return 0.0

    def fingerprint(self) -> str:
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        """Asked for at every checkpoint, but no data change while they are in memory."""
        return " ".join(side.fingerprint() for side in (self._train, self._valid))

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> CaptionBatch:
        epoch, index = divmod(position, self.batches_per_epoch)
        if self._epoch[0] != epoch:
            rng = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            order = torch.randperm(self._train.size, generator=rng)
            self._epoch = (epoch, list(order.split(self.pictures)))
        rows, counts = shard_rows(self._epoch[1][index], shard, shards)
        draws = {"seed": self.seed, "epoch": epoch}
        captions, of = self._train.chosen(rows, self.settings.captions, **draws)
        pictures = self._varied(self._train.pictures[rows], rows, draws)
        batch = collate(pictures, self._train.captions, captions, of, counts=counts)
        return batch._replace(asked=self._asked(batch, rows, draws))

    def _varied(
        self, pictures: UInt8[Tensor, "B 3 H W"], rows: Int[Tensor, " B"], draws: dict[str, int]
    ) -> UInt8[Tensor, "B 3 H W"]:
        if not self._vary.steps:
            return pictures
        return self._vary(pictures, rows, **draws).mul_(255).round_().to(torch.uint8)

    def _asked(
        self, batch: CaptionBatch, rows: Int[Tensor, " B"], draws: dict[str, int]
    ) -> Concern | None:
        """What the Equalizer needs to know; hidden pictures vary just as the others do."""
        if self._groups is None:
            return None
        hidden = None
        if self._train.hidden is not None:
            pictures, gone = self._train.hidden[rows]
            hidden = self._varied(pictures, rows, draws), gone
        return concern(self._groups, batch.captions, batch.of, batch.labels, hidden)

    def loss(self, model: nn.Module, batch: CaptionBatch) -> Float[Tensor, ""]:
        """Cross-entropy of each word given those before it and the picture, and what else is asked.

            −Σₜ log p(yₜ | y₁ … yₜ₋₁, picture) + λ Σᵢ (1 − Σₜ aₜᵢ)² + …

        Terms of a caption as a whole weigh as much as its words do together, as published.
        """
        settings = self.settings
        told: Told = model(batch.pictures, batch.captions, batch.of)
        layer: OutputLayer = model.output  # type: ignore[assignment]
        labels = batch.labels
        if told.glances is not None:
            loss = reinforced(told, layer, labels, batch.captions, settings.hard, _baseline(model))
        else:
            smoothing = settings.label_smoothing
            loss = summed_cross_entropy(told.known, layer, labels, smoothing=smoothing, ignored=PAD)
        if settings.cover and told.looked is not None and batch.tokens:
            cover = uncovered(told.looked, batch.captions, settings.cover_by)
            loss = loss + settings.cover * cover
        if batch.asked is not None:
            words = batch.captions, batch.of, labels
            loss = loss + terms(model, told, *words, batch.asked, settings.equalizer)
        return loss

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        loss = mean_loss(model, self._valid, device)
        return {"loss": loss, "perplexity": float(torch.tensor(loss).exp())}


def _baseline(model: Any) -> Baseline:
    return model.baseline


@torch.no_grad()
def mean_loss(model: nn.Module, told: Tokens, device: torch.device) -> float:
    """Mean loss per word of given captions."""
    total, tokens = 0.0, 0
    layer: OutputLayer = model.output  # type: ignore[assignment]
    for rows in torch.arange(told.size).split(VALIDATED):
        captions, of = told.chosen(rows, 1 << 30, seed=0, epoch=0)
        batch = collate(told.pictures[rows], told.captions, captions, of).to(device)
        known = model(batch.pictures, batch.captions, batch.of).known
        total += summed_cross_entropy(known, layer, batch.labels, ignored=PAD).item()
        tokens += batch.tokens
    return total / tokens


def encode(read: Captioned, vocabulary: Vocabulary, *, longest: int) -> tuple[Tokens, int]:
    """Captions as tokens without those that are too long, and how many those were.

    Pictures of which nothing is left are left out too.
    """
    encoded = vocabulary.encode_all([text for told in read.captions for text in told])
    rest, kept, numbers, too_long = iter(encoded), list[list[list[int]]](), list[int](), 0
    for number, told in enumerate(read.captions):
        rows = [next(rest) for _ in told]
        fitting = [row for row in rows if len(row) < longest]
        too_long += len(rows) - len(fitting)
        if fitting:
            kept.append(fitting)
            numbers.append(number)
    if not kept:
        raise DataError(f"no caption has under {longest} tokens; raise --longest")
    first = torch.tensor([0, *map(len, kept)]).cumsum(0)
    read = read if len(numbers) == len(read) else read.only(numbers, "")
    captions = Ragged.of([row for rows in kept for row in rows])
    return Tokens(read.pictures, captions, first, read.hidden), too_long


def collate(
    pictures: UInt8[Tensor, "B 3 H W"],
    captions: Ragged,
    rows: Int[Tensor, " R"],
    of: Int[Tensor, " R"],
    *,
    counts: bool = True,
) -> CaptionBatch:
    """Put captions end to end, shifted by START; labels end with END."""
    words, lengths = captions.take(rows)
    labels = with_token(words, lengths, END, first=False)
    shifted = Rows.of(with_token(words, lengths, START, first=True), lengths + 1)
    if not counts:
        labels = torch.full_like(labels, PAD)
    return CaptionBatch(pictures, shifted, of, labels, len(labels) if counts else 0)


def _augment(kind: Augmenting, size: int) -> Augment:
    crop = (ResizedCrop(size=size, share=(0.6, 1.0)),) if kind == "crop" else ()
    return Augment(crop if kind == "none" else (*crop, Flip()))
