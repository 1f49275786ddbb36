"""Text of others that is safe to print: file names, members of archives, words, keys of a config.

A terminal obeys escape sequences, whoever wrote them, and marks of direction turn a line around.
"""

import unicodedata

# Control characters, marks of direction, lone surrogates, private use: nothing a reader would see.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_JOINERS = frozenset("\u200c\u200d")  # what Persian, Indic scripts and emoji are written with


def printable(text: object, *, lines: bool = False) -> str:
    r"""The text with all that is not to be seen spelt out, as \x1b; `lines` keeps its line ends."""
    return "".join(
        one if _safe(one) or (lines and one == "\n") else _spelt(one) for one in str(text)
    )


def _safe(one: str) -> bool:
    return one.isprintable() or one in _JOINERS or unicodedata.category(one) not in _UNSAFE


def _spelt(one: str) -> str:
    return one.encode("unicode_escape").decode("ascii")
