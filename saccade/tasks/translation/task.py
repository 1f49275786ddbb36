"""Translation: pairs of sentences, cross-entropy of the target given the source."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data import lingua
from saccade.data.batching.batches import Batches
from saccade.data.batching.ragged import Sequences
from saccade.data.batching.row_choice import RowChoice
from saccade.data.batching.rows import BatchShape, Rows, with_token
from saccade.data.lingua import AlignedPair, LinguaSettings
from saccade.data.readers import PairsRead, read_pairs, splits, stream_pairs
from saccade.data.tokens.streamed_encoding import encode_ragged
from saccade.data.tokens.vocabulary import Level, SpecialTokens, Vocabulary
from saccade.errors import DataError
from saccade.models.protocol import Packable, TranslationNetwork
from saccade.tasks.base import (
    Deciding,
    LengthBound,
    Preparation,
    Progress,
    Task,
    TextSettings,
    check_split,
    each_told,
    refuse_without_data,
    silent,
    with_vocabulary,
)
from saccade.tasks.corpus import CorpusPart, TextCorpus, prepared_corpus
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy
from saccade.tasks.encoded_corpus import BoundedRows
from saccade.tasks.figures import PER_TOKEN, loss_figures
from saccade.tasks.tokenizer import tokenizer_asset

HELD_OUT = 0.02  # of a corpus without a validation split


@dataclass(frozen=True, kw_only=True)
class TranslationSettings(TextSettings):
    """What to translate, and how text becomes tokens. Without `data`: the built-in lingua.

    Args:
        data: folder of parallel files, or .tsv, .csv, .jsonl, .tmx, .parquet … files; also .gz.
        source: language translated from: a file extension or a column, by name or number; en.
        target: language translated into.
        level: tokens are byte pairs trained on the corpus, words, or characters.
        vocabulary: how many tokens at most.
        lowercase: read everything in lower case.
        longest: training pairs with a side of more tokens are left out and counted; of those for
            validation, pairs of ten times as many.
        label_smoothing: share of the probability spread over all words in the training loss.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        pairs: how many sentences of lingua to train on.
    """

    source: str = ""
    target: str = ""
    level: Level = "bpe"
    vocabulary: int = 8000
    lowercase: bool = False
    longest: int = 200
    label_smoothing: float = 0.1
    skip_bad: int = 0
    pairs: int = 100_000
    lingua: LinguaSettings = field(default_factory=LinguaSettings)

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "longest", "pairs")
        check_fraction(self, "label_smoothing")

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            return f"reading {self.data}"
        return f"making {self.pairs:,} sentence pairs of lingua, some {self.pairs // 4000 + 2} s"

    def check(self, model: ModelConfig) -> None:
        refuse_without_data(self, "source", "target")

    def prepare(self, how: Preparation) -> Task[Any]:
        return Translation(self, how)


Sides = tuple[Sequences, ...]  # source and target


class TranslationBatch(NamedTuple):
    """Sentences end to end; `labels` says what follows each target word, IGNORED for none."""

    source: Rows
    target: Rows
    labels: Int[Tensor, " words"]
    tokens: int

    @property
    def shape(self) -> Hashable:
        return self.source.shape, self.target.shape

    def to(self, device: torch.device) -> "TranslationBatch":
        labels = self.labels.to(device, non_blocking=True)
        return TranslationBatch(self.source.to(device), self.target.to(device), labels, self.tokens)

    def pinned(self) -> "TranslationBatch":
        labels = self.labels.pin_memory()
        return TranslationBatch(self.source.pinned(), self.target.pinned(), labels, self.tokens)


class Corpus(NamedTuple):
    """Pairs of one split; aligned ones where the truth is known."""

    pairs: Sequence[tuple[str, str]]
    aligned: list[AlignedPair]
    report: str


def read_corpus(settings: TranslationSettings, split: str | None) -> Corpus:
    """Pairs of a split of the user's data, or of lingua; None is all of a single file."""
    if not settings.data:
        split = check_split(split or "test", lingua.SPLITS, "lingua")
        count = settings.pairs if split == "train" else 1000
        # Whatever lengths a run learns from, it is tested on all, so that runs can be compared.
        learnt = settings.lingua if split in ("train", "valid") else LinguaSettings()
        aligned = lingua.pairs(split, count, learnt)
        report = f"{count:,} pairs of lingua, split {split}"
        return Corpus([(pair.source, pair.target) for pair in aligned], aligned, report)
    path = Path(settings.data)
    if split is None:
        read = _read(settings, "train")
        return Corpus(read.pairs, [], read.summary())
    known = splits(path, source=settings.source, target=settings.target)
    if split in ("train", "valid") and "valid" not in known:
        return _held_out(_read(settings, "train"), split)
    read = _read(settings, split)
    return Corpus(read.pairs, [], read.summary())


