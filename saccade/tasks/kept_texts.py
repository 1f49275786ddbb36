"""Texts about images: a tokenizer learnt from them and their tokens, kept where there are many.

What is kept is named by the texts themselves, so it is all one in which files they came.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from saccade.data.batching.ragged import Ragged, token_type
from saccade.data.files.whole_folders import sealed_index, whole_folder
from saccade.data.tokens.streamed_encoding import TextRow, encode_ragged
from saccade.data.tokens.token_shards import Shard, token_shards
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.base import Preparation, Progress, silent
from saccade.tasks.corpus import KEPT_FROM, shards_of_tokens
from saccade.tasks.images import cache_folder
from saccade.tasks.kept_or_told import kept_or_told
from saccade.tasks.tokenizer import TokenizerSettings, given_tokenizer, learnt

VERSION = 1  # of what is kept, and of how it is made


@dataclass
class KeptTexts:
    """The texts about each image; `notes` are lines for the user."""

    about: Sequence[tuple[str, ...]]
    progress: Progress = silent
    notes: list[str] = field(default_factory=list[str])

    def tokenizer(
        self, settings: TokenizerSettings, how: Preparation, *, masks: bool = False
    ) -> Vocabulary:
        """The run's own, else that of what it starts from, else one learnt from these texts."""
        given = given_tokenizer(how)
        if given is not None:
            return given
        size, content = self._content
        made_by = settings.level, settings.vocabulary, settings.lowercase, masks

        def fill(_: Path) -> dict[str, Any]:
            return {"tokenizer": learnt(settings, self._each(), masks=masks).to_json()}

        kept = None
        if size >= KEPT_FROM:
            home = cache_folder() / f"tokenizer-{_key(made_by, content)}"
            kept = kept_or_told(
                lambda: whole_folder(home, sealed_index, fill), "a tokenizer", self.notes
            )
        if kept is None:
            return learnt(settings, self._each(), masks=masks)
        return Vocabulary.of_json(kept["tokenizer"])

    def encode(self, vocabulary: Vocabulary) -> Ragged:
        """All texts one after another, whatever images they are about."""
        size, content = self._content
        kept = None
        if size >= KEPT_FROM:
            home = cache_folder() / f"tokens-{_key(vocabulary.to_json(), content)}"
            kept = kept_or_told(lambda: self._kept(home, vocabulary), "tokens", self.notes)
        return encode_ragged(vocabulary, self._each()) if kept is None else kept

    def _kept(self, home: Path, vocabulary: Vocabulary) -> Ragged:
        def shards(first: int) -> Iterator[Shard]:
            total, done = sum(map(len, self.about)), first
            rows: Iterator[TextRow] = ((text,) for text in self._each())
            for shard in shards_of_tokens(vocabulary, rows, first=first, size=self._content[0]):
                yield shard
                done += len(shard.marks)
                self.progress(done, total)

        return token_shards(home, token_type(len(vocabulary)), shards, dict).columns[0]

    def _each(self) -> Iterator[str]:
        return (text for some in self.about for text in some)

    @cached_property
    def _content(self) -> tuple[int, str]:
        """How many characters there are, and a number for all of them."""
        size, digest = 0, hashlib.sha256()
        for some in self.about:
            lengths = [len(text) for text in some]  # without, "ab" "c" were "a" "bc"
            size += sum(lengths)
            digest.update(f"{lengths}{''.join(some)}".encode("utf-8", "surrogatepass"))
        return size, digest.hexdigest()


def _key(made_by: object, content: str) -> str:
    """What is kept depends on this."""
    said = f"{VERSION} {tokenizers.__version__} {made_by} {content}"
    return hashlib.sha256(said.encode()).hexdigest()[:32]
