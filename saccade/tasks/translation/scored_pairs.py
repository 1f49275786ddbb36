"""Pairs to score translations on, as they stream: none is held beyond its window."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress, count
from pathlib import Path

from saccade.data.batching.blocks import blocks
from saccade.data.lingua import AlignedPair
from saccade.data.readers import splits, stream_pairs
from saccade.tasks.translation.task import (
    HELD_OUT,
    TranslationSettings,
    pair_options,
    read_corpus,
)

WINDOW = 2048  # pairs that are translated and scored together
WINDOW_CHARACTERS = 1 << 22
Pair = tuple[str, str]


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of one split, given anew in each pass; aligned ones where the truth is known."""

    pairs: Callable[[], Iterator[Pair]]
    aligned: list[AlignedPair]

    def windows(self) -> Iterator[list[Pair]]:
        """Some at a time."""
        bounds = {"most": WINDOW, "total": WINDOW_CHARACTERS}
        return blocks(self.pairs(), size=lambda pair: len(pair[0]) + len(pair[1]), **bounds)


def scored_pairs(settings: TranslationSettings, split: str | None) -> ScoredPairs:
    """The same pairs as `read_corpus` gives; a pass over them stops at its end for bad rows."""
    if not settings.data:
        corpus = read_corpus(settings, split)
        return ScoredPairs(lambda: iter(corpus.pairs), corpus.aligned)
    path = Path(settings.data)
    known = splits(path, source=settings.source, target=settings.target)
    held_out = split in ("train", "valid") and "valid" not in known
    stream = stream_pairs(path, "train" if held_out else split or "train", **pair_options(settings))
    if not held_out:
        return ScoredPairs(lambda: iter(stream.good()), [])
    every, valid = round(1 / HELD_OUT), split == "valid"

    def chosen() -> Iterator[bool]:
        return ((number % every == 0) == valid for number in count())

    return ScoredPairs(lambda: compress(stream.good(), chosen()), [])
