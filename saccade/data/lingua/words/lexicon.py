"""The words: what each means, where it may stand, and how both languages build it."""

from functools import cache
from typing import NamedTuple

from saccade.data.lingua.words.morphology import (
    Conjugation,
    EnglishVerb,
    Forms,
    conjugate,
    english_plural,
    english_verb,
    french_plural,
    inflect,
)
from saccade.data.lingua.words.tables import rows


class Expression(NamedTuple):
    """A name or set expression: for every French word, `links` says which English it renders.

    `tags` are the parts of speech of its English words, with commas between them.
    """

    english: str
    french: str
    tags: str
    links: str
    feminine: bool
    plural: bool


class Adjective(NamedTuple):
    """An adjective. Several before one English noun stand in the order of their ranks."""

    english: str
    forms: Forms
    liaison: str  # the masculine singular before a vowel, where it differs
    before: bool  # whether it precedes the French noun
    rank: int  # 0 size and age, 1 quality, 2 colour, 3 origin, 4 field
    kinds: frozenset[str]

    @property
    def gradable(self) -> bool:
        """Whether "very" suits it."""
        return self.rank <= 1 and self.english != "new"


class Noun(NamedTuple):
    """A noun of both languages. A `mass` noun has no plural and takes the partitive."""

    english: str
    english_plural: str
    french: str
    french_plural: str
    feminine: bool
    kind: str
    mass: bool
    adjectives: tuple[Adjective, ...]


class Verb(NamedTuple):
    """A verb of both languages.

    `particle` follows the English verb ("look for"); `preposition` follows the French one
    (répondre à) and then rules out passives and object relatives. `moves` takes être. A `state`
    has no progressive, and its English past is the French imperfect. `loves` marks the verbs
    after which a bare noun is meant in general: likes bread → aime le pain.
    """

    english: EnglishVerb
    french: Conjugation
    subjects: frozenset[str]
    objects: tuple[Noun, ...]
    particle: str = ""
    preposition: str = ""
    moves: bool = False
    reflexive: bool = False
    state: bool = False
    loves: bool = False

    @property
    def name(self) -> str:
        """The English dictionary form, particle included."""
        return f"{self.english.base} {self.particle}".rstrip()

    @property
    def direct(self) -> bool:
        """Whether both languages give it a plain direct object."""
        return not self.particle and not self.preposition


@cache
def expressions(wanted: str) -> tuple[Expression, ...]:
    """One of the lists: people, countries, months, numbers, manner …"""
    table = rows("expressions", "list", "english", "french", "tags", "links", "gender", "number")
    return tuple(
        Expression(english, french, tags, links, gender == "f", number == "plural")
        for name, english, french, tags, links, gender, number in table
        if name == wanted
    )


@cache
def adjectives() -> tuple[Adjective, ...]:
    """All of them."""
    columns = ("english", "french", "feminine", "liaison", "side", "rank", "kinds")
    return tuple(
        Adjective(
            english,
            inflect(french, feminine),
            liaison,
            side == "before",
            int(rank),
            frozenset(kinds.split()),
        )
        for english, french, feminine, liaison, side, rank, kinds in rows("adjectives", *columns)
    )


@cache
def nouns() -> tuple[Noun, ...]:
    """All of them."""
    columns = ("english", "french", "gender", "kind", "mass", "english_plural", "french_plural")
    return tuple(
        Noun(
            english,
            plural or english_plural(english),
            french,
            pluriel or french_plural(french),
            gender == "f",
            kind,
            mass == "mass",
            tuple(adjective for adjective in adjectives() if kind in adjective.kinds),
        )
        for english, french, gender, kind, mass, plural, pluriel in rows("nouns", *columns)
    )


@cache
def nouns_of(kind: str) -> tuple[Noun, ...]:
    """The nouns of a kind: person, animal, food …"""
    return tuple(noun for noun in nouns() if noun.kind == kind)


@cache
def verbs(wanted: str) -> tuple[Verb, ...]:
    """The verbs of a use: intransitive, transitive, placed, catenative, saying or weather."""
    table = rows("verbs", "use", "english", "french", "subjects", "objects", "traits")
    return tuple(_verb(*row) for use, *row in table if use == wanted)


def _verb(english: str, french: str, subjects: str, objects: str, traits: str) -> Verb:
    """Read "write wrote written" and "look_for" and "répondre_à"."""
    first, *irregular = english.split()
    base, _, particle = first.partition("_")
    infinitive, _, preposition = french.partition("_")
    return Verb(
        english_verb(base, *irregular),
        conjugate(infinitive),
        frozenset(subjects.split()),
        tuple(noun for kind in objects.split() for noun in nouns_of(kind)),
        particle,
        preposition,
        **dict.fromkeys(traits.split(), True),
    )


@cache
def verbs_of(use: str, kind: str) -> tuple[Verb, ...]:
    """The verbs of a use that a kind of subject can do."""
    return tuple(verb for verb in verbs(use) if kind in verb.subjects)


@cache
def done_to(noun: str) -> tuple[Verb, ...]:
    """The verbs that can be done to a noun, in a relative clause or in the passive."""
    direct = (verb for verb in verbs("transitive") if verb.direct)
    return tuple(v for v in direct if any(noun == thing.english for thing in v.objects))
