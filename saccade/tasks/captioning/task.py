"""Captioning: images with several captions each, cross-entropy of the words given the image."""

import hashlib
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.batching.ragged import Sequences
from saccade.data.batching.rows import FILLER, Rows, with_token
from saccade.data.tokens.vocabulary import SpecialTokens, Vocabulary
from saccade.errors import DataError
from saccade.metrics.outcomes import read_groups
from saccade.models.caption.captioner import Captioner, CaptionHidden
from saccade.models.caption.show_attend_tell import Baseline
from saccade.tasks.base import (
    Deciding,
    Preparation,
    Progress,
    each_told,
    silent,
    with_vocabulary,
)
from saccade.tasks.captioning.data import (
    Captioned,
    CaptioningSettings,
    read_both,
)
from saccade.tasks.captioning.equalizer import Concern, concern, group_table, terms
from saccade.tasks.captioning.losses import reinforced, uncovered
from saccade.tasks.captioning.regions import Hidden
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy
from saccade.tasks.epochs import batches_of
from saccade.tasks.figures import PER_TOKEN, loss_figures
from saccade.tasks.images import ImageSource, augmentation, digest, some_of_each, varied
from saccade.tasks.kept_texts import KeptTexts
from saccade.tasks.tokenizer import tokenizer_asset

VALIDATED = 100  # images at a time
ROUND = 8  # filled captions are so many words long, or a multiple


