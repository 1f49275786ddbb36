"""What counts as a word when people look at an alignment.

Attention is computed over word pieces; people read words. Both meet in character spans: a word is
a span of the text, a piece belongs to the word whose span it touches.
"""

import re

# An elided French word keeps its apostrophe (l' + accord); other marks are words of their own.
_WORD = re.compile(r"\w+['’](?=\w)|[\w-]+|[^\w\s]", re.UNICODE)


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where each word begins and ends, in characters."""
    return [match.span() for match in _WORD.finditer(text)]


def words(text: str) -> list[str]:
    """The words of a text, punctuation included."""
    return [text[start:end] for start, end in word_spans(text)]
