"""Which of two statements says more: the logic of every, a, no and not.

A description is narrowed by an adjective, a happening by telling how, with whom, where or when.
Whether the narrower statement says more depends on where it is narrowed: "a small dog slept" says
more than "a dog slept", but "every small dog slept" says less than "every dog slept".

    sign(slot) = +1   narrower is stronger: what is done, and to whom, in a statement that affirms;
                      whoever acts after a, the, not every
    sign(slot) = −1   narrower is weaker: what is done, and to whom, in one that denies;
                      whoever acts after every, no

(This is monotonicity; van Benthem 1986, Essays in Logical Semantics.) What is known already, "the
small dog", is small whether the statement affirms or denies: its sign is always +1.
"""

from typing import Literal

from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tasks.chance import (
    OWNERS,
    adjective,
    company,
    is_one,
    manner,
    moment,
    narrower_moment,
    other_moment,
    place,
)
from saccade.data.lingua.tasks.statements import Participant, Statement, numbers
from saccade.data.lingua.words.lexicon import expressions

Slot = Literal["actor", "patient", "manner", "company", "place", "moment"]
_SLOTS: tuple[Slot, ...] = ("actor", "patient", "manner", "company", "place", "moment")
_OPPOSITE = {"a": "no", "no": "a", "every": "not every", "not every": "every"}
# From weak to strong; the middle rung is "the dog slept", or "the dog did not sleep".
_AFFIRMING, _DENYING = ("a", "the", "every"), ("not every", "the", "no")
_CONTRARY = (
    *("red blue green white black yellow grey", "big small", "good bad", "old young", "old new"),
    *("difficult simple", "happy sad", "rich poor", "strong weak", "hot cold", "clean dirty"),
)
_KNOWN = ("the", "this", *OWNERS)


def denies(statement: Statement) -> bool:
    """Whether it says that something is not so."""
    return statement.negated or statement.actor.determined in ("no", "not every")


def opposite(statement: Statement) -> Statement:
    """True when the statement is false, and false when it is true."""
    actor = statement.actor
    if is_one(actor):
        return statement._replace(negated=not statement.negated)
    return statement._replace(actor=actor._replace(determined=_OPPOSITE[actor.determined]))


def is_known(statement: Statement, slot: Slot) -> bool:
    """Whether a slot describes ones that are known already."""
    mention = statement.actor if slot == "actor" else statement.patient
    return slot in ("actor", "patient") and mention is not None and is_one(mention)


def sign(statement: Statement, slot: Slot) -> int:
    """+1 where narrowing the slot makes the statement say more, −1 where it makes it say less."""
    if is_known(statement, slot):
        return 1
    if slot == "actor":
        return -1 if statement.actor.determined in ("every", "no") else 1
    return -1 if denies(statement) else 1


def changed(statement: Statement, draw: Draw, direction: int, *, known: bool = True) -> Statement:
    """A statement that says more (direction 1) or less (−1), or the same one if chance fails.

    With known=False, what is known already is left as it is.
    """
    slot = draw.pick(_SLOTS)
    if slot in ("actor", "patient") and draw.chance(0.5):
        return _climbed(statement, slot, draw, direction)
    if not known and is_known(statement, slot):
        return statement
    narrows = direction * sign(statement, slot) > 0
    return _narrowed(statement, slot, draw) if narrows else _widened(statement, slot, draw)


def _narrowed(statement: Statement, slot: Slot, draw: Draw) -> Statement:
    if slot in ("actor", "patient"):
        mention = statement.actor if slot == "actor" else statement.patient
        if mention is None or mention.noun is None or len(mention.qualities) > 1:
            return statement
        told = (*mention.qualities, *([statement.quality] if statement.quality else []))
        new = adjective(draw, mention.noun, *(quality.rank for quality in told))
        ranked = sorted((*mention.qualities, new), key=lambda quality: quality.rank)
        return statement._replace(**{slot: mention._replace(qualities=tuple(ranked))})
    now = statement.moment
    if statement.quality:
        return statement
    if slot == "moment" and now:
        narrows = now.kind == "date" and len(now.parts) < 3
        return statement._replace(moment=narrower_moment(draw, now)) if narrows else statement
    if slot == "moment":
        return statement._replace(moment=moment(draw, statement.tense))
    if slot == "place":
        return statement if statement.place else statement._replace(place=place(draw))
    if slot == "manner":
        return statement if statement.manner else statement._replace(manner=manner(draw))
    return statement if statement.company else statement._replace(company=company(draw, statement))


