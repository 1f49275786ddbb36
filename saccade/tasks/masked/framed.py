"""Texts as a text encoder reads them: one or two, framed by the special tokens of the tokenizer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from saccade.data.batching.ragged import Ragged, Sequences
from saccade.data.batching.token_stream import StreamPieces, TokenStream
from saccade.data.images.counter_random import uniform
from saccade.data.tokens.reading import Template, TemplatePlace
from saccade.data.tokens.streamed_encoding import encode_ragged
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import DataError

NEXT = 8  # the stream of random numbers that decides what follows a text


OfLines = Callable[[Int[Tensor, " n"]], Int[Tensor, " n"]]  # what is known of lines, by number


class FramedTexts(NamedTuple):
    """Texts end to end, each in its frame; `begins` says where words do."""

    tokens: Int[Tensor, " total"]
    types: Int[Tensor, " total"]
    begins: Bool[Tensor, " total"]
    lengths: Int[Tensor, " B"]


@dataclass(frozen=True)
class TextFrame:
    """What stands around one text or two, as the tokenizer's own template has it."""

    parts: Template

    @classmethod
    def of(cls, vocabulary: Vocabulary, texts: int, example: str) -> "TextFrame":
        """Of `texts` texts; `example` is any that has words."""
        (reading,) = vocabulary.readings([(example,) * texts])
        parts = list[TemplatePlace]()
        for token, side, kind in zip(reading.tokens, reading.sides, reading.types):
            if side is None:
                parts.append(TemplatePlace(token, None, kind))
            elif not parts or parts[-1].side != side:
                parts.append(TemplatePlace(None, side, kind))
        return cls(tuple(parts))

    @property
    def special(self) -> int:
        """How many special tokens there are."""
        return sum(part.token is not None for part in self.parts)

    def around(self, *sides: "PlainTexts") -> FramedTexts:
        """Texts of each side, framed together."""
        count = len(sides[0].lengths)
        parts = [
            sides[side or 0] if token is None else PlainTexts.repeated(token, count)
            for token, side, _ in self.parts
        ]
        lengths = torch.stack([part.lengths for part in parts], dim=1)  # (B, parts)
        part_of = torch.arange(len(parts)).repeat(count).repeat_interleave(lengths.flatten())
        tokens, begins = torch.empty_like(part_of), torch.empty_like(part_of, dtype=torch.bool)
        for number, part in enumerate(parts):
            here = part_of == number
            tokens[here], begins[here] = part.tokens, part.begins
        types = torch.tensor([part.type for part in self.parts])[part_of]
        return FramedTexts(tokens, types, begins, lengths.sum(dim=1))


class PlainTexts(NamedTuple):
    """Texts end to end, without special tokens."""

    tokens: Int[Tensor, " total"]
    begins: Bool[Tensor, " total"]
    lengths: Int[Tensor, " B"]

    @classmethod
    def repeated(cls, token: int, count: int) -> "PlainTexts":
        """One token, again and again."""
        ones = torch.ones(count, dtype=torch.long)
        return cls(token * ones, ones.bool(), ones)


