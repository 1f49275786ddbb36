"""Texts with blanks: where these are among a tokenizer's tokens, and which words may fill them."""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.data.tokens.words import Span
from saccade.errors import ConfigError, DataError
from saccade.printable import printable

BLANK = "___"
STAND_IN = "x"  # read in place of a blank, so that the tokenizer sees a word there


class BlankText(NamedTuple):
    """A text as the model reads it: its tokens, and where its blanks are among these.

    `spans` are the characters of `plain` that words for the blanks replace; a letter stands there.
    """

    text: str
    plain: str
    tokens: list[int]
    types: list[int]
    at: list[int]
    spans: list[Span]


class BlankWord(NamedTuple):
    """A word that may stand in a blank, and how likely it is there."""

    word: str
    probability: float


@dataclass(frozen=True)
class FilledText:
    """A text with its blanks filled by the likeliest words, and the best words for each blank."""

    given: str
    text: str
    blanks: tuple[tuple[BlankWord, ...], ...]


class BlankReader:
    """A vocabulary with a token for hidden words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        if vocabulary.mask is None:
            raise ConfigError("the tokenizer has no token for hidden words, such as [MASK]")
        self.mask = vocabulary.mask
        names = ("[MASK]", vocabulary.name(self.mask) or BLANK)
        self._blank = re.compile("|".join(["_{3,}", *map(re.escape, names)]))
        self._special = [token for token in vocabulary.special if token is not None]

    def read(self, text: str) -> BlankText:
        """A text with or without blanks."""
        parts = self._blank.split(text)
        plain, ends = STAND_IN.join(parts), [0]
        for part in parts:
            ends.append(ends[-1] + len(part) + len(STAND_IN))
        blanks = [(end - len(STAND_IN), end) for end in ends[1:-1]]
        (reading,) = self.vocabulary.readings([(plain,)])
        found = BlankText(text, plain, [], [], [], [])
        for start, stop in _every(self.vocabulary.word_groups(reading.tokens), len(reading.tokens)):
            word = _covered(reading.spans[start:stop], plain)
            inside = [one for one in blanks if one[0] < word[1] and word[0] < one[1]]
            if inside:
                _check_alone(text, plain, word, inside)
                found.at.append(len(found.tokens))
                found.spans.append(word)
            found.tokens.extend([self.mask] if inside else reading.tokens[start:stop])
            found.types.extend(reading.types[start : start + 1 if inside else stop])
        return found

    def chances(self, logits: Float[Tensor, "blanks V"]) -> Float[Tensor, "blanks V"]:
        """How likely each word is in each blank; special tokens are no words."""
        special = torch.tensor(self._special, device=logits.device)
        return logits.float().index_fill(1, special, -torch.inf).softmax(dim=-1).cpu()

    def word(self, token: int) -> str:
        """A token as a word."""
        piece = self.vocabulary.piece(token, after=[])
        return piece.strip() or piece

    def best(self, chances: Float[Tensor, " V"], count: int) -> tuple[BlankWord, ...]:
        """The likeliest words."""
        top = chances.topk(min(count, len(chances) - len(self._special)))
        pairs = zip(top.indices.tolist(), top.values.tolist())
        return tuple(BlankWord(self.word(token), p) for token, p in pairs)

    def filled(
        self, read: BlankText, chances: Float[Tensor, "blanks V"], n_best: int
    ) -> FilledText:
        """The text with the likeliest words in its blanks."""
        blanks = tuple(self.best(row, n_best) for row in chances)
        text, end = "", 0
        for (start, stop), (best, *_) in zip(read.spans, blanks):
            text, end = text + read.plain[end:start] + best.word, stop
        return FilledText(read.text, text + read.plain[end:], blanks)


def _every(words: list[Span], count: int) -> list[Span]:
    """Words, and what lies between them, token by token."""
    inside = {place for start, stop in words for place in range(start, stop)}
    return sorted([*words, *((place, place + 1) for place in set(range(count)) - inside)])


def _covered(spans: list[Span], text: str) -> Span:
    """The characters of a word, without a blank before them."""
    start, stop = min(start for start, _ in spans), max(stop for _, stop in spans)
    return start + len(text[start:stop]) - len(text[start:stop].lstrip()), stop


def _check_alone(text: str, plain: str, word: Span, blanks: list[Span]) -> None:
    """Refuse a blank that is a part of a word: the tokenizer cannot tell how long it is."""
    ends = [word[0], *(place for blank in blanks for place in blank), word[1]]
    around = "".join(plain[start:stop] for start, stop in list(pairwise(ends))[::2])
    if len(blanks) > 1 or any(map(str.isalnum, around)):
        raise DataError(
            f"{printable(text[:60])!r} has a blank within a word; a blank stands for a whole one: "
            f'put spaces around it, as in "The {BLANK} is here."'
        )
