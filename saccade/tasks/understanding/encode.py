"""Texts and pairs as tokens end to end, and which token speaks for each word."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.ragged import Ragged
from saccade.data.batching.rows import BatchShape, Rows
from saccade.data.tokens.reading import Reading
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import Span
from saccade.errors import DataError
from saccade.printable import printable

AT_ONCE = 4096  # texts
NO_PIECE = -1  # of a word that nothing is read of: it was cut off, or the tokenizer has no token


@dataclass(frozen=True)
class EncodedTexts:
    """Tokens of each text or pair, which text each token is of, and the first piece of each word.

    `cut` are the numbers of those that were too long.
    """

    tokens: Ragged
    types: Ragged
    words: Ragged
    cut: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(
        cls,
        vocabulary: Vocabulary,
        texts: Sequence[tuple[str, ...]],
        words: Sequence[Sequence[str]] = (),
        *,
        longest: int | None,
    ) -> "EncodedTexts":
        """`words` are those that tags are asked of, in the order of the text.

        Some are read at a time: what the tokenizer tells of a text is far larger than its tokens.
        """
        starts = range(0, max(1, len(texts)), AT_ONCE)
        blocks = [slice(start, start + AT_ONCE) for start in starts]
        parts = [cls._block(vocabulary, texts[b], words[b], longest=longest) for b in blocks]
        return cls(
            Ragged.joined(part.tokens for part in parts),
            Ragged.joined(part.types for part in parts),
            Ragged.joined(part.words for part in parts),
            frozenset(start + one for start, part in zip(starts, parts) for one in part.cut),
        )

    @classmethod
    def _block(
        cls,
        vocabulary: Vocabulary,
        texts: Sequence[tuple[str, ...]],
        words: Sequence[Sequence[str]],
        *,
        longest: int | None,
    ) -> "EncodedTexts":
        readings = vocabulary.readings(texts, longest=longest)
        full = [place for place, one in enumerate(readings) if len(one.tokens) == longest]
        whole = vocabulary.readings([texts[place] for place in full])
        cut = {place for place, one in zip(full, whole) if len(one.tokens) > (longest or 0)}
        firsts = [
            first_pieces(reading, word_places(text[0], some))
            for reading, text, some in zip(readings, texts, words)
        ]
        return cls(
            Ragged.of([one.tokens for one in readings]),
            Ragged.of([one.types for one in readings]),
            Ragged.of(firsts),
            frozenset(cut),
        )

    def rows(
        self, chosen: Int[Tensor, " B"], shape: BatchShape | None = None
    ) -> tuple[Rows, Int[Tensor, " words"]]:
        """Some of them end to end, and the types of their tokens; with a `shape`, filled up."""
        tokens, lengths = self.tokens.take(chosen)
        rows = Rows.of(tokens, lengths, shape=shape)
        types, _ = self.types.take(chosen)
        filling = types.new_zeros(len(rows.tokens) - len(types))
        return rows, torch.cat([types, filling])

    def word_heads(
        self, chosen: Int[Tensor, " B"]
    ) -> tuple[Int[Tensor, " words"], Int[Tensor, " B"]]:
        """Where the first pieces of words stand among the tokens of these texts end to end, and
        how many words each has; NO_PIECE where there is none.
        """
        places, counts = self.words.take(chosen)
        lengths = self.tokens.lengths[chosen]
        before = (lengths.cumsum(0) - lengths).repeat_interleave(counts)
        return torch.where(places == NO_PIECE, NO_PIECE, places + before), counts


def word_places(text: str, words: Sequence[str]) -> list[Span]:
    """Where each word stands in a text that has them in this order."""
    found, at = list[Span](), 0
    for word in words:
        start = text.find(word, at)
        if start < 0:
            raise DataError(
                f"{printable(word)!r} is not in {printable(text)[:80]!r} after the words before "
                "it; words must be those of the text, in its order"
            )
        at = start + len(word)
        found.append((start, at))
    return found


def first_pieces(reading: Reading, words: Sequence[Span]) -> list[int]:
    """The first token of each word, which speaks for it (Devlin et al. 2019)."""
    pieces = [
        (place, span) for place, (span, side) in enumerate(zip(reading.spans, reading.sides))
        if side == 0 and span[1] > span[0]
    ]  # fmt: skip
    found, at = list[int](), 0
    for start, end in words:
        while at < len(pieces) and pieces[at][1][1] <= start:
            at += 1
        there = at < len(pieces) and pieces[at][1][0] < end
        found.append(pieces[at][0] if there else NO_PIECE)
    return found