@dataclass(frozen=True)
class EncodedLines:
    """Texts as tokens; `begins` is 1 where a word does, None where nobody asks."""

    tokens: Sequences | StreamPieces
    begins: Ragged | StreamPieces | None = None

    @classmethod
    def of(cls, vocabulary: Vocabulary, texts: list[str], *, whole_words: bool) -> "EncodedLines":
        return cls.of_tokens(vocabulary, encode_ragged(vocabulary, texts), whole_words=whole_words)

    @classmethod
    def of_tokens(
        cls, vocabulary: Vocabulary, tokens: Ragged, *, whole_words: bool
    ) -> "EncodedLines":
        if not whole_words:
            return cls(tokens)
        of_lines = (_begins(vocabulary, tokens[row].tolist()) for row in range(len(tokens)))
        begins = np.fromiter(chain.from_iterable(of_lines), np.uint8, len(tokens.flat))
        return cls(tokens, Ragged(torch.from_numpy(begins), tokens.starts))

    def windows(self, size: int, end: int) -> "EncodedLines":
        """All texts in a row, an end between each two, cut into pieces of so many tokens."""
        assert isinstance(self.tokens, Ragged)
        if not isinstance(self.begins, Ragged):
            return EncodedLines(StreamPieces(TokenStream(self.tokens, end), size))
        # Where a text begins, a word does, and so does the end before it.
        begins = StreamPieces(TokenStream(self.begins, 1), size)
        return EncodedLines(StreamPieces(TokenStream(self.tokens, end), size), begins)

    def longest_words(self, rows: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """How many pieces the longest word of each of these texts has."""
        lengths = self.tokens.lengths_of(rows)
        if self.begins is None:
            return torch.ones_like(lengths)
        begins = self.begins.take(rows)[0].bool()
        starts = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        begins[starts[:-1][lengths > 0]] = True  # a piece may be cut off its word
        first = begins.nonzero()[:, 0]
        sizes = torch.cat([first, torch.tensor([len(begins)])]).diff()
        of = torch.bucketize(first, starts, right=True) - 1
        return torch.zeros_like(lengths).scatter_reduce_(0, of, sizes, "amax")

    def take(self, rows: Int[Tensor, " B"]) -> PlainTexts:
        tokens, lengths = self.tokens.take(rows)
        begins = torch.ones_like(tokens) if self.begins is None else self.begins.take(rows)[0]
        return PlainTexts(tokens, begins.bool(), lengths)


def _begins(vocabulary: Vocabulary, tokens: list[int]) -> list[int]:
    begins = [1] * len(tokens)
    for start, stop in vocabulary.word_groups(tokens):
        begins[start + 1 : stop] = [0] * (stop - start - 1)
    return begins


@dataclass(frozen=True)
class TextRows:
    """What is read at a time: text `first[i]`, or that and, as if it came next, `second[i]`."""

    lines: EncodedLines
    frame: TextFrame
    first: Int[Tensor, " rows"]
    second: Int[Tensor, " rows"] | None = None

    @classmethod
    def singles(
        cls, lines: EncodedLines, frame: TextFrame, rows: Int[Tensor, " rows"] | None = None
    ) -> "TextRows":
        """Every text, or those of these numbers."""
        return cls(lines, frame, torch.arange(len(lines.tokens)) if rows is None else rows)

    @classmethod
    def pairs(
        cls,
        lines: EncodedLines,
        frame: TextFrame,
        rows: Int[Tensor, " rows"] | None = None,
        *,
        seed: int,
    ) -> "TextRows":
        """Neighbours, all or those of which these are the first.

        In half of the pairs any other text stands in place of the next.
        """
        count = len(lines.tokens)
        if count < 3:
            raise DataError(
                f"{count} texts are too few to tell the next from another; give 3 or more"
            )
        first = torch.arange(count - 1) if rows is None else rows
        other, which = uniform(first, 2, seed=seed, epoch=0, stream=NEXT).double().T
        away = 2 + (which * (count - 2)).long()  # neither the text itself nor the next
        return cls(lines, frame, first, (first + torch.where(other < 0.5, away, 1)) % count)

    def __len__(self) -> int:
        return len(self.first)

    @property
    def lengths(self) -> Int[Tensor, " rows"]:
        """With all special tokens."""
        return self.summed(self.lines.tokens.lengths_of) + self.frame.special

    def summed(self, of_lines: OfLines) -> Int[Tensor, " rows"]:
        """What is known of each text, of all that are read at a time."""
        alone = of_lines(self.first)
        return alone if self.second is None else alone + of_lines(self.second)

    def largest(self, of_lines: OfLines) -> Int[Tensor, " rows"]:
        """The larger of what is known of two texts."""
        alone = of_lines(self.first)
        return alone if self.second is None else torch.maximum(alone, of_lines(self.second))

    def where(self, kept: Bool[Tensor, " rows"]) -> "TextRows":
        second = None if self.second is None else self.second[kept]
        return replace(self, first=self.first[kept], second=second)

    def take(self, rows: Int[Tensor, " B"]) -> FramedTexts:
        sides = [self.first[rows], *([] if self.second is None else [self.second[rows]])]
        return self.frame.around(*map(self.lines.take, sides))

    def follows(self, rows: Int[Tensor, " B"]) -> Int[Tensor, " B"] | None:
        """Whether the second text is the next one: 0 where it is, 1 where not, as in BERT."""
        if self.second is None:
            return None
        return (self.second[rows] != self.first[rows] + 1).long()
