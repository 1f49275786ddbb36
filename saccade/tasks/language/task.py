"""Language modelling: each word predicted from those before it.

Text comes as lines, each a sentence of its own, or as a stream, cut into windows.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data import three_sentences
from saccade.data.batching.batches import Batches, epoch_draws
from saccade.data.batching.ragged import Sequences
from saccade.data.batching.rows import BatchShape, Rows, with_token
from saccade.data.batching.token_stream import TokenStream
from saccade.data.tokens.vocabulary import Level, SpecialTokens
from saccade.errors import DataError
from saccade.models.protocol import LanguageNetwork, Packable
from saccade.tasks.base import (
    Deciding,
    LengthBound,
    Preparation,
    Progress,
    TextSettings,
    check_split,
    each_told,
    silent,
    with_vocabulary,
)
from saccade.tasks.chapters import (
    ChapteredBatches,
    chapters_of,
    count_of_chapter,
    rows_of_chapter,
)
from saccade.tasks.corpus import prepared_corpus
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy
from saccade.tasks.encoded_corpus import BoundedRows
from saccade.tasks.epochs import ChapterOrder
from saccade.tasks.figures import PER_TOKEN, loss_figures
from saccade.tasks.plain_texts import (
    Unit,
    check_window,
    read_plain_texts,
    text_parts,
)
from saccade.tasks.tokenizer import learnt, tokenizer_asset


@dataclass(frozen=True, kw_only=True)
class LanguageSettings(TextSettings):
    """What to learn to write. Without `data`: the lecture's three-sentence world.

    Args:
        data: a text file, or a folder of train, valid, test files (.txt, .jsonl, .parquet, .tar).
        field: the column of .jsonl and .parquet files that holds the text.
        unit: a text is a stream of words cut into windows, or every line is a sentence.
        window: words of a stream that are learnt together; longer lines are left out and counted.
        level: tokens are byte pairs trained on the text, words, or characters.
        vocabulary: how many tokens at most.
        lowercase: read everything in lower case.
        label_smoothing: share of the probability spread over all words in the training loss.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        sentences: how many sentences of the built-in world to train on.
    """

    field: str = "text"
    unit: Unit = "stream"
    window: int = 256
    level: Level = "bpe"
    vocabulary: int = 8000
    lowercase: bool = False
    label_smoothing: float = 0.0
    skip_bad: int = 0
    sentences: int = 3000

    def __post_init__(self) -> None:
        check_positive(self, "window", "vocabulary", "sentences")
        check_fraction(self, "label_smoothing")

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        return f"reading {self.data}" if self.data else "making sentences of the built-in world"

    def check(self, model: ModelConfig) -> None:
        check_window(self, model)

    def fitted_sizes(self) -> dict[str, int]:
        if self.data:
            return super().fitted_sizes()
        return {"vocabulary": len(learnt(self, read_language(self, "train")[0]))}

    def prepare(self, how: Preparation) -> "LanguageModelling":
        return LanguageModelling(self, how)


class LanguageBatch(NamedTuple):
    """Texts end to end; `labels` says what follows each word, IGNORED where nobody asks."""

    words: Rows
    labels: Int[Tensor, " words"]
    tokens: int

    @property
    def shape(self) -> Hashable:
        return self.words.shape

    def to(self, device: torch.device) -> "LanguageBatch":
        labels = self.labels.to(device, non_blocking=True)
        return LanguageBatch(self.words.to(device), labels, self.tokens)

    def pinned(self) -> "LanguageBatch":
        return LanguageBatch(self.words.pinned(), self.labels.pin_memory(), self.tokens)


def read_language(settings: LanguageSettings, split: str | None) -> tuple[Sequence[str], str]:
    """The texts of a split and a line about them; None is all of a single file."""
    if not settings.data:
        seeds = {"train": 0, "valid": 1, "test": 2}
        split = check_split(split or "test", seeds, "the three-sentence world")
        count, seed = settings.sentences if split == "train" else 300, seeds[split]
        note = f"{count:,} sentences of the three-sentence world, split {split}"
        return three_sentences.sentences(count, seed=seed), note
    return read_plain_texts(settings, split)


class Windows:
    """A stream cut into windows, starting elsewhere in each epoch; windows are shuffled."""

    def __init__(self, stream: TokenStream, *, window: int, rows: int, seed: int) -> None:
        self.window = min(window, len(stream) - 1)
        if self.window < 1:
            raise DataError(f"{len(stream)} tokens are too few to learn from; give a longer text")
        self.stream, self.seed = stream, seed
        # One window fewer than fit, so that every epoch has room for its own starting point.
        self.count = max(1, (len(stream) - 1) // self.window - 1)
        self._chapters = chapters_of(self.count)
        windows = [
            count_of_chapter(self.count, number, self._chapters) for number in range(self._chapters)
        ]
        self.rows = min(rows, *windows)
        self._order = ChapterOrder([n // self.rows for n in windows], self._epoch, seed=seed)

    def __len__(self) -> int:
        return len(self._order)

    def at(self, position: int, shard: int, shards: int) -> tuple[Int[Tensor, " rows"], bool, int]:
        """Where every window of a batch starts."""
        return self._order.at(position, shard, shards)

    def _epoch(self, number: int, chapter: int) -> Int[Tensor, "batches rows"]:
        """Those of every batch of a chapter."""
        rng = epoch_draws(self.seed, number)
        spare = len(self.stream) - 1 - self.count * self.window
        offset = int(torch.randint(spare + 1, (), generator=rng))
        windows = rows_of_chapter(self.count, chapter, self._chapters)
        batches = len(windows) // self.rows
        order = windows[torch.randperm(len(windows), generator=rng)[: batches * self.rows]]
        return (offset + order * self.window).view(batches, self.rows)

    def batch(
        self, starts: Int[Tensor, " rows"], *, counts: bool, whole: bool = True
    ) -> LanguageBatch:
        runs = self.stream.take(starts, torch.full_like(starts, self.window + 1))
        words = runs.unflatten(0, (len(starts), -1))  # (B, T + 1)
        lengths = torch.full((len(starts),), self.window)
        rows = Rows.of(words[:, :-1].flatten(), lengths)
        return _batch(rows, words[:, 1:].flatten(), counts=counts)


class Sentences:
    """Lines, each a sentence of its own from start to end, in batches of similar length."""

    def __init__(self, lines: Sequences, special: SpecialTokens, batches: ChapteredBatches) -> None:
        self.lines, self.special, self.batches = lines, special, batches

    def __len__(self) -> int:
        return len(self.batches)

    def at(self, position: int, shard: int, shards: int) -> tuple[Int[Tensor, " rows"], bool, int]:
        """Which lines a batch has."""
        return self.batches.at(position, shard, shards)

    def batch(
        self, rows: Int[Tensor, " rows"], *, counts: bool, whole: bool = True
    ) -> LanguageBatch:
        """Only a whole batch is filled up to its shape: shares of it differ in size."""
        shapes = self.batches.shapes
        shape = shapes[0] if shapes is not None and whole else None
        return lines_batch(self.lines, rows, self.special, shape=shape, counts=counts)


def lines_batch(
    lines: Sequences,
    rows: Int[Tensor, " rows"],
    special: SpecialTokens,
    *,
    shape: BatchShape | None = None,
    counts: bool = True,
) -> LanguageBatch:
    """Lines end to end, each after a start; what follows its last word is the end."""
    text, lengths = lines.take(rows)
    labels = with_token(text, lengths, special.end, first=False)
    words = with_token(text, lengths, special.start, first=True)
    return _batch(Rows.of(words, lengths + 1, shape=shape), labels, counts=counts)


def _batch(words: Rows, labels: Int[Tensor, " words"], *, counts: bool) -> LanguageBatch:
    tokens = len(labels) if counts else 0
    nobody_asks = labels.new_full((len(words.tokens) - tokens,), IGNORED)
    return LanguageBatch(words, torch.cat([labels[:tokens], nobody_asks]), tokens)


class LanguageModelling:
    """Implements `Task[LanguageBatch]`."""

    deciding: Deciding = PER_TOKEN

    def __init__(self, settings: LanguageSettings, how: Preparation) -> None:
        self.settings = settings
        parts = text_parts(settings, read_language)
        corpus = prepared_corpus(settings, parts, how)
        self.vocabulary, train, valid, notes = corpus
        self.report = [f"train: {train.report}", f"valid: {valid.report}", *notes]
        self._train, (texts,), (self._valid,) = train, train.stretch, valid.columns
        self._data: Windows | Sentences
        if settings.unit == "stream":
            stream = TokenStream(texts, self.vocabulary.end)
            _require_next_word(TokenStream(self._valid, self.vocabulary.end))
            rows = max(1, how.budget // settings.window)
            self._data = Windows(stream, window=settings.window, rows=rows, seed=how.seed)
            return
        bound, reach = how.bound(settings.window, "--window"), how.bound(1 << 30, "")
        batches = train.batches(BoundedRows.of(train, bound), how, bound.tokens, self.report)
        self.report += _told(batches.left_out, batches.rows, bound, "training lines")
        self._data = Sentences(texts, self.vocabulary.special, batches)
        short = self._valid.lengths < reach.tokens
        self.report += _told(int((~short).sum()), int(short.sum()), reach, "validation lines")
        self._valid = self._valid.where(short)

    @property
    def batches_per_epoch(self) -> int:
        return len(self._data)

    @property
    def padding(self) -> float:
        return self._data.batches.padding if isinstance(self._data, Sentences) else 0.0

    @property
    def sizes(self) -> str:
        return f"{len(self.vocabulary):,} tokens in the vocabulary"

    def assets(self) -> dict[str, bytes]:
        return tokenizer_asset(self.vocabulary)

    def fit(self, model: ModelConfig) -> ModelConfig:
        return with_vocabulary(model, len(self.vocabulary))

    def fingerprint(self) -> str:
        batches = self._data.batches if isinstance(self._data, Sentences) else None
        return f"{self._train.fingerprint(batches)} {self._valid.fingerprint()}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> LanguageBatch:
        rows, counts, _ = self._data.at(position, shard, shards)
        return self._data.batch(rows, counts=counts, whole=shards == 1)

    def losses(self, model: LanguageNetwork, batch: LanguageBatch) -> dict[str, Float[Tensor, ""]]:
        """Cross-entropy of each word given those before it.

        −Σₜ log p(xₜ | x₁ … xₜ₋₁)
        """
        return {"cross_entropy": _loss(model, batch, self.settings.label_smoothing)}

    def validate(
        self, model: LanguageNetwork, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        special = self.vocabulary.special
        unit = self.settings.unit
        return loss_figures(texts_loss(model, self._valid, special, unit, device, progress))


def _told(left_out: int, left: int, bound: LengthBound, of: str) -> list[str]:
    """What was left out, for the user; refuses to leave out all."""
    if not left:
        raise DataError(f"{bound.none_fits(of)}, or give --unit stream")
    return bound.report(left_out, of)


def texts_loss(
    model: LanguageNetwork,
    texts: Sequences,
    special: SpecialTokens,
    unit: Unit,
    device: torch.device,
    progress: Progress = silent,
) -> float:
    """Mean loss per token."""
    if unit == "lines":
        return _lines_loss(model, texts, special, device, progress)
    stream = TokenStream(texts, special.end)
    _require_next_word(stream)
    return _stream_loss(model, stream, device, progress)


def _require_next_word(stream: TokenStream) -> None:
    if len(stream) < 2:
        raise DataError(
            f"{len(stream)} tokens are too few to validate on; give a longer text, or a "
            "validation file"
        )


@torch.no_grad()
def _lines_loss(
    model: LanguageNetwork,
    texts: Sequences,
    special: SpecialTokens,
    device: torch.device,
    progress: Progress,
) -> float:
    lengths = texts.lengths[:, None] + 1
    batches = Batches.of_lengths(lengths, budget=max(8192, int(lengths.max())), seed=0)
    total, tokens = 0.0, 0
    for rows in each_told(batches.epoch(0), progress):
        batch = lines_batch(texts, rows, special).to(device)
        total += _loss(model, batch, 0.0).item()
        tokens += batch.tokens
    return total / tokens


@torch.no_grad()
def _stream_loss(
    model: LanguageNetwork, stream: TokenStream, device: torch.device, progress: Progress
) -> float:
    """Of running text.

    A model without end to its reach carries its state from the first word to the last; one that
    sees `reach` words is given window after window of that many.
    """
    reach = model.reach
    window = min(reach or 1024, len(stream) - 1)
    total, state = 0.0, None
    for start in each_told(range(0, len(stream) - 1, window), progress):
        length = min(window + 1, len(stream) - start)
        words = stream.take(torch.tensor([start]), torch.tensor([length]))[None].to(device)
        if reach is None:
            hidden, state = model.read(words[:, :-1], state)
        else:
            hidden = model(words[:, :-1])
        logits = model.output(hidden[0]).float()
        total += F.cross_entropy(logits, words[0, 1:], reduction="sum").item()
    return total / (len(stream) - 1)


def _loss(model: LanguageNetwork, batch: LanguageBatch, smoothing: float) -> Tensor:
    hidden = _hidden(model, batch.words)
    labels = batch.labels[: len(hidden)]
    return summed_cross_entropy(hidden, model.output, labels, smoothing=smoothing)


def _hidden(model: LanguageNetwork, words: Rows) -> Float[Tensor, "words D"]:
    """The hidden state at each word."""
    if isinstance(model, Packable) and model.packs and not words.rectangular:
        return model.packed(words)
    return words.out_of_rectangle(model(words.padded()))