class CaptionBatch(NamedTuple):
    """Images, and captions end to end, those of an image side by side; `of` names it.

    `labels` says what follows each word, IGNORED for none; `drawn` are the random numbers by which
    images vary, `asked` is what the Equalizer needs to know.
    """

    images: UInt8[Tensor, "B 3 H W"]
    captions: Rows
    of: Int[Tensor, " R"]
    labels: Int[Tensor, " words"]
    tokens: int
    drawn: Float[Tensor, "B draws"] | None = None
    asked: Concern | None = None

    @property
    def shape(self) -> Hashable:
        captions, asked = self.captions, None if self.asked is None else self.asked.shape
        lengths = captions.shape if captions.rectangular else tuple(captions.lengths.tolist())
        return tuple(self.images.shape), lengths, asked

    def to(self, device: torch.device) -> "CaptionBatch":
        return self._each(lambda x: x.to(device, non_blocking=True), lambda x: x.to(device))

    def pinned(self) -> "CaptionBatch":
        return self._each(lambda x: x.pin_memory(), lambda x: x.pinned())

    def _each(
        self, move: Callable[[Tensor], Tensor], moved: Callable[[Any], Any]
    ) -> "CaptionBatch":
        """With every tensor moved, and what holds tensors."""
        return CaptionBatch(
            move(self.images),
            moved(self.captions),
            move(self.of),
            move(self.labels),
            self.tokens,
            None if self.drawn is None else move(self.drawn),
            None if self.asked is None else moved(self.asked),
        )

    def filled(self) -> "CaptionBatch":
        """All images with as many captions, all captions of one length: nearly all batches then
        have the same few shapes. What is filled in has no label, and no word before it sees it.
        """
        captions, images = self.captions, len(self.images)
        counts = self.of.bincount(minlength=images)
        most, long = int(counts.max()), (int(captions.lengths.max()) // ROUND + 1) * ROUND
        nth = torch.arange(len(self.of)) - (counts.cumsum(0) - counts)[self.of]
        rows = self.of * most + nth  # where each caption goes
        places = rows[captions.sequences] * long + captions.places
        tokens = captions.tokens.new_full((images * most * long,), FILLER)
        labels = torch.full_like(tokens, IGNORED)
        tokens[places], labels[places] = captions.tokens, self.labels
        of = torch.arange(images).repeat_interleave(most)
        filled = Rows.of(tokens, torch.full_like(of, long))
        # The last word of all is never one that counts.
        asked = None if self.asked is None else self.asked.filled(places, len(tokens) - 1)
        return self._replace(captions=filled, of=of, labels=labels, asked=asked)


class Tokens(NamedTuple):
    """Captions as tokens: those of image i are `first[i]` up to `first[i + 1]` of `captions`."""

    images: ImageSource
    captions: Sequences
    first: Int[Tensor, " boundaries"]
    hidden: Hidden | None = None

    def fingerprint(self) -> str:
        """Changes when an image does, or a word, what is said of which image, or is hidden."""
        said_of = hashlib.sha256(self.first.numpy().tobytes()).hexdigest()
        found = f"{self.captions.fingerprint()} {said_of} {digest(self.images)}"
        return found if self.hidden is None else f"{found} {self.hidden.fingerprint()}"

    @property
    def size(self) -> int:
        """How many images there are."""
        return len(self.first) - 1


class Captioning:
    """Implements `Task[CaptionBatch]`. An epoch sees every image once, with some of its captions.

    A batch holds as many images as have the budget's words in their captions on average, in
    any order: images of a kind in a batch would mislead batch norms.
    """

    deciding: Deciding = PER_TOKEN

    def __init__(self, settings: CaptioningSettings, how: Preparation) -> None:
        self.settings, self.seed = settings, how.seed
        train, valid = read_both(settings, how.progress)
        notes = list[str]()
        learnt, held = (KeptTexts(side.captions, how.progress, notes) for side in (train, valid))
        self.vocabulary = learnt.tokenizer(settings, how)
        bounds = (
            how.bound(settings.longest, "--longest"),
            how.bound(10 * settings.longest, "--longest", "ten times "),
        )
        self._train, too_long = encode(
            train, self.vocabulary, longest=bounds[0].tokens, texts=learnt
        )
        self._valid, not_asked = encode(
            valid, self.vocabulary, longest=bounds[1].tokens, texts=held
        )
        self.report = [f"train: {train.report}", f"valid: {valid.report}"]
        self.report += bounds[0].report(too_long, "training captions")
        self.report += [*bounds[1].report(not_asked, "validation captions"), *notes]
        counts = self._train.first.diff().float()
        taken = counts.clamp(max=settings.captions).mean() / counts.mean()
        words = int(self._train.captions.lengths.sum()) + len(self._train.captions)
        images = max(1, round(how.budget * self._train.size / float(words * taken)))
        self._vary = augmentation(settings.augment, settings.image)
        groups = read_groups(settings.equalizer.groups)
        self._groups = group_table(groups, self.vocabulary) if settings.equalizer.asks else None
        self._order = batches_of(torch.arange(self._train.size), images, seed=how.seed)

    @property
    def batches_per_epoch(self) -> int:
        return len(self._order)

    @property
    def padding(self) -> float:
        """Captions lie end to end; models that pad do it themselves."""
        return 0.0

    @property
    def sizes(self) -> str:
        return f"{len(self.vocabulary):,} tokens in the vocabulary"

    def assets(self) -> dict[str, bytes]:
        return tokenizer_asset(self.vocabulary)

    def fit(self, model: ModelConfig) -> ModelConfig:
        return with_vocabulary(model, len(self.vocabulary))

    def fingerprint(self) -> str:
        return " ".join(side.fingerprint() for side in (self._train, self._valid))

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> CaptionBatch:
        rows, counts, epoch = self._order.at(position, shard, shards)
        draws = {"seed": self.seed, "epoch": epoch}
        captions, of = some_of_each(self._train.first, rows, self.settings.captions, **draws)
        images, words = self._train.images[rows], (self._train.captions, captions, of)
        batch = collate(images, *words, self.vocabulary.special, counts=counts)
        drawn = self._vary.draw(rows, **draws)
        return batch._replace(drawn=drawn, asked=self._asked(batch, rows))

    def varied(
        self, images: UInt8[Tensor, "B 3 H W"], drawn: Float[Tensor, "B draws"] | None
    ) -> UInt8[Tensor, "B 3 H W"]:
        return varied(self._vary, images, drawn)

    def _asked(self, batch: CaptionBatch, rows: Int[Tensor, " B"]) -> Concern | None:
        """What the Equalizer needs to know."""
        if self._groups is None:
            return None
        hidden = None if self._train.hidden is None else self._train.hidden[rows]
        return concern(self._groups, batch.captions, batch.of, batch.labels, hidden)

    def losses(self, model: Captioner, batch: CaptionBatch) -> dict[str, Float[Tensor, ""]]:
        """Cross-entropy of each word given those before it and the image, and what else is asked.

            −Σₜ log p(yₜ | y₁ … yₜ₋₁, image) + λ Σᵢ (1 − Σₜ aₜᵢ)² + …

        Terms of a caption as a whole weigh as much as its words do together, as published.
        """
        settings = self.settings
        images = self.varied(batch.images, batch.drawn)
        told: CaptionHidden = model(images, batch.captions, batch.of)
        layer, labels = model.output, batch.labels
        if told.glances is not None:
            baseline: Baseline = model.baseline  # type: ignore[assignment]
            main = reinforced(told, layer, labels, batch.captions, settings.hard, baseline)
        else:
            smoothing = settings.label_smoothing
            main = summed_cross_entropy(told.hidden, layer, labels, smoothing=smoothing)
        losses = {"captions": main}
        if settings.cover and told.looked is not None:
            cover = uncovered(told.looked, labels, batch.captions, settings.cover_by)
            losses["cover"] = settings.cover * cover
        asked = batch.asked
        if asked is not None:
            if asked.hidden is not None:  # they vary just as the others do
                asked = asked._replace(hidden=self.varied(asked.hidden, batch.drawn))
            words = batch.captions, batch.of, labels
            losses["equalizer"] = terms(model, told, *words, asked, settings.equalizer)
        return losses

    def validate(
        self, model: Captioner, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        return loss_figures(
            mean_loss(model, self._valid, self.vocabulary.special, device, progress)
        )


@torch.no_grad()
def mean_loss(
    model: Captioner,
    told: Tokens,
    special: SpecialTokens,
    device: torch.device,
    progress: Progress = silent,
) -> float:
    """Mean loss per word of given captions."""
    total, tokens = 0.0, 0
    for rows in each_told(torch.arange(told.size).split(VALIDATED), progress):
        captions, of = some_of_each(told.first, rows, 1 << 30, seed=0, epoch=0)
        batch = collate(told.images[rows], told.captions, captions, of, special).to(device)
        known = model(batch.images, batch.captions, batch.of).hidden
        total += summed_cross_entropy(known, model.output, batch.labels).item()
        tokens += batch.tokens
    return total / tokens


def encode(
    read: Captioned, vocabulary: Vocabulary, *, longest: int, texts: KeptTexts | None = None
) -> tuple[Tokens, int]:
    """Captions as tokens without those that are too long, and how many those were.

    Images of which nothing is left are left out too. `texts` are the captions, where somebody has
    looked at them before.
    """
    every = (texts or KeptTexts(read.captions)).encode(vocabulary)
    counts = torch.from_numpy(np.fromiter(map(len, read.captions), np.int64, len(read)))
    fits = every.lengths < longest
    kept = torch.arange(len(read)).repeat_interleave(counts)[fits].bincount(minlength=len(read))
    numbers = kept.nonzero()[:, 0]
    if not len(numbers):
        raise DataError(f"no caption has under {longest} tokens; raise --longest")
    first = torch.cat([kept.new_zeros(1), kept[numbers].cumsum(0)])
    read = read if len(numbers) == len(read) else read.only(numbers, "")
    captions = every if bool(fits.all()) else every.where(fits)
    return Tokens(read.images, captions, first, read.hidden), int((~fits).sum())


def collate(
    images: UInt8[Tensor, "B 3 H W"],
    captions: Sequences,
    rows: Int[Tensor, " R"],
    of: Int[Tensor, " R"],
    special: SpecialTokens,
    *,
    counts: bool = True,
) -> CaptionBatch:
    """Put captions end to end, shifted by a start; labels end with an end."""
    words, lengths = captions.take(rows)
    labels = with_token(words, lengths, special.end, first=False)
    shifted = Rows.of(with_token(words, lengths, special.start, first=True), lengths + 1)
    if not counts:
        labels = torch.full_like(labels, IGNORED)
    return CaptionBatch(images, shifted, of, labels, len(labels) if counts else 0)
