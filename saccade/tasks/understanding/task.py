"""Understanding: texts or pairs of them, what is true of each, and how far the model is from it."""

import hashlib
import json
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig
from saccade.data.batching.rows import BatchShape, Rows
from saccade.data.images.counter_random import uniform
from saccade.errors import ConfigError, DataError
from saccade.models.protocol import ScoresTexts
from saccade.models.text.text_encoder import TextEncoderConfig
from saccade.tasks.base import Preparation, Progress, silent
from saccade.tasks.epochs import epoch_order
from saccade.tasks.tokenizer import tokenizer_asset, trained_tokenizer
from saccade.tasks.understanding.data import (
    TextSplit,
    UnderstandingSettings,
    every_text,
    few_of,
    read_split,
    with_labels,
)
from saccade.tasks.understanding.encode import NO_PIECE, EncodedTexts
from saccade.tasks.understanding.figures import deciding_of, held_out_figures
from saccade.tasks.understanding.kept import encoded_texts
from saccade.tasks.understanding.labels import ASSET, as_tensor
from saccade.tasks.understanding.losses import LOSSES
from saccade.tasks.understanding.scores import text_scores


class TextsBatch(NamedTuple):
    """Texts end to end, and what is true of each sequence, or of each token.

    `counts` is 1 where that is asked for, and 0 at what only fills a shape.
    """

    words: Rows
    types: Int[Tensor, " words"]
    targets: Tensor
    counts: Float[Tensor, " n"]
    tokens: int

    @property
    def shape(self) -> Hashable:
        return self.words.shape

    def to(self, device: torch.device) -> "TextsBatch":
        return self._each(self.words.to(device), lambda x: x.to(device, non_blocking=True))

    def pinned(self) -> "TextsBatch":
        return self._each(self.words.pinned(), lambda x: x.pin_memory())

    def _each(self, words: Rows, move: Callable[[Tensor], Tensor]) -> "TextsBatch":
        types, targets, counts = move(self.types), move(self.targets), move(self.counts)
        return TextsBatch(words, types, targets, counts, self.tokens)


ORDER = 1 << 22  # the stream of draws that turn pairs round


class LabelledTexts(NamedTuple):
    """The texts of a split as tokens, and what is true of each.

    Where pairs are read in either order, those that are turned round follow the others.
    """

    texts: EncodedTexts
    targets: list[Any]

    def fingerprint(self) -> str:
        """Changes when a token does, or what is true of a text."""
        truth = hashlib.sha256(json.dumps(self.targets).encode()).hexdigest()
        return f"{self.texts.tokens.fingerprint()} {self.texts.words.fingerprint()} {truth}"