def _widened(statement: Statement, slot: Slot, draw: Draw) -> Statement:
    if slot in ("actor", "patient"):
        mention = statement.actor if slot == "actor" else statement.patient
        if mention is None or not mention.qualities:
            return statement
        dropped = draw.pick(mention.qualities)
        kept = tuple(quality for quality in mention.qualities if quality != dropped)
        return statement._replace(**{slot: mention._replace(qualities=kept)})
    now = statement.moment
    if slot == "moment" and now and len(now.parts) > 1 and draw.chance(0.7):
        return statement._replace(moment=now._replace(parts=now.parts[:-1]))
    return statement._replace(**{slot: None})


def _climbed(statement: Statement, slot: Slot, draw: Draw, direction: int) -> Statement:
    """Up or down from a dog to the dog to every dog; the bare noun alone, lest it say more."""
    mention = statement.actor if slot == "actor" else statement.patient
    if mention is None or mention.noun is None or mention.noun.mass or mention.qualities:
        return statement
    if mention.determined in numbers():
        return statement
    denying = denies(statement)
    if slot == "patient":
        up = (direction > 0) != denying
        determined = draw.pick(_KNOWN) if up else "a"
        is_there = is_one(mention) == up
        return statement if is_there else _determined(statement, slot, mention, determined)
    ladder = _DENYING if denying else _AFFIRMING
    rung = 1 if is_one(mention) else ladder.index(mention.determined)
    aim = rung + direction * draw.between(1, 2)
    if not 0 <= aim < len(ladder):
        return statement
    determined = draw.pick(_KNOWN) if aim == 1 else ladder[aim]
    moved = _determined(statement, slot, mention, determined)
    return moved._replace(negated=denying and aim == 1)


def _determined(statement: Statement, slot: Slot, mention: Participant, name: str) -> Statement:
    return statement._replace(**{slot: mention._replace(determined=name)})


def rivals(statement: Statement, draw: Draw) -> list[Statement]:
    """The same with another time or place or a contrary adjective, one of each that it has.

    Whether both can be true is for `excludes_rivals` and `allows_rivals` to say.
    """
    actor, found = statement.actor, list[Statement]()
    if statement.moment:
        other = other_moment(draw, statement.moment, statement.tense)
        found.append(statement._replace(moment=other))
    if statement.place:
        name = "cities" if statement.place in expressions("cities") else "countries"
        others = [place for place in expressions(name) if place != statement.place]
        found.append(statement._replace(place=draw.pick(others)))
    if statement.quality and actor.noun:
        contrary = _contraries(statement.quality.english)
        others = [quality for quality in actor.noun.adjectives if quality.english in contrary]
        if others:
            found.append(statement._replace(quality=draw.pick(others)))
    return found


def recounted(statement: Statement, draw: Draw) -> list[Statement]:
    """The same of another number, if it has one and affirms; both cannot be true of known ones."""
    actor = statement.actor
    if actor.determined not in numbers() or statement.negated:
        return []
    number = draw.pick(sorted(numbers() - {actor.determined}))
    return [statement._replace(actor=actor._replace(determined=number))]


def excludes_rivals(statement: Statement) -> bool:
    """Whether it tells of one happening, at one time, in one place: of known ones, or of every one.

    A dog may sleep in Paris while another one sleeps in Oslo.
    """
    every = statement.actor.determined == "every" and not statement.actor.qualities
    of_known = statement.patient is None or is_one(statement.patient)
    return not denies(statement) and of_known and (every or is_one(statement.actor))


def allows_rivals(statement: Statement) -> bool:
    """Whether its rivals may be true as well as false."""
    some = statement.patient is not None and statement.patient.determined == "a"
    return denies(statement) or some or statement.actor.determined == "a"


def _contraries(adjective: str) -> set[str]:
    """The adjectives that rule this one out."""
    groups = [group.split() for group in _CONTRARY]
    return {other for group in groups if adjective in group for other in group} - {adjective}
