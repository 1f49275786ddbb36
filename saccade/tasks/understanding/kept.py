"""Labelled texts as tokens, kept on disk between starts where there are many.

What is kept is named by the texts themselves and by the tokenizer, so it is all one in which files
they came, and which of them are chosen.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import tokenizers
import torch

from saccade.data.batching.ragged import Ragged
from saccade.data.tokens.token_shards import Shard, token_shards
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.base import Progress
from saccade.tasks.corpus import KEPT_FROM
from saccade.tasks.images import cache_folder
from saccade.tasks.kept_or_told import kept_or_told
from saccade.tasks.understanding.encode import EncodedTexts

VERSION = 1  # of what is kept, and of how it is made
SHARD = 1 << 16  # texts

Texts = Sequence[tuple[str, ...]]
Words = Sequence[Sequence[str]]


def encoded_texts(
    vocabulary: Vocabulary,
    texts: Texts,
    words: Words,
    *,
    longest: int,
    progress: Progress,
    notes: list[str],
) -> EncodedTexts:
    """What `EncodedTexts.of` gives; `notes` are lines for the user."""
    found = None
    if sum(len(text) for both in texts for text in both) >= KEPT_FROM:
        home = cache_folder() / f"tokens-{_key(vocabulary, texts, words, longest)}"
        found = kept_or_told(
            lambda: _kept(home, vocabulary, texts, words, longest, progress), "tokens", notes
        )
    if found is None:
        return EncodedTexts.of(vocabulary, texts, words, longest=longest)
    return found


def _kept(
    home: Path,
    vocabulary: Vocabulary,
    texts: Texts,
    words: Words,
    longest: int,
    progress: Progress,
) -> EncodedTexts:
    def shards(first: int) -> Iterator[Shard]:
        for start in range(first, len(texts), SHARD):
            some = slice(start, start + SHARD)
            part = EncodedTexts.of(vocabulary, texts[some], words[some], longest=longest)
            cut = Ragged.of([[int(place in part.cut)] for place in range(len(part))])
            columns = part.tokens, part.types, part.words, cut
            yield Shard(columns, torch.arange(start, start + len(part)))
            progress(start + len(part), len(texts))

    kept = token_shards(home, np.dtype(np.int32), shards, dict)
    tokens, types, firsts, cut = kept.columns
    return EncodedTexts(tokens, types, firsts, frozenset(cut.flat.nonzero()[:, 0].tolist()))


def _key(vocabulary: Vocabulary, texts: Texts, words: Words, longest: int) -> str:
    """What tokens depend on."""
    sizes = f"{longest} {len(texts)} {len(words)}"
    made_by = f"{VERSION} {tokenizers.__version__} {sizes} {vocabulary.to_json()}"
    digest = hashlib.sha256(made_by.encode())
    for parts in (texts, words):
        for one in parts:
            whole = f"{[*map(len, one)]}{''.join(one)}"  # with lengths, or "ab" "c" were "a" "bc"
            digest.update(whole.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]
