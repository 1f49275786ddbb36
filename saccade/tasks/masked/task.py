"""Masked language modelling: hidden words told from those around them (BERT, RoBERTa, ELECTRA).

Devlin et al. 2019, arXiv:1810.04805; Liu et al. 2019, arXiv:1907.11692; Clark et al. 2020,
arXiv:2003.10555. Which of the objectives it is follows the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.config import ModelConfig, check_positive
from saccade.data import lingua
from saccade.data.batching.ragged import Ragged
from saccade.data.tokens.vocabulary import Level, Vocabulary
from saccade.errors import ConfigError, DataError
from saccade.models.protocol import FillsWords, ReplacesWords
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.text_encoder import TextEncoderConfig
from saccade.tasks.base import (
    Deciding,
    LengthBound,
    Preparation,
    Progress,
    TextSettings,
    check_split,
    refuse_without_data,
    silent,
    with_vocabulary,
)
from saccade.tasks.chapters import ChapteredBatches
from saccade.tasks.corpus import prepared_corpus
from saccade.tasks.masked.batch import (
    MaskedBatch,
    MaskedBatches,
    MaskedRows,
    ReadRows,
    held_out_batches,
)
from saccade.tasks.masked.figures import PER_MASKED, masked_figures
from saccade.tasks.masked.framed import EncodedLines, TextFrame, TextRows
from saccade.tasks.masked.losses import LossWeights, replaced_losses, word_losses
from saccade.tasks.masked.masking import Masking
from saccade.tasks.plain_texts import Unit, check_window, read_plain_texts, text_parts
from saccade.tasks.tokenizer import tokenizer_asset

HELD_BACK = 1000  # sentences of lingua to validate and to test on
FIXED = 16  # the streams of random numbers of held-out texts


@dataclass(frozen=True, kw_only=True)
class MaskedSettings(TextSettings):
    """Which texts to hide words of. Without `data`: lingua's English sentences.

    Args:
        data: a text file, or a folder with train, valid and test files (.txt, .jsonl, .parquet).
        field: the column of .jsonl and .parquet files that holds the text.
        unit: every line is a text, or all are a stream that is cut into windows.
        window: tokens of a text at most, start and end counted; longer lines are left out.
        level: tokens are byte pairs trained on the text, words, or characters.
        vocabulary: how many tokens at most.
        lowercase: read everything in lower case.
        masked: share of the words that are hidden.
        whole_words: hide all pieces of a word together.
        next_sentence: read pairs of lines, and also tell whether the second follows the first.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        sentences: how many sentences of lingua to train on.
    """

    budget_unit: ClassVar[str] = "masked words"
    example: ClassVar[str] = '"The old ___ is here."'
    lower_is_better: ClassVar[frozenset[str]] = TextSettings.lower_is_better | {"replaced"}

    field: str = "text"
    unit: Unit = "lines"
    window: int = 128
    level: Level = "bpe"
    vocabulary: int = 8000
    lowercase: bool = False
    masked: float = 0.15
    whole_words: bool = False
    next_sentence: bool = False
    skip_bad: int = 0
    sentences: int = 60_000

    def __post_init__(self) -> None:
        check_positive(self, "window", "vocabulary", "sentences")
        if not 0 < self.masked < 1:
            raise ConfigError(f"masked={self.masked} must be above 0 and below 1, as 0.15")
        if self.next_sentence and self.unit == "stream":
            raise ConfigError("next_sentence is of lines that follow each other; give --unit lines")

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            return f"reading {self.data}"
        return f"making {self.sentences:,} sentences of lingua, some {self.sentences // 4000 + 2} s"

    def check(self, model: ModelConfig) -> None:
        refuse_without_data(self, "next_sentence")
        if isinstance(model, TextEncoderConfig) and not isinstance(model, ElectraConfig):
            replace(model, head="words")  # refuses a model that fills none
        check_window(self, model)
        if self.next_sentence and isinstance(model, ElectraConfig):
            raise ConfigError("an electra learns from single texts; leave --next-sentence out")

    def prepare(self, how: Preparation) -> "MaskedLanguageModelling":
        return MaskedLanguageModelling(self, how)


def read_masked(settings: MaskedSettings, split: str | None) -> tuple[Sequence[str], str]:
    """The texts of a split and a line about them; None is all of a single file."""
    if settings.data:
        return read_plain_texts(settings, split)
    split = check_split(split or "test", lingua.SPLITS, "lingua")
    count = settings.sentences if split == "train" else HELD_BACK
    made = [pair.source for pair in lingua.pairs(split, count)]
    return made, f"{count:,} English sentences of lingua, split {split}"


def masked_rows(
    settings: MaskedSettings,
    vocabulary: Vocabulary,
    texts: Ragged,
    masking: Masking,
    *,
    longest: int,
    seed: int,
) -> MaskedRows:
    """Texts, windows of a stream, or pairs, in the frame that the tokenizer gives them."""
    said = (vocabulary.decode(texts[row].tolist()) for row in range(len(texts)))
    example = next((text for text in said if text and vocabulary.encode(text)), "")
    if not example:
        raise DataError("the texts have no words to learn from")
    frame = TextFrame.of(vocabulary, 2 if settings.next_sentence else 1, example)
    lines = EncodedLines.of_tokens(vocabulary, texts, whole_words=settings.whole_words)
    read: ReadRows = partial(TextRows.singles, lines, frame)
    if settings.next_sentence:
        read = partial(TextRows.pairs, lines, frame, seed=seed)
        read(torch.arange(0))  # refuses too few
    if settings.unit == "stream":
        size = min(settings.window, longest) - frame.special
        if size < 1:
            raise ConfigError(
                f"window={settings.window} leaves no room for words beside {frame.special} "
                f"special tokens; give at least {frame.special + 1}"
            )
        lines = lines.windows(size, vocabulary.end)
        read = partial(TextRows.singles, lines, frame)
    return MaskedRows(
        lines=lines,
        read=read,
        masking=masking,
        # No more than if all were one pair, with an end after each text.
        longest=min(longest, 2 * (len(texts.flat) + len(texts)) + frame.special),
        count=len(lines.tokens) - settings.next_sentence,
        tokens=len(texts.flat),
    )


def fixed_masking(settings: MaskedSettings, vocabulary: Vocabulary) -> Masking:
    """How words of held-out texts are hidden: alike in all runs with this tokenizer."""
    share, whole = settings.masked, settings.whole_words
    return Masking.of(vocabulary, share=share, whole_words=whole, seed=0, stream=FIXED)


class MaskedLanguageModelling:
    """Implements `Task[MaskedBatch]`."""

    deciding: Deciding = PER_MASKED

    def __init__(self, settings: MaskedSettings, how: Preparation) -> None:
        self.settings = settings
        parts = text_parts(settings, read_masked)
        corpus = prepared_corpus(settings, parts, how, masks=True)
        self.vocabulary, train, valid, notes = corpus
        self.report = [f"train: {train.report}", f"valid: {valid.report}", *notes]
        share, whole = settings.masked, settings.whole_words
        masking = Masking.of(self.vocabulary, share=share, whole_words=whole, seed=how.seed)
        self._fixed = fixed_masking(settings, self.vocabulary)
        bound = how.bound(settings.window, "--window")
        self._corpus, (texts,) = train, train.stretch
        rows = masked_rows(
            settings, self.vocabulary, texts, masking, longest=bound.tokens, seed=how.seed
        )
        made_by = settings.masked, whole, settings.unit, settings.window, settings.next_sentence
        batches = train.batches(rows, how, (*made_by, bound.tokens, how.seed), self.report)
        self.report += self._told(batches, rows, bound, "training")
        self._data = MaskedBatches(rows, batches)
        hidden = int(batches.counts["hidden"].sum())
        self._weights = LossWeights(hidden / batches.rows, hidden / batches.tokens)
        reach = how.bound(1 << 30, "")
        held_out = valid.columns[0].end_to_end()
        rows = masked_rows(
            settings, self.vocabulary, held_out, self._fixed, longest=reach.tokens, seed=0
        )
        self._valid = held_out_batches(rows)
        self.report += self._told(self._valid.batches, rows, reach, "validation")

    def _told(
        self, batches: ChapteredBatches, rows: MaskedRows, bound: LengthBound, of: str
    ) -> list[str]:
        """What was left out, for the user; refuses to leave out all."""
        of = f"{of} {'pairs' if self.settings.next_sentence else 'lines'}"
        if batches.left_out == rows.count:
            raise DataError(f"{bound.none_fits(of)}, or give --unit stream")
        if not batches.rows:
            raise DataError(f"none of the {of} has a word that the tokenizer knows")
        return bound.report(batches.left_out, of)

    @property
    def batches_per_epoch(self) -> int:
        return len(self._data)

    @property
    def padding(self) -> float:
        return self._data.batches.padding

    @property
    def sizes(self) -> str:
        return f"{len(self.vocabulary):,} tokens in the vocabulary"

    def assets(self) -> dict[str, bytes]:
        return tokenizer_asset(self.vocabulary)

    def fit(self, model: ModelConfig) -> ModelConfig:
        fitted = with_vocabulary(model, len(self.vocabulary))
        if isinstance(fitted, ElectraConfig) or not isinstance(fitted, TextEncoderConfig):
            return fitted
        return replace(fitted, head="words", next_sentence=self.settings.next_sentence)

    def fingerprint(self) -> str:
        train, valid = (data.texts.lines.tokens for data in (self._data, self._valid))
        if self._corpus.is_large or self.settings.unit == "lines":
            return f"{self._corpus.fingerprint()} {valid.fingerprint()}"
        return f"{train.fingerprint()} {valid.fingerprint()}"

    def batch(self, position: int, *, shard: int = 0, shards: int = 1) -> MaskedBatch:
        return self._data.at(position, shard=shard, shards=shards)

    def losses(
        self, model: FillsWords | ReplacesWords, batch: MaskedBatch
    ) -> dict[str, Float[Tensor, ""]]:
        """Of the hidden words and what follows, or of words that a generator replaced."""
        if isinstance(model, ReplacesWords):
            return replaced_losses(model, batch, self._weights, self._fixed.mask)
        return word_losses(model, batch, self._weights)

    def validate(
        self, model: Any, device: torch.device, progress: Progress = silent
    ) -> dict[str, float]:
        return masked_figures(model, self._valid, device, progress)
