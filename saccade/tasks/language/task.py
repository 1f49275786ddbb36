"""Language modelling: each word predicted from those before it.

Text comes as lines, each a sentence of its own, or as a stream, cut into windows.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data import three_sentences
from saccade.data.batching.batches import Batches, epoch_draws
from saccade.data.batching.ragged import Sequences
from saccade.data.batching.rows import Rows, with_token
from saccade.data.tokens.vocabulary import Level, SpecialTokens
from saccade.errors import DataError
from saccade.models.protocol import LanguageNetwork, Packable
from saccade.tasks.base import (
    Deciding,
    LengthBound,
    MakeBatching,
    Preparation,
    Progress,
    TextSettings,
    check_split,
    each_told,
    silent,
    with_vocabulary,
)
from saccade.tasks.corpus import prepared_corpus
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy
from saccade.tasks.epochs import EpochOrder
from saccade.tasks.figures import PER_TOKEN, loss_figures
from saccade.tasks.language.token_stream import TokenStream
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
        self.rows = min(rows, self.count)

    def __len__(self) -> int:
        return self.count // self.rows

    def epoch(self, number: int) -> Int[Tensor, "batches rows"]:
        """Where every window of every batch starts."""
        rng = epoch_draws(self.seed, number)
        spare = len(self.stream) - 1 - self.count * self.window
        offset = int(torch.randint(spare + 1, (), generator=rng))
        order = torch.randperm(self.count, generator=rng)[: len(self) * self.rows]
        return (offset + order * self.window).view(len(self), self.rows)

    def batch(
        self, starts: Int[Tensor, " rows"], *, counts: bool, whole: bool = True
    ) -> LanguageBatch:
        index = starts[:, None] + torch.arange(self.window + 1)  # (B, T + 1)
        words = self.stream.at(index)
        lengths = torch.full((len(starts),), self.window)
        rows = Rows.of(words[:, :-1].flatten(), lengths)
        return _batch(rows, words[:, 1:].flatten(), counts=counts)


class Sentences:
    """Lines, each a sentence of its own from start to end, in batches of similar length."""

    def __init__(
        self,
        lines: Sequences,
        special: SpecialTokens,
        *,
        budget: int,
        seed: int,
        make_batching: MakeBatching = Batches.of_lengths,
    ) -> None:
        self.lines, self.special = lines, special
        self._batches = make_batching(lines.lengths[:, None] + 1, budget=budget, seed=seed)
        self.padding, self.epoch = self._batches.padding, self._batches.epoch

    def __len__(self) -> int:
        return len(self._batches)

    def batch(
        self, rows: Int[Tensor, " rows"], *, counts: bool, whole: bool = True
    ) -> LanguageBatch:
        """Only a whole batch is filled up to its shape: shares of it differ in size."""
        text, lengths = self.lines.take(rows)
        labels = with_token(text, lengths, self.special.end, first=False)
        words = with_token(text, lengths, self.special.start, first=True)
        shapes = self._batches.shapes
        shape = shapes[0] if shapes is not None and whole else None
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
        (self._texts,), (self._valid,) = train.columns, valid.columns
        if settings.unit == "lines":
            bounds = how.bound(settings.window, "--window"), how.bound(1 << 30, "")
            self._texts = self._short_enough(self._texts, bounds[0], "training lines")
            self._valid = self._short_enough(self._valid, bounds[1], "validation lines")
        if settings.unit == "stream":
            stream = TokenStream(self._texts, self.vocabulary.end)
            _require_next_word(TokenStream(self._valid, self.vocabulary.end))
            rows = max(1, how.budget // settings.window)
            self._data: Windows | Sentences = Windows(
                stream, window=settings.window, rows=rows, seed=how.seed
            )
        else:
            batching: dict[str, Any] = {"budget": how.budget, "seed": how.seed}
            self._data = Sentences(
                self._texts, self.vocabulary.special, **batching, make_batching=how.make_batching
            )
        self._order = EpochOrder(len(self._data), self._data.epoch)

    def _short_enough(self, lines: Sequences, bound: LengthBound, of: str) -> Sequences:
        short = lines.lengths < bound.tokens
        self.report += bound.report(int((~short).sum()), of)
        if not short.any():
            raise DataError(f"{bound.none_fits(of)}, or give --unit stream")
        return lines.where(short)

    @property
    def batches_per_epoch(self) -> int:
        return len(self._data)

    @property
    def padding(self) -> float:
        return self._data.padding if isinstance(self._data, Sentences) else 0.0

    @property
    def sizes(self) -> str:
        return f"{len(self.vocabulary):,} tokens in the vocabulary"

    def assets(self) -> dict[str, bytes]:
        return tokenizer_asset(self.vocabulary)

    def fit(self, model: ModelConfig) -> ModelConfig:
        return with_vocabulary(model, len(self.vocabulary))

    def fingerprint(self) -> str:
        return f"{self._texts.fingerprint()} {self._valid.fingerprint()}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> LanguageBatch:
        rows, counts, _ = self._order.at(position, shard, shards)
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
    lines = Sentences(texts, special, budget=max(8192, int(texts.lengths.max()) + 1), seed=0)
    total, tokens = 0.0, 0
    for rows in each_told(lines.epoch(0), progress):
        batch = lines.batch(rows, counts=True).to(device)
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
        places = torch.arange(start, min(start + window + 1, len(stream)))
        words = stream.at(places)[None].to(device)
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
