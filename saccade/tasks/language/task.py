"""Language modelling: each word predicted from those before it.

Text comes as lines, each a sentence of its own, or as a stream, cut into windows.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from saccade.config import check_fraction, check_positive
from saccade.data import three_sentences
from saccade.data.batches import Batches
from saccade.data.ragged import Ragged
from saccade.data.readers import TextsRead, read_texts, splits
from saccade.data.rows import Rows, with_token
from saccade.data.vocabulary import END, PAD, START, Level, Vocabulary
from saccade.errors import DataError
from saccade.tasks.base import Plan, shard_rows
from saccade.tasks.cross_entropy import summed_cross_entropy

HELD_OUT = 0.1  # the last part of a text without a validation split, as is usual for streams


@dataclass(frozen=True, kw_only=True)
class LanguageSettings:
    """What to learn to write. Without `data`: the lecture's three-sentence world.

    Args:
        data: a text file, or a folder with train, valid and test files (.txt, .jsonl, .parquet).
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

    data: str = ""
    field: str = "text"
    unit: Literal["stream", "lines"] = "stream"
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


class LanguageBatch(NamedTuple):
    """Texts end to end; `labels` says what follows each word, PAD where nobody asks."""

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


def read_language(settings: LanguageSettings, split: str) -> tuple[list[str], str]:
    """The texts of a split and a line about them."""
    if not settings.data:
        count = settings.sentences if split == "train" else 300
        seed = {"train": 0, "valid": 1}.get(split, 2)
        note = f"{count:,} sentences of the three-sentence world, split {split}"
        return three_sentences.sentences(count, seed=seed), note
    if split in ("train", "valid") and "valid" not in splits(Path(settings.data)):
        return _held_out(settings, split)
    read = _read(settings, split)
    return read.texts, read.summary()


def _read(settings: LanguageSettings, split: str) -> TextsRead:
    return read_texts(
        Path(settings.data),
        split,
        field=settings.field,
        whole=settings.unit == "stream",
        skip_bad=settings.skip_bad,
    )


def _held_out(settings: LanguageSettings, split: str) -> tuple[list[str], str]:
    """The last tenth is for validation where the user gave no such split."""
    read = _read(settings, "train")
    texts = read.texts
    if settings.unit == "stream" and len(texts) == 1:
        cut = int(len(texts[0]) * (1 - HELD_OUT))
        texts = [texts[0][:cut] if split == "train" else texts[0][cut:]]
    else:
        cut = int(len(texts) * (1 - HELD_OUT))
        texts = texts[:cut] if split == "train" else texts[cut:]
    if not any(texts):
        raise DataError(f"{read.summary()}: too little to hold a tenth out; add a validation file")
    note = (
        "the last tenth, held out" if split == "valid" else f"{read.summary()}, first nine tenths"
    )
    return texts, note


