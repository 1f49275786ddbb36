"""Captions read back: the grammar of `writing.py`, and nothing else.

caption  = [opening] list
         | [opening] thing relation thing [tail]
         | thing "is" relation thing [tail]
         | relation thing "there is" thing ["," "and" list]
tail     = "that is" relation thing | "," "and" list
list     = thing {"," thing} ["and" thing]
thing    = ("a" | "an") [size] colour kind | "a" figure
"""

import re

from saccade.data.shapes.scenes import (
    COLOURS,
    CONTEXTS,
    GROUPS,
    KINDS,
    NEUTRAL,
    RELATIONS,
    SIZES,
    Scene,
)
from saccade.data.shapes.text.claims import Claim, Content, Mention, true_of
from saccade.data.shapes.text.writing import OPENINGS

_RELATIONS = tuple(tuple(words.split()) for words in (*RELATIONS, "beside"))
_OPENINGS = tuple(tuple(words.split()) for words in OPENINGS if words)
_COLOURED = frozenset((*KINDS, *CONTEXTS))
_PLAIN = frozenset((*GROUPS, NEUTRAL))


class _NotACaptionError(Exception):
    """The words do not follow the grammar. Never leaves the module."""


def parse(caption: str) -> Content | None:
    """What a caption says, or None if it is not a sentence of the grammar.

    Case, a full stop at the end and the space around commas do not matter.
    """
    words = re.findall(r"[^\W_]+|\S", caption.lower())
    reader = _Reader(words[:-1] if words[-1:] == ["."] else words)
    try:
        found = reader.caption()
    except _NotACaptionError:
        return None
    return found if reader.at_end else None


def is_right(caption: str, scene: Scene) -> bool:
    """Whether a caption is a sentence, and true of a scene: the exact match of its content."""
    said = parse(caption)
    return said is not None and true_of(said, scene)


class _Reader:
    """A place in a row of words, and what has been understood before it."""

    def __init__(self, words: list[str]) -> None:
        self._words = words
        self._place = 0
        self._named: list[Mention] = []
        self._claims: list[Claim] = []

    @property
    def at_end(self) -> bool:
        return self._place == len(self._words)

    def caption(self) -> Content:
        stands = self._relation()
        if stands:
            self._inverted(stands)
        else:
            opened = any(self._take(*opening) for opening in _OPENINGS)
            self._thing()
            copula = not opened and self._take("is")
            stands = self._relation()
            if stands:
                self._thing()
                self._claims.append(Claim(0, stands, 1))
                self._tail()
            elif copula:
                raise _NotACaptionError
            else:
                self._more()
        return Content(tuple(self._named), tuple(self._claims))

    def _inverted(self, stands: str) -> None:
        """Behind a blue star there is a red circle: the circle comes first in the content."""
        self._thing()
        if not self._take("there", "is"):
            raise _NotACaptionError
        self._thing()
        self._named.reverse()
        self._claims.append(Claim(0, stands, 1))
        if self._take(",", "and"):
            self._thing()
            self._more()

    def _tail(self) -> None:
        if self._take("that", "is"):
            stands = self._relation()
            if not stands:
                raise _NotACaptionError
            self._thing()
            self._claims.append(Claim(1, stands, 2))
        elif self._take(",", "and"):
            self._thing()
            self._more()

    def _more(self) -> None:
        """The rest of a list, after its first thing."""
        commas = False
        while self._take(","):
            self._thing()
            commas = True
        if self._take("and"):
            self._thing()
        elif commas:
            raise _NotACaptionError

    def _thing(self) -> None:
        article = self._one_of(("a", "an"))
        after = self._words[self._place] if not self.at_end else ""
        if article != ("an" if after[:1] in tuple("aeiou") else "a"):
            raise _NotACaptionError
        plain = self._one_of(_PLAIN)
        if plain:
            self._named.append(Mention(plain))
            return
        size, colour, kind = (self._one_of(words) for words in (SIZES, COLOURS, _COLOURED))
        if colour is None or kind is None:
            raise _NotACaptionError
        self._named.append(Mention(kind, colour, size))

    def _relation(self) -> str | None:
        return next((" ".join(words) for words in _RELATIONS if self._take(*words)), None)

    def _one_of(self, words: tuple[str, ...] | frozenset[str]) -> str | None:
        if self.at_end or self._words[self._place] not in words:
            return None
        self._place += 1
        return self._words[self._place - 1]

    def _take(self, *words: str) -> bool:
        """Step over these words if they come next."""
        found = tuple(self._words[self._place : self._place + len(words)]) == words
        self._place += len(words) if found else 0
        return found
