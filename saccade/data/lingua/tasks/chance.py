"""Statements drawn by chance."""

from typing import NamedTuple

from saccade.data.lingua.clauses import DeadEndError
from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tasks.statements import Moment, Participant, Statement
from saccade.data.lingua.verb_groups import Tense
from saccade.data.lingua.words.lexicon import (
    Adjective,
    Expression,
    Noun,
    Verb,
    expressions,
    nouns_of,
    verbs_of,
)

OWNERS = ("my", "his", "her", "our", "your", "their")
_KINDS = (*("person",) * 6, "group", "group", "animal", "animal")
_STILL_KINDS = ("person", "animal", "thing", "text", "place", "idea", "event", "height")
_NAMES = {"person": "people", "group": "countries"}
_YEARS = {Tense.PAST: (1950, 2019), Tense.FUTURE: (2030, 2069)}
# Members of one range rule each other out: weekdays, seasons, parts of the day.
_RANGES = (("weekdays", 0, 6), ("any time", 0, 3), ("any time", 5, 7))


class Menu(NamedTuple):
    """The determiners that a task may use for whoever acts, and for what is acted on."""

    actor: tuple[str, ...]
    patient: tuple[str, ...]


def statement(draw: Draw, menu: Menu) -> Statement:
    """Any statement; a `DeadEndError` says that the choices so far lead to none."""
    tense = Tense.PAST if draw.chance(0.7) else Tense.FUTURE
    if draw.chance(0.12):
        return _state(draw, menu, tense)
    actor = mention(draw, draw.pick(_KINDS), menu.actor)
    kind = kind_of(actor)
    verb = draw.pick(_events("transitive" if draw.chance(0.75) else "intransitive", kind))
    patient = _patient(draw, verb, menu, actor) if verb.objects else None
    bare = Statement(actor, tense, verb, patient=patient)
    bare = bare._replace(negated=is_one(actor) and draw.chance(0.5))
    return _with_circumstances(draw, bare)


def is_one(mention: Participant) -> bool:
    """Whether it means certain ones that both speaker and hearer know: Paul, the dog, two dogs."""
    return mention.determined not in ("a", "every", "no", "not every")


def kind_of(actor: Participant) -> str:
    """The kind of noun that it is, or stands for."""
    if actor.noun:
        return actor.noun.kind
    return "person" if actor.name in expressions("people") else "group"


def _events(use: str, kind: str) -> list[Verb]:
    return [verb for verb in verbs_of(use, kind) if not verb.state]


def _state(draw: Draw, menu: Menu, tense: Tense) -> Statement:
    actor = mention(draw, draw.pick(_STILL_KINDS), menu.actor, named=False)
    assert actor.noun is not None
    taken = [quality.rank for quality in actor.qualities]
    quality = adjective(draw, actor.noun, *taken, 4)
    return Statement(actor, tense, quality=quality, negated=is_one(actor) and draw.chance(0.5))


def mention(draw: Draw, kind: str, menu: tuple[str, ...], *, named: bool = True) -> Participant:
    """A name of this kind now and then, else a noun."""
    if named and kind in _NAMES and draw.chance(0.3):
        return Participant(name=draw.pick(expressions(_NAMES[kind])))
    return noun_mention(draw, draw.pick(nouns_of(kind)), menu)


def noun_mention(draw: Draw, noun: Noun, menu: tuple[str, ...]) -> Participant:
    """A noun with a determiner and perhaps adjectives."""
    determined = draw.pick(("the", "owner", "this") if noun.mass else menu)
    if determined == "owner":
        determined = draw.pick(OWNERS)
    elif determined == "number":
        determined = draw.pick(expressions("numbers")).english
    qualities: tuple[Adjective, ...] = ()
    if draw.chance(0.5):
        qualities = (adjective(draw, noun),)
    return Participant(noun=noun, determined=determined, qualities=qualities)


def adjective(draw: Draw, noun: Noun, *taken: int) -> Adjective:
    """An adjective that suits a noun and has none of these ranks."""
    free = [choice for choice in noun.adjectives if choice.rank not in taken]
    chosen = draw.combine(free, lambda choice: [(choice.english, noun.english)])
    if chosen is None:
        raise DeadEndError
    return chosen


def _patient(draw: Draw, verb: Verb, menu: Menu, actor: Participant) -> Participant:
    people = any(noun.kind == "person" for noun in verb.objects)
    if people and draw.chance(0.2):
        patient = Participant(name=draw.pick(expressions("people")))
    else:
        noun = draw.combine(verb.objects, lambda n: [(verb.name, n.english)])
        if noun is None:
            raise DeadEndError
        patient = noun_mention(draw, noun, menu.patient)
    if patient.word == actor.word:
        raise DeadEndError
    return patient


def _with_circumstances(draw: Draw, bare: Statement) -> Statement:
    full = bare
    if draw.chance(0.6):
        full = full._replace(moment=moment(draw, bare.tense))
    if draw.chance(0.45):
        full = full._replace(place=place(draw))
    if draw.chance(0.2):
        full = full._replace(manner=manner(draw))
    if draw.chance(0.2):
        full = full._replace(company=company(draw, full))
    return full


def manner(draw: Draw) -> Expression:
    """How: one adverb; but "again" would say that it happened before."""
    return draw.pick([e for e in expressions("manner") if e.english != "again"])


def place(draw: Draw) -> Expression:
    """A city or a country."""
    return draw.pick(expressions(draw.pick(("cities", "countries"))))


def company(draw: Draw, statement: Statement) -> Participant:
    """Somebody whom the statement does not yet speak of."""
    there = [mention.name for mention in statement.mentions]
    return Participant(
        name=draw.pick([name for name in expressions("people") if name not in there])
    )


def moment(draw: Draw, tense: Tense) -> Moment:
    """A date of one to three parts, or a day of the week, a season, a part of the day."""
    if draw.chance(0.3):
        kind, first, last = draw.pick(_RANGES)
        return Moment(kind, (draw.between(first, last),))
    date = Moment("date", (draw.between(*_YEARS[tense]),))
    for _ in range(draw.between(0, 2)):
        date = narrower_moment(draw, date)
    return date


def narrower_moment(draw: Draw, date: Moment) -> Moment:
    """In 1992 → in May 1992 → on 3 May 1992."""
    highest = 12 if len(date.parts) == 1 else 28
    return date._replace(parts=(*date.parts, draw.between(1, highest)))


def other_moment(draw: Draw, now: Moment, tense: Tense) -> Moment:
    """A moment of the same kind that `now` rules out."""
    low, high = _YEARS[tense]
    index = draw.between(0, len(now.parts) - 1)
    if now.kind != "date":
        ranges = [(a, b) for kind, a, b in _RANGES if kind == now.kind and a <= now.parts[0] <= b]
        low, high = ranges[0]
    elif index:
        low, high = 1, 12 if index == 1 else 28
    values = [value for value in range(low, high + 1) if value != now.parts[index]]
    return now._replace(parts=(*now.parts[:index], draw.pick(values), *now.parts[index + 1 :]))