class Windows:
    """A stream cut into windows, starting elsewhere in each epoch; windows are shuffled."""

    def __init__(self, stream: Int[Tensor, " N"], *, window: int, rows: int, seed: int) -> None:
        self.window = min(window, len(stream) - 1)
        if self.window < 1:
            raise DataError(f"{len(stream)} tokens are too few to learn from")
        self.stream, self.seed = stream, seed
        # One window fewer than fit, so that every epoch has room for its own starting point.
        self.count = max(1, (len(stream) - 1) // self.window - 1)
        self.rows = min(rows, self.count)

    def __len__(self) -> int:
        return self.count // self.rows

    def epoch(self, number: int) -> Int[Tensor, "batches rows"]:
        """Where every window of every batch starts."""
        rng = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        room = len(self.stream) - 1 - self.count * self.window
        offset = int(torch.randint(room + 1, (), generator=rng))
        order = torch.randperm(self.count, generator=rng)[: len(self) * self.rows]
        return (offset + order * self.window).view(len(self), self.rows)

    def batch(
        self, starts: Int[Tensor, " rows"], *, counts: bool, whole: bool = True
    ) -> LanguageBatch:
        index = starts[:, None] + torch.arange(self.window + 1)  # (B, T + 1)
        words = self.stream[index].long()
        lengths = torch.full((len(starts),), self.window)
        rows = Rows.of(words[:, :-1].flatten(), lengths)
        return _batch(rows, words[:, 1:].flatten(), counts=counts)


class Lines:
    """Sentences of their own, from START to END, in batches of similar length."""

    def __init__(self, lines: Ragged, *, budget: int, seed: int, plan: Plan = Batches.plan) -> None:
        self.lines = lines
        self._batches = plan(lines.lengths[:, None] + 1, budget=budget, seed=seed)
        self.padding, self.epoch = self._batches.padding, self._batches.epoch

    def __len__(self) -> int:
        return len(self._batches)

    def batch(
        self, rows: Int[Tensor, " rows"], *, counts: bool, whole: bool = True
    ) -> LanguageBatch:
        """Only a whole batch is filled up to its room: shares of it differ in size."""
        text, lengths = self.lines.take(rows)
        labels = with_token(text, lengths, END, first=False)
        words = with_token(text, lengths, START, first=True)
        rooms = self._batches.rooms
        room = rooms[0] if rooms is not None and whole else None
        return _batch(Rows.of(words, lengths + 1, room=room), labels, counts=counts)


def _batch(words: Rows, labels: Int[Tensor, " words"], *, counts: bool) -> LanguageBatch:
    tokens = len(labels) if counts else 0
    nobody_asks = labels.new_full((len(words.tokens) - tokens,), PAD)
    return LanguageBatch(words, torch.cat([labels[:tokens], nobody_asks]), tokens)


class Language:
    """Implements `Task[LanguageBatch]`."""

    def __init__(
        self,
        settings: LanguageSettings,
        *,
        batch_tokens: int,
        seed: int,
        plan: Plan = Batches.plan,
        vocabulary: Vocabulary | None = None,
    ) -> None:
        self.settings = settings
        (train, about_train), (valid, about_valid) = (
            read_language(settings, split) for split in ("train", "valid")
        )
        self.vocabulary = vocabulary or Vocabulary.train(
            train, level=settings.level, size=settings.vocabulary, lowercase=settings.lowercase
        )
        self.report = [f"train: {about_train}", f"valid: {about_valid}"]
        encoded = self.vocabulary.encode_all(train)
        if settings.unit == "lines":
            encoded = self._short_enough(encoded)
        self._texts = Ragged.of(encoded)
        self._valid = Ragged.of(self.vocabulary.encode_all(valid))
        if settings.unit == "stream":
            rows = max(1, batch_tokens // settings.window)
            self._data: Windows | Lines = Windows(
                stream_of(self._texts), window=settings.window, rows=rows, seed=seed
            )
        else:
            self._data = Lines(self._texts, budget=batch_tokens, seed=seed, plan=plan)
        self._epoch: tuple[int, list[Tensor] | Tensor] = (-1, [])

    def _short_enough(self, lines: list[list[int]]) -> list[list[int]]:
        window = self.settings.window
        kept = [line for line in lines if len(line) < window]
        if len(kept) < len(lines):
            self.report.append(f"left out: {len(lines) - len(kept):,} lines over {window} tokens")
        if not kept:
            raise DataError(f"no line has under {window} tokens; raise --window, or --unit stream")
        return kept

    @property
    def batches_per_epoch(self) -> int:
        return len(self._data)

    @property
    def padding(self) -> float:
        return self._data.padding if isinstance(self._data, Lines) else 0.0

    def fingerprint(self) -> str:
        return f"{self._texts.fingerprint()} {self._valid.fingerprint()}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> LanguageBatch:
        epoch, index = divmod(position, len(self._data))
        if self._epoch[0] != epoch:
            self._epoch = (epoch, self._data.epoch(epoch))
        rows, counts = shard_rows(self._epoch[1][index], shard, shards)
        return self._data.batch(rows, counts=counts, whole=shards == 1)

    def loss(self, model: nn.Module, batch: LanguageBatch) -> Float[Tensor, ""]:
        """Cross-entropy of each word given those before it.

        −Σₜ log p(xₜ | x₁ … xₜ₋₁)
        """
        return _loss(model, batch, self.settings.label_smoothing)

    def validate(self, model: nn.Module, device: torch.device) -> dict[str, float]:
        return self.measure(model, self._valid, device)

    def measure(self, model: nn.Module, texts: Ragged, device: torch.device) -> dict[str, float]:
        """Loss per token and perplexity of some texts."""
        loss = (lines_loss if self.settings.unit == "lines" else stream_loss)(model, texts, device)
        return {"loss": loss, "perplexity": float(torch.tensor(loss).exp())}


def stream_of(texts: Ragged) -> Int[Tensor, " N"]:
    """Documents one after another; END stands between two and thus also begins the next."""
    if len(texts) == 1:
        return texts.flat
    end = torch.tensor([END], dtype=texts.flat.dtype)
    return torch.cat([torch.cat([texts[row].to(end.dtype), end]) for row in range(len(texts))])


@torch.no_grad()
def lines_loss(model: nn.Module, texts: Ragged, device: torch.device) -> float:
    """Mean loss per token of sentences that stand by themselves."""
    lines = Lines(texts, budget=max(8192, int(texts.lengths.max()) + 1), seed=0)
    total, tokens = 0.0, 0
    for rows in lines.epoch(0):
        batch = lines.batch(rows, counts=True).to(device)
        total += _loss(model, batch, 0.0).item()
        tokens += batch.tokens
    return total / tokens


@torch.no_grad()
def stream_loss(model: nn.Module, texts: Ragged, device: torch.device) -> float:
    """Mean loss per token of running text.

    A model without end to its reach carries its state from the first word to the last; one that
    sees `reach` words is given window after window of that many.
    """
    stream = stream_of(texts).long().to(device)
    reach: int | None = model.reach  # type: ignore[assignment]
    window = min(reach or 1024, len(stream) - 1)
    total, state = 0.0, None
    for start in range(0, len(stream) - 1, window):
        words = stream[None, start : start + window + 1]
        if reach is None:
            features, state = model.read(words[:, :-1], state)  # type: ignore[operator]
        else:
            features = model(words[:, :-1])
        logits = model.output(features[0]).float()  # type: ignore[operator]
        total += F.cross_entropy(logits, words[0, 1:], reduction="sum").item()
    return total / (len(stream) - 1)


def _loss(model: nn.Module, batch: LanguageBatch, smoothing: float) -> Tensor:
    known, layer = _features(model, batch.words), model.output
    return summed_cross_entropy(
        known,
        layer,  # type: ignore[arg-type]
        batch.labels[: len(known)],
        smoothing=smoothing,
        ignored=PAD,
    )


def _features(model: nn.Module, words: Rows) -> Float[Tensor, "words D"]:
    """What is known after each word."""
    if getattr(model, "packs", False) and not words.rectangular:
        return model.packed(words)  # type: ignore[operator]
    return words.out_of_rectangle(model(words.padded()))
