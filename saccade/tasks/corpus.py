"""A corpus as a task learns from it: read as a stream, encoded once, kept on disk between starts.

What is kept is named by the bytes of the files, by how they are read, and by the tokenizer. Small
corpora are not kept: to encode them takes a second.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers
import torch

from saccade.data.batching.ragged import AT_ONCE, Ragged, token_type
from saccade.data.batching.row_choice import RowChoice
from saccade.data.files.content_digest import content_digest
from saccade.data.files.file_state import recalled, state
from saccade.data.files.whole_folders import sealed_index, whole_folder
from saccade.data.readers import TextStream
from saccade.data.readers.report import counted, joined_names, summary
from saccade.data.tokens.parallel_encoding import encoded_in_parallel, workers
from saccade.data.tokens.streamed_encoding import (
    PIECE,
    TextRow,
    encoded_shards,
    pieces,
    reads_in_pieces,
)
from saccade.data.tokens.text_sample import TextSample, enough_texts
from saccade.data.tokens.token_shards import Shard, TokenShards, token_shards
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError
from saccade.tasks.base import Preparation, Progress
from saccade.tasks.encoded_corpus import EncodedPart, EncodedStream
from saccade.tasks.images import cache_folder
from saccade.tasks.kept_or_told import kept_or_told
from saccade.tasks.running_texts import RunningTexts
from saccade.tasks.tokenizer import TokenizerSettings, given_tokenizer, learnt

VERSION = 1  # of what is kept, and of how it is made
KEPT_FROM = 8_000_000  # bytes of the files of a corpus
PARALLEL_FROM = 50_000_000  # bytes that are worth starting processes for
StoredCorpus = tuple[tuple[Ragged, ...], int, dict[str, Any]]  # and duplicates, and what else


@dataclass(frozen=True)
class TextCorpus:
    """Rows of files, and the texts that each makes: a pair, or one. `form` names how it makes them.

    `noun` is what a row of the files is called. `running` are the same texts where each file is
    one, which may be too long to be held.
    """

    stream: TextStream[Any]
    texts: Callable[[Iterable[Any]], Iterable[TextRow]]
    form: str
    noun: str
    running: RunningTexts | None = None

    def check(self) -> None:
        """Stop if over as many rows are bad as may be."""
        deque(self.stream.good() if self.running is None else self.running.texts, maxlen=0)

    @classmethod
    def in_memory(cls, rows: Sequence[TextRow], name: str) -> "TextCorpus":
        """Of rows that are there already; `name` tells them from others."""
        stream = TextStream((), (name,), lambda: iter(rows), 0, lambda: len(rows))
        return cls(stream, iter, "as they are", "row")


@dataclass(frozen=True)
class CorpusPart:
    """Rows to learn from or to validate on: all of a corpus, or those that `chosen` says.

    `told` makes the line for the user of how many they are and of what is said of the corpus.
    """

    corpus: TextCorpus
    name: str = "all"
    chosen: RowChoice = RowChoice()  # noqa: RUF009
    told: Callable[[int, str], str] = lambda count, whole: whole

    @classmethod
    def in_memory(cls, split: str, texts: Iterable[str], report: str) -> "CorpusPart":
        """Texts that are there already, as those of the built-in worlds, each a row."""
        corpus = TextCorpus.in_memory([(text,) for text in texts], split)
        return cls(corpus, told=lambda count, whole: report)


@dataclass
class CorpusEncoder:
    """Reads each stream once, however many parts are of it; `notes` are lines for the user."""

    vocabulary: Vocabulary
    progress: Progress
    notes: list[str] = field(default_factory=list[str])
    _done: dict[tuple[Any, ...], EncodedStream] = field(
        default_factory=dict[tuple[Any, ...], EncodedStream]
    )

    def encode(self, part: CorpusPart) -> EncodedPart:
        corpus = part.corpus
        key = corpus.stream.paths, corpus.stream.form, corpus.form
        if key not in self._done:
            self._done[key] = self._encoded(corpus)
        whole = self._done[key]
        count = _how_many(whole, part.chosen)
        return EncodedPart(whole, part.chosen, part.told(count, whole.about))

    def _encoded(self, corpus: TextCorpus) -> EncodedStream:
        stream, tokens = corpus.stream, None
        if _is_large(stream):
            tokens = kept_or_told(lambda: self._kept(corpus), "tokens", self.notes)
        columns, duplicates, about = self._in_memory(corpus) if tokens is None else tokens[0]
        if sum(about["skipped"].values()) > stream.skip_bad:
            list(stream.good())  # says which rows are bad
        size, duplicates = counted(about["rows"], corpus.noun), min(duplicates, about["rows"] - 1)
        about = summary(size, stream.names, about["skipped"], duplicates)
        if tokens is None:
            return EncodedStream(columns, about)
        _, kept_as, digests = tokens
        return EncodedStream(columns, about, kept_as, digests)

    def _kept(self, corpus: TextCorpus) -> tuple[StoredCorpus, str, tuple[str, ...]]:
        """With the name by which it is kept, and the digests of its columns."""
        tokenizer = hashlib.sha256(self.vocabulary.to_json().encode()).hexdigest()
        if corpus.running is not None and reads_in_pieces(self.vocabulary):
            home = cache_folder() / f"tokens-{_key(corpus, [tokenizer, 'pieces'])}"
            stored, digests = self._kept_pieces(home, corpus, corpus.running)
            return stored, home.name, digests
        home, good = cache_folder() / f"tokens-{_key(corpus, tokenizer)}", corpus.stream.good()
        kept = self._shards(
            home,
            corpus,
            corpus.texts(good),
            corpus.stream.count,
            lambda: {"rows": good.count, "skipped": good.skipped},
        )
        return (kept.columns, kept.duplicates, kept.about), home.name, kept.digests

    def _kept_pieces(
        self, home: Path, corpus: TextCorpus, running: RunningTexts
    ) -> tuple[StoredCorpus, tuple[str, ...]]:
        """Texts of many rows each: what is kept is of pieces, and which of them begin a text."""
        begins = list[int]()

        def rows() -> Iterator[TextRow]:
            for place, (number, piece) in enumerate(running.pieces()):
                if number == len(begins):
                    begins.append(place)
                yield (piece,)

        def about() -> dict[str, Any]:
            files, skipped = running.good
            return {"rows": len(files), "skipped": skipped, "begins": begins}

        kept = self._shards(home, corpus, rows(), lambda: running.count, about)
        (pieces,) = kept.columns
        starts = torch.tensor([*kept.about["begins"], len(pieces)])
        texts = Ragged(pieces.flat, pieces.starts[starts])
        digest = recalled(home / "texts.json", [home / "tokens-0"], texts.fingerprint)
        return ((texts,), 0, kept.about), (digest,)

    def _shards(
        self,
        home: Path,
        corpus: TextCorpus,
        rows: Iterable[TextRow],
        count: Callable[[], int],
        about: Callable[[], dict[str, Any]],
    ) -> TokenShards:
        """Rows as tokens on disk; `count` says about how many, `about` what else to keep."""
        before = state(corpus.stream.paths)

        def unchanged() -> dict[str, Any]:
            if state(corpus.stream.paths) != before:
                names = joined_names(corpus.stream.names)
                raise DataError(f"{names} changed while it was read; run the same again")
            return about()

        def shards(first: int) -> Iterator[Shard]:
            total, done = count(), first
            size = _bytes_of(corpus.stream)
            for shard in shards_of_tokens(self.vocabulary, rows, first=first, size=size):
                yield shard
                done += len(shard.marks)
                self.progress(min(done, total), total)

        return token_shards(home, token_type(len(self.vocabulary)), shards, unchanged)

    def _in_memory(self, corpus: TextCorpus) -> StoredCorpus:
        good = corpus.stream.good()
        shards = list(encoded_shards(self.vocabulary, corpus.texts(good), first=0))
        columns = tuple(map(Ragged.joined, zip(*(shard.columns for shard in shards))))
        marks = np.concatenate([shard.marks.numpy() for shard in shards])
        duplicates = len(marks) - len(np.unique(marks))
        return columns, duplicates, {"rows": good.count, "skipped": good.skipped}


def _how_many(whole: EncodedStream, chosen: RowChoice) -> int:
    """Rows that are chosen; none where no text of them says anything."""
    column = chosen.stretch(whole.columns[0])
    for first in range(0, len(column), AT_ONCE):  # the first rows that are looked at tell, mostly
        rows = torch.arange(first, min(first + AT_ONCE, len(column)))
        if column.lengths_of(rows[chosen.among(rows)]).any():
            return chosen.count(len(whole.columns[0]))
    return 0


def shards_of_tokens(
    vocabulary: Vocabulary, rows: Iterable[TextRow], *, first: int, size: int
) -> Iterator[Shard]:
    """Rows of so many bytes from number `first` on, encoded by as many processes as is worth it."""
    processes = workers() if size >= PARALLEL_FROM else 1
    if processes == 1:
        return encoded_shards(vocabulary, rows, first=first)
    return encoded_in_parallel(vocabulary, rows, first=first, processes=processes)


class PreparedCorpus(NamedTuple):
    """What is learnt from and what is validated on, as tokens; `notes` are lines for the user."""

    vocabulary: Vocabulary
    train: EncodedPart
    valid: EncodedPart
    notes: list[str]


def prepared_corpus(
    settings: TokenizerSettings,
    parts: tuple[CorpusPart, CorpusPart],
    how: Preparation,
    *,
    masks: bool = False,
) -> PreparedCorpus:
    """A corpus to train and one to validate on, encoded.

    The second comes first: it is small, and what is bad in it is told before minutes have passed.
    """
    train, valid = parts
    vocabulary, notes = corpus_tokenizer(settings, train, how, masks=masks, before=valid)
    encoder = CorpusEncoder(vocabulary, how.progress)
    second, first = encoder.encode(valid), encoder.encode(train)
    return PreparedCorpus(vocabulary, first, second, [*notes, *encoder.notes])


def corpus_tokenizer(
    settings: TokenizerSettings,
    part: CorpusPart,
    how: Preparation,
    *,
    masks: bool = False,
    before: CorpusPart | None = None,
) -> tuple[Vocabulary, list[str]]:
    """The run's own tokenizer, else that of what it starts from, else one learnt from the texts.

    And lines for the user. Bad rows of the part `before` are told of before one is learnt.
    """
    given = given_tokenizer(how)
    if given is not None:
        return given, []
    notes = list[str]()
    if _is_large(part.corpus.stream):
        most = enough_texts(settings.level, settings.vocabulary)
        made_by = settings.level, settings.vocabulary, settings.lowercase, masks, part.name, most
        home = cache_folder() / f"tokenizer-{_key(part.corpus, made_by)}"

        def fill(_: Path) -> dict[str, Any]:
            if before is not None and before.corpus.stream.paths != part.corpus.stream.paths:
                before.corpus.check()
            vocabulary, told = _learnt(settings, part, masks=masks)
            return {"tokenizer": vocabulary.to_json(), "told": told}

        kept = kept_or_told(lambda: whole_folder(home, sealed_index, fill), "a tokenizer", notes)
        if kept is not None:
            return Vocabulary.of_json(kept["tokenizer"]), kept["told"]
    vocabulary, told = _learnt(settings, part, masks=masks)
    return vocabulary, [*notes, *told]


def _learnt(
    settings: TokenizerSettings, part: CorpusPart, *, masks: bool
) -> tuple[Vocabulary, list[str]]:
    if part.corpus.running is not None and _is_large(part.corpus.stream):
        return _learnt_from_pieces(settings, part, part.corpus.running, masks=masks)
    most = enough_texts(settings.level, settings.vocabulary)
    sample = TextSample(part.corpus.texts(part.corpus.stream.good()), most)
    rows = sample.rows
    numbers = torch.tensor([number for number, _ in rows], dtype=torch.long)
    chosen = part.chosen.holds(numbers, sample.total).tolist()
    rows = [row for row, is_chosen in zip(rows, chosen) if is_chosen]
    texts = (piece for _, row in rows for text in row for piece in pieces(text))
    vocabulary = learnt(settings, texts, masks=masks)
    if len(sample.rows) == sample.total:
        return vocabulary, []
    of = counted(sample.total, part.corpus.noun)
    return vocabulary, [f"tokenizer: trained on {len(rows):,} of {of}, drawn by chance"]


def _learnt_from_pieces(
    settings: TokenizerSettings, part: CorpusPart, running: RunningTexts, *, masks: bool
) -> tuple[Vocabulary, list[str]]:
    """The same from texts that are never held."""
    count = len(running.texts)
    chosen = part.chosen.holds(torch.arange(count), count).tolist()
    pieces_of = ((piece,) for number, piece in running.pieces() if chosen[number])
    sample = TextSample(pieces_of, enough_texts(settings.level, settings.vocabulary))
    vocabulary = learnt(settings, (text for _, row in sample.rows for text in row), masks=masks)
    if len(sample.rows) == sample.total:
        return vocabulary, []
    of = f"{sample.total:,} pieces of {PIECE:,} characters"
    return vocabulary, [f"tokenizer: trained on {len(sample.rows):,} of {of}, drawn by chance"]


def _is_large(stream: TextStream[Any]) -> bool:
    return _bytes_of(stream) >= KEPT_FROM


def _bytes_of(stream: TextStream[Any]) -> int:
    return sum(path.stat().st_size for path in stream.paths)


def _key(corpus: TextCorpus, tokenizer: Any) -> str:
    """What tokens depend on."""
    content = content_digest(corpus.stream.paths, cache_folder())
    form = corpus.stream.form, corpus.form
    made_by = [VERSION, tokenizers.__version__, form, tokenizer, content]
    return hashlib.sha256(json.dumps(made_by).encode()).hexdigest()[:32]
