"""The two sides of a sentence while it is being built, and how French words change in contact.

Both sides grow together. An English token is an object with an identity; a French token points at
the English token it renders. Positions are given out only when the sentence is finished, so a
phrase may be moved about freely and its links move with it.
"""

from functools import cache
from typing import NamedTuple

_VOWELS = frozenset("aeiouyàâäéèêëîïôöùûüœ")
# A vowel follows the h, yet the h blocks elision: la hausse, le héros.
_ASPIRATED = ("haut", "huit", "héros", "hollande", "hongrie")
_CONTRACTIONS = {
    ("de", "le"): "du",
    ("de", "les"): "des",
    ("à", "le"): "au",
    ("à", "les"): "aux",
}
# English words whose first letter and first sound disagree.
_CONSONANT_SOUND = ("uni", "use", "euro")
_VOWEL_SOUND = ("hon", "hour")
TAGS = (
    *("determiner", "noun", "proper noun", "pronoun", "number", "adjective", "adverb", "verb"),
    *("auxiliary", "negation", "preposition", "particle", "conjunction", "punctuation"),
)


class Word:
    """An English token and its part of speech, one of `TAGS`; equal only to itself."""

    __slots__ = ("tag", "text")

    def __init__(self, text: str, tag: str) -> None:
        self.text = text
        self.tag = tag


class Mot:
    """A French token and the English token it renders.

    `possible` names further English tokens it partly renders; `liaison` is the form it takes
    before a vowel (le → l', vieux → vieil); only an `article` contracts with de and à.
    """

    __slots__ = ("article", "liaison", "possible", "sure", "text")

    def __init__(
        self,
        text: str,
        sure: Word,
        possible: tuple[Word, ...] = (),
        liaison: str = "",
        article: bool = False,
    ) -> None:
        self.text = text
        self.sure = sure
        self.possible = possible
        self.liaison = liaison
        self.article = article


class Phrase(NamedTuple):
    """A stretch of both languages."""

    english: list[Word]
    french: list[Mot]

    def add(self, other: "Phrase") -> None:
        """Append `other` on both sides."""
        self.english.extend(other.english)
        self.french.extend(other.french)


def empty() -> Phrase:
    """A phrase to add to."""
    return Phrase([], [])


def fixed(english: str, french: str, tags: str, links: str = "0") -> Phrase:
    """A set expression; `links` gives, for each French word, the English word it renders.

    fixed("last year", "l' année dernière", "adjective,noun", "1 1 0")
    """
    source = [Word(text, tag) for text, tag in zip(english.split(), tags.split(","))]
    linked = zip(french.split(), links.split())
    return Phrase(source, [Mot(text, source[int(link)]) for text, link in linked])


def mark(text: str) -> Phrase:
    """A punctuation mark, the same in both languages."""
    return fixed(text, text, "punctuation")


def de(sure: Word) -> Mot:
    """The preposition de, which elides and contracts."""
    return Mot("de", sure, (), "d'")


def que(sure: Word) -> Mot:
    """The conjunction or relative pronoun que, which elides."""
    return Mot("que", sure, (), "qu'")


def definite(sure: Word, *, feminine: bool, plural: bool) -> Mot:
    """The definite article: le, la, l' or les."""
    if plural:
        return Mot("les", sure, (), "", True)
    return Mot("la" if feminine else "le", sure, (), "l'", True)


@cache
def opens_with_vowel(text: str) -> bool:
    """Whether a French word makes the word before it elide."""
    lower = text.lower()
    if lower.startswith("h"):
        return not lower.startswith(_ASPIRATED)
    return lower[0] in _VOWELS


def pronounce(french: list[Mot]) -> list[Mot]:
    """Let neighbouring French words change each other: elision, liaison forms, contraction.

    Read from right to left, because a word changes with the word after it. A contraction keeps
    the sure link of its first half; the second half becomes possible.
    """
    spoken: list[Mot] = []
    following = ","
    for mot in reversed(french):
        text = mot.text
        if mot.liaison and opens_with_vowel(following):
            mot = Mot(mot.liaison, mot.sure, mot.possible)
        elif text == "si" and following in ("il", "ils"):
            mot = Mot("s'", mot.sure, mot.possible)
        elif spoken and spoken[-1].article and (text, following) in _CONTRACTIONS:
            article = spoken.pop()
            possible = (*mot.possible, article.sure, *article.possible)
            mot = Mot(_CONTRACTIONS[text, following], mot.sure, possible)
        spoken.append(mot)
        following = mot.text
    spoken.reverse()
    return spoken


@cache
def _takes_an(text: str) -> bool:
    lower = text.lower()
    if lower.startswith(_VOWEL_SOUND):
        return True
    return lower[0] in "aeiou" and not lower.startswith(_CONSONANT_SOUND)


def write_english(english: list[Word]) -> str:
    """The English text, with a or an as the next word asks."""
    texts = [word.text for word in english]
    for index, text in enumerate(texts):
        if text == "a" and _takes_an(texts[index + 1]):
            texts[index] = "an"
    return _capitalised(" ".join(texts).replace(" ,", ",").replace(" .", "."))


def write_french(french: list[Mot]) -> str:
    """The French text of tokens that `pronounce` has already visited."""
    text = " ".join([mot.text for mot in french])
    return _capitalised(text.replace("' ", "'").replace(" ,", ",").replace(" .", "."))


def _capitalised(text: str) -> str:
    return text[0].upper() + text[1:]
