"""What counts as a word when people look at an alignment.

Attention is computed over word pieces; people read words. Both meet in character spans: a word is
a span of the text, a piece belongs to the word whose span it touches.

Some scripts are written without blanks. There a piece of the tokenizer is the word; where there is
no tokenizer, Unicode's default word boundaries are (UAX #29): an ideograph, a Thai letter, a run of
katakana. What readers take for one character, such as a letter with its accents or an emoji of
several parts, is never cut (UAX #29, extended grapheme clusters).
"""

from collections.abc import Iterable
from itertools import pairwise

import regex

Span = tuple[int, int]

# Written without blanks: Chinese and Japanese, and what line breaking needs a dictionary for (Thai,
# Lao, Khmer, Burmese and their kin).
_CONTINUOUS = r"[[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Bopo}\p{lb=SA}]&&\w]"
_LETTER = rf"[[\w\p{{N}}]--{_CONTINUOUS}]"
# An elided French word keeps its apostrophe (l' + accord); other marks are words of their own.
_WORD = regex.compile(
    rf"(?P<run>{_CONTINUOUS}+)|{_LETTER}+['’](?={_LETTER})|[{_LETTER}-]+|\S", regex.V1
)
_ONE = regex.compile(_CONTINUOUS, regex.V1)
_CLUSTER = regex.compile(r"\X")
_BOUNDARY = regex.compile(r"\b", regex.V1 | regex.WORD)


def word_spans(text: str, pieces: Iterable[Span] = ()) -> list[Span]:
    """Where each word begins and ends, in characters; `pieces` are a tokenizer's, if known."""
    ends = {end for _, end in pieces}
    cuts = {0, len(text)}
    for match in _WORD.finditer(text):
        start, end = match.span()
        cuts |= {start, end}
        if match["run"] is None:
            continue
        inner = ends or {cut.start() for cut in _BOUNDARY.finditer(text, start, end)}
        cuts |= inner.intersection(range(start, end))
    clusters = sorted(cuts & grapheme_boundaries(text))
    return [(start, end) for start, end in pairwise(clusters) if text[start:end].strip()]


def words(text: str, pieces: Iterable[Span] = ()) -> list[str]:
    """The words of a text, punctuation included."""
    return [text[start:end] for start, end in word_spans(text, pieces)]


def length_in_words(text: str) -> int:
    """How many words, without marks; a text of marks or emoji alone has one."""
    return max(1, sum(any(map(str.isalnum, word)) for word in words(text)))


def grapheme_boundaries(text: str) -> set[int]:
    """The places where a text may be cut without cutting what a reader takes for one character."""
    return {0, *(match.end() for match in _CLUSTER.finditer(text))}


def continuous_letters(text: str) -> int:
    """How many characters are of a script that is written without blanks."""
    return sum(1 for _ in _ONE.finditer(text))