class Understanding:
    """Implements `Task[TextsBatch]`."""

    def __init__(self, settings: UnderstandingSettings, how: Preparation) -> None:
        self.settings, self.seed, self._progress = settings, how.seed, how.progress
        whole = with_labels(read_split(settings, "train"))
        self.labels = whole.labels
        _check_labels(whole)
        _check_order(whole, settings)
        valid = with_labels(read_split(settings, "valid", self.labels))
        train = few_of(whole, settings.labelled)
        # The tokenizer learns from all texts: only what is true of them is scarce.
        self.vocabulary = trained_tokenizer(settings, every_text(whole.rows), how)
        self.report = [f"train: {train.report}", f"valid: {valid.report}"]
        bound = how.bound(settings.longest, "--longest")
        self._train, self._valid = (
            self._encoded(split, name, bound.tokens, bound.option)
            for split, name in ((train, "training"), (valid, "validation"))
        )
        self.deciding = deciding_of(self.labels)
        lengths = self._train.texts.tokens.lengths[: len(train.rows), None]
        self._batches = how.make_batching(lengths, budget=how.budget, seed=how.seed)
        self._order = epoch_order(len(self._batches), self._batches.epoch)

    def _encoded(self, split: TextSplit, name: str, longest: int, option: str) -> LabelledTexts:
        texts, words = [row.texts for row in split.rows], [row.words for row in split.rows]
        if self.settings.either_order and name == "training":
            texts += [text[::-1] for text in texts]
        tagged = words if self.labels.kind == "tags" else ()
        found = encoded_texts(
            self.vocabulary,
            texts,
            tagged,
            longest=longest,
            progress=self._progress,
            notes=self.report,
        )
        cut = sum(number < len(split.rows) for number in found.cut)
        if cut:
            self.report.append(
                f"cut: {cut:,} of the {name} texts, which have over {longest:,} tokens ({option})"
            )
        return LabelledTexts(found, self.labels.targets(split.rows, name))

    @property
    def batches_per_epoch(self) -> int:
        return len(self._batches)

    @property
    def padding(self) -> float:
        return self._batches.padding

    @property
    def sizes(self) -> str:
        tokens = f"{len(self.vocabulary):,} tokens in the vocabulary"
        if self.labels.kind == "number":
            return f"{tokens}, one number"
        return f"{tokens}, {len(self.labels.names):,} {self.labels.kind}"

    def assets(self) -> dict[str, bytes]:
        return {**tokenizer_asset(self.vocabulary), ASSET: self.labels.to_json()}

    def fit(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, TextEncoderConfig)
        labels = self.labels
        sizes: dict[str, Any] = {"vocabulary": len(self.vocabulary), "labels": labels.width}
        return replace(model, head=labels.head, **sizes)

    def fingerprint(self) -> str:
        return f"{self._train.fingerprint()} {self._valid.fingerprint()}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> TextsBatch:
        rows, counts, epoch = self._order.at(position, shard, shards)
        shapes = self._batches.shapes
        shape = shapes[0] if shapes is not None and shards == 1 else None
        turned = self._turned(rows, epoch) if self.settings.either_order else rows
        return self._batch(rows, turned, counts=counts, shape=shape)

    def _turned(self, rows: Int[Tensor, " B"], epoch: int) -> Int[Tensor, " B"]:
        """Half of the pairs turned round, others in each epoch."""
        draws = uniform(rows, 1, seed=self.seed, epoch=epoch, stream=ORDER)[:, 0]
        return rows + (draws < 0.5) * len(self._train.targets)

    def _batch(
        self,
        chosen: Int[Tensor, " B"],
        read: Int[Tensor, " B"],
        *,
        counts: bool,
        shape: BatchShape | None,
    ) -> TextsBatch:
        """What is true, and where it is asked for, at as many places as the model has scores."""
        words, types = self._train.texts.rows(read, shape)
        truth = as_tensor(self.labels.kind, [self._train.targets[i] for i in chosen.tolist()])
        if self.labels.kind == "tags":
            places, _ = self._train.texts.word_heads(chosen)
            there = places != NO_PIECE
            truth, places, count = truth[there], places[there], len(words.tokens)
        else:
            places, count = torch.arange(len(chosen)), len(words.starts) - 1
        targets = truth.new_zeros(count, *truth.shape[1:]).index_copy(0, places, truth)
        asked = torch.zeros(count).index_fill(0, places, float(counts))
        return TextsBatch(words, types, targets, asked, int(asked.sum()))

    def losses(self, model: ScoresTexts, batch: TextsBatch) -> dict[str, Float[Tensor, ""]]:
        """How far the scores z are from what is true.

        classes, tags:  −log softmax(z)_y, of tags at the first piece of each word
        number:         (z − y)², y with the mean and the deviation of the training data taken out
        labels:         −mean_c [y_c log σ(z_c) + (1 − y_c) log (1 − σ(z_c))]
        """
        scores = model.scores(model(batch.words, batch.types), batch.words).float()
        loss = LOSSES[self.labels.kind]
        each = loss(scores, batch.targets, self.settings.label_smoothing)
        return {self.labels.kind: (each * batch.counts.to(each)).sum()}

    def validate(
        self, model: ScoresTexts, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        scores = text_scores(model, self._valid.texts, self.labels, device, progress)
        return held_out_figures(self.labels, scores, self._valid.targets)


def _check_order(read: TextSplit, settings: UnderstandingSettings) -> None:
    if settings.either_order and not read.labels.pairs:
        raise ConfigError(
            f"either_order is of pairs of texts, and {read.report} has single ones; leave "
            "--either-order out"
        )


def _check_labels(read: TextSplit) -> None:
    names = read.labels.names
    if read.labels.kind == "classes" and len(names) < 2:
        told = ", ".join(names) or "none"
        raise DataError(
            f"{read.report}: a single class ({told}) leaves nothing to tell apart; give rows with "
            "different labels, or name their column with --label"
        )