def _read(settings: TranslationSettings, split: str) -> PairsRead:
    return read_pairs(Path(settings.data), split, **pair_options(settings))


def pair_options(settings: TranslationSettings) -> dict[str, Any]:
    """How pairs are read."""
    return {
        "source": settings.source,
        "target": settings.target,
        "skip_bad": settings.skip_bad,
    }


def corpus_parts(settings: TranslationSettings) -> tuple[CorpusPart, CorpusPart]:
    """The same pairs as `read_corpus` gives to train and to validate on, as they stream."""
    if not settings.data:
        train, valid = (_built_in(settings, split) for split in ("train", "valid"))
        return train, valid
    path = Path(settings.data)
    known = splits(path, source=settings.source, target=settings.target)
    train = _streamed(settings, "train")
    if "valid" in known:
        return CorpusPart(train), CorpusPart(_streamed(settings, "valid"))
    every = round(1 / HELD_OUT)
    return (
        CorpusPart(train, "train", RowChoice(every=every), _told_of_train),
        CorpusPart(train, "valid", RowChoice(every=every, those=True), _told_of_valid),
    )


def _streamed(settings: TranslationSettings, split: str) -> TextCorpus:
    stream = stream_pairs(Path(settings.data), split, **pair_options(settings))
    return TextCorpus(stream, iter, "pairs", "pair")


def _built_in(settings: TranslationSettings, split: str) -> CorpusPart:
    pairs, _, report = read_corpus(settings, split)
    return CorpusPart(TextCorpus.in_memory(pairs, split), told=lambda count, whole: report)


def _told_of_train(count: int, whole: str) -> str:
    if not count:
        raise DataError(f"{whole}: too few to hold some out; add a validation file")
    return f"{count:,} of {whole}"


def _told_of_valid(count: int, whole: str) -> str:
    return f"{count:,} held out for validation"


def _held_out(read: PairsRead, split: str) -> Corpus:
    """Every so-and-so-many-th pair is for validation where the user gave no such split."""
    every = round(1 / HELD_OUT)
    kept = [pair for i, pair in enumerate(read.pairs) if (i % every == 0) == (split == "valid")]
    told = _told_of_valid if split == "valid" else _told_of_train
    return Corpus(kept, [], told(len(kept), read.summary()))


