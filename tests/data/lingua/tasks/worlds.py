"""Small worlds in which statements are true or false: what the labels of entailment rest on.

A world knows a few individuals of each noun, what each is like, and for every deed whether this
one did it to that one: once, on one day, in one city and one country. "The dog" and "two dogs" are
the first individual of their noun. Nothing here uses the package's own logic.
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple

from saccade.data.lingua.tasks.statements import Moment, Participant, Statement

CONTRARY = (
    {"red", "blue", "green", "white", "black", "yellow", "grey"},
    *({"big", "small"}, {"good", "bad"}, {"old", "young"}, {"old", "new"}, {"happy", "sad"}),
    *({"difficult", "simple"}, {"rich", "poor"}, {"strong", "weak"}, {"hot", "cold"}),
    {"clean", "dirty"},
)
NUMBERS = (
    *("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty"),
)
CITIES = {"Paris", "London", "Brussels", "Athens", "Vienna", "Lisbon", "Geneva", "Oslo"}


class Deed(NamedTuple):
    """That something was done, and all about it."""

    moments: dict[str, tuple[int, ...]]  # a full date, and a member of each list
    places: set[str]  # a city, a country, or both
    manners: set[str]
    company: set[str]


class World:
    """What a random world is like, as far as some statements could ask."""

    def __init__(self, rng: Random, statements: Sequence[Statement]) -> None:
        self.rng, self.statements = rng, statements
        self.qualities: dict[tuple[str, int], set[str]] = {}
        self.numbers: dict[str, str] = {}
        self.deeds: dict[tuple[str, str, int, str, int], Deed | None] = {}

    def like(self, word: str, one: int) -> set[str]:
        """The adjectives that are true of an individual; contrary ones never together."""
        if (word, one) not in self.qualities:
            told = sorted({name for each in self.statements for name in _adjectives(each, word)})
            self.rng.shuffle(told)
            true = set[str]()
            for name in told:
                clash = any(name in group and group & true for group in CONTRARY)
                if not clash and self.rng.random() < 0.6:
                    true.add(name)
            self.qualities[word, one] = true
        return self.qualities[word, one]

    def number(self, word: str) -> str:
        """How many the known ones are."""
        if word not in self.numbers:
            told = [each.actor.determined for each in self.statements if each.actor.noun]
            self.numbers[word] = self.rng.choice([n for n in told if n in NUMBERS] or NUMBERS)
        return self.numbers[word]

    def deed(self, statement: Statement, actor: int, patient: int) -> Deed | None:
        """What an individual did to another, if it did."""
        assert statement.verb is not None
        whom = statement.patient.word if statement.patient else ""
        key = (statement.verb.name, statement.actor.word, actor, whom, patient)
        if key not in self.deeds:
            self.deeds[key] = self._deed() if self.rng.random() < 0.65 else None
        return self.deeds[key]

    def _deed(self) -> Deed:
        rng, told = self.rng, self.statements
        moments: dict[str, tuple[int, ...]] = {}
        for family in {_family(each.moment) for each in told if each.moment}:
            values = [e.moment.parts for e in told if e.moment and _family(e.moment) == family]
            moments[family] = self._day(values) if family == "date" else rng.choice([*values, (9,)])
        named = [each.place.english for each in told if each.place]
        rng.shuffle(named)
        places = {name in CITIES: name for name in named if rng.random() < 0.8}
        manners = {e.manner.english for e in told if e.manner and rng.random() < 0.6}
        company = {e.company.word for e in told if e.company and rng.random() < 0.6}
        return Deed(moments, set(places.values()), manners, company)

    def _day(self, dates: list[tuple[int, ...]]) -> tuple[int, ...]:
        """A year, a month and a day, often those that are told."""
        day = self.rng.choice([*dates, (0, 0, 0)])
        while len(day) < 3:
            told = [date[len(day)] for date in dates if len(date) > len(day)]
            day = (*day, self.rng.choice([*told, 0]))
        return day


def _adjectives(statement: Statement, word: str) -> Iterable[str]:
    for mention in statement.mentions:
        if mention.word == word:
            yield from (quality.english for quality in mention.qualities)
    if statement.quality and statement.actor.word == word:
        yield statement.quality.english


def _family(moment: Moment) -> str:
    if moment.kind == "any time":
        return "season" if moment.parts[0] < 4 else "part of the day"
    return moment.kind


def _known(mention: Participant) -> bool:
    return mention.determined not in ("a", "every", "no", "not every")


def true(statement: Statement, world: World) -> bool:
    """Whether a statement is true in a world."""
    actor, ones = statement.actor, (0, 1)
    if actor.noun and not _described(actor, world) and _known(actor):
        return False
    patient = statement.patient
    if patient and patient.noun and _known(patient) and not _described(patient, world):
        return False
    if _known(actor):
        return _holds(statement, 0, world) != statement.negated
    wanted = {quality.english for quality in actor.qualities}
    fitting = [
        _holds(statement, one, world) for one in ones if wanted <= world.like(actor.word, one)
    ]
    return {
        "a": any(fitting),
        "no": not any(fitting),
        "every": all(fitting),
        "not every": not all(fitting),
    }[actor.determined]


def _described(mention: Participant, world: World) -> bool:
    """Whether the known ones are as they are said to be."""
    fits = {quality.english for quality in mention.qualities} <= world.like(mention.word, 0)
    return fits and (
        mention.determined not in NUMBERS or mention.determined == world.number(mention.word)
    )


def _holds(statement: Statement, one: int, world: World) -> bool:
    """Whether an individual did it, or is so."""
    if statement.quality:
        return statement.quality.english in world.like(statement.actor.word, one)
    patient = statement.patient
    if patient is None or _known(patient):
        return _done(statement, one, 0, world)
    wanted = {quality.english for quality in patient.qualities}
    others = [other for other in (0, 1) if wanted <= world.like(patient.word, other)]
    return any(_done(statement, one, other, world) for other in others)


def _done(statement: Statement, actor: int, patient: int, world: World) -> bool:
    deed = world.deed(statement, actor, patient)
    if deed is None:
        return False
    moment, place = statement.moment, statement.place
    then = deed.moments.get(_family(moment), ()) if moment else ()
    return (
        (not moment or then[: len(moment.parts)] == moment.parts)
        and (not place or place.english in deed.places)
        and (not statement.manner or statement.manner.english in deed.manners)
        and (not statement.company or statement.company.word in deed.company)
    )