class Translation:
    """Implements `Task[TranslationBatch]`."""

    deciding: Deciding = PER_TOKEN

    def __init__(self, settings: TranslationSettings, how: Preparation) -> None:
        self.settings = settings
        parts = corpus_parts(settings)
        corpus = prepared_corpus(settings, parts, how)
        self.vocabulary, train, valid, notes = corpus
        self.report = [f"train: {train.report}", f"valid: {valid.report}", *notes]
        bound = how.bound(settings.longest, "--longest")
        rows = BoundedRows.of(train, bound)
        self._train, self._pairs = train, rows.columns
        self._batches = train.batches(rows, how, bound.tokens, self.report)
        left_out, left = self._batches.left_out, self._batches.rows
        self.report += _told(left_out, left, bound, "training pairs")
        bound = how.bound(10 * settings.longest, "--longest", "ten times ")
        self._valid, told = _short_enough(valid.columns, bound, "validation pairs")
        self.report += told

    @property
    def batches_per_epoch(self) -> int:
        return len(self._batches)

    @property
    def padding(self) -> float:
        return self._batches.padding

    @property
    def sizes(self) -> str:
        return f"{len(self.vocabulary):,} tokens in the vocabulary"

    def assets(self) -> dict[str, bytes]:
        return tokenizer_asset(self.vocabulary)

    def fit(self, model: ModelConfig) -> ModelConfig:
        return with_vocabulary(model, len(self.vocabulary))

    def fingerprint(self) -> str:
        return " ".join(
            [self._train.fingerprint(self._batches), *(side.fingerprint() for side in self._valid)]
        )

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> TranslationBatch:
        rows, counts, _ = self._batches.at(position, shard, shards)
        shapes = self._batches.shapes if shards == 1 else None  # shares differ in size
        return collate(self._pairs, rows, self.vocabulary.special, shapes=shapes, counts=counts)

    def losses(
        self, model: TranslationNetwork, batch: TranslationBatch
    ) -> dict[str, Float[Tensor, ""]]:
        """Cross-entropy of each target word given those before it and the source.

        −Σₜ log p(yₜ | y₁ … yₜ₋₁, x), a share ε of each yₜ spread over the vocabulary
        """
        return {"cross_entropy": _loss(model, batch, self.settings.label_smoothing)}

    def validate(
        self, model: TranslationNetwork, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        total, tokens = _total_loss(model, self._valid, self.vocabulary.special, device, progress)
        return loss_figures(total / tokens)


def _short_enough(
    columns: tuple[Sequences, ...], bound: LengthBound, of: str
) -> tuple[Sides, list[str]]:
    """The pairs of which no side is too long, and a line for the user where any is."""
    longer = torch.stack([column.lengths for column in columns]).amax(dim=0)
    fits = longer < bound.tokens
    told = _told(int((~fits).sum()), int(fits.sum()), bound, of)
    return tuple(column.where(fits) for column in columns), told


def _told(left_out: int, left: int, bound: LengthBound, of: str) -> list[str]:
    """What was left out, for the user; refuses to leave out all."""
    if not left:
        raise DataError(bound.none_fits(of))
    return bound.report(left_out, of)


def _loss(
    model: TranslationNetwork, batch: TranslationBatch, smoothing: float
) -> Float[Tensor, ""]:
    hidden = _hidden(model, batch)
    return summed_cross_entropy(
        hidden, model.output, batch.labels[: len(hidden)], smoothing=smoothing
    )


def _hidden(model: TranslationNetwork, batch: TranslationBatch) -> Float[Tensor, "words D"]:
    """The hidden state at each target word; `output` makes scores of the next word of it."""
    source, target = batch.source, batch.target
    if isinstance(model, Packable) and model.packs:
        return model.packed(source, target)
    rectangle = model(source.padded(), source.lengths, target.padded())  # (B, T, D)
    return target.out_of_rectangle(rectangle)


@torch.no_grad()
def _total_loss(
    model: TranslationNetwork,
    sides: Sides,
    special: SpecialTokens,
    device: torch.device,
    progress: Progress = silent,
) -> tuple[float, int]:
    total, tokens = 0.0, 0
    budget = max(8192, _longest(sides))
    batches = Batches.of_lengths(_lengths(sides), budget=budget, seed=0).epoch(0)
    for rows in each_told(batches, progress):
        batch = collate(sides, rows, special).to(device)
        total += _loss(model, batch, 0.0).item()
        tokens += batch.tokens
    return total, tokens


def pairs_loss(
    model: TranslationNetwork,
    vocabulary: Vocabulary,
    pairs: list[tuple[str, str]],
    device: torch.device,
) -> tuple[float, int]:
    """Loss of given translations, summed over their target tokens, and how many these are."""
    source, target = (encode_ragged(vocabulary, (p[side] for p in pairs)) for side in (0, 1))
    return _total_loss(model, (source, target), vocabulary.special, device)


def _lengths(sides: Sides) -> Int[Tensor, "rows 2"]:
    return torch.stack([side.lengths + 1 for side in sides], dim=1)  # + end, + start


def _longest(sides: Sides) -> int:
    return int((sides[0].lengths + sides[1].lengths).max()) + 2


def encode_source(vocabulary: Vocabulary, text: str) -> Int[Tensor, " S"]:
    """A sentence to be translated, with its end marked."""
    return torch.tensor([*vocabulary.encode(text), vocabulary.end])


def collate(
    sides: Sides,
    rows: Int[Tensor, " B"],
    special: SpecialTokens,
    *,
    shapes: tuple[BatchShape, ...] | None = None,
    counts: bool = True,
) -> TranslationBatch:
    """Put sentences end to end: the source ends with its end, the target is shifted by a start."""
    (source, source_lengths), (target, target_lengths) = (side.take(rows) for side in sides)
    source = with_token(source, source_lengths, special.end, first=False)
    labels = with_token(target, target_lengths, special.end, first=False)
    target = with_token(target, target_lengths, special.start, first=True)
    source_shape, target_shape = (None, None) if shapes is None else shapes
    shifted = Rows.of(target, target_lengths + 1, shape=target_shape)
    tokens = len(labels) if counts else 0
    nobody_asks = labels.new_full((len(shifted.tokens) - tokens,), IGNORED)
    return TranslationBatch(
        source=Rows.of(source, source_lengths + 1, shape=source_shape),
        target=shifted,
        labels=torch.cat([labels[:tokens], nobody_asks]),
        tokens=tokens,
    )
