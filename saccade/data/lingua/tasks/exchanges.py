"""Small changes of one or two statements that change what they mean.

Each returns the statements as they are where it does not apply. `EXCHANGES` keep all the words and
put them elsewhere; `REPLACEMENTS` bring in another word.
"""

from collections.abc import Callable

from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tasks.chance import is_one, kind_of
from saccade.data.lingua.tasks.statements import Participant, Statement
from saccade.data.lingua.tasks.strength import recounted, rivals
from saccade.data.lingua.words.lexicon import expressions, nouns_of, verbs
from saccade.data.lingua.words.synonyms import synonyms

Statements = tuple[Statement, ...]
Change = Callable[[Statements, Draw], Statements]


def _with(statements: Statements, place: int, new: Statement) -> Statements:
    return (*statements[:place], new, *statements[place + 1 :])


def _takes(statement: Statement, actor: Participant) -> bool:
    """Whether somebody else can do it or be so."""
    if statement.quality:
        return actor.noun is not None and statement.quality in actor.noun.adjectives
    return statement.verb is not None and kind_of(actor) in statement.verb.subjects


def roles(statements: Statements, draw: Draw) -> Statements:
    """The dog saw the cat → the cat saw the dog."""
    place = draw.between(0, len(statements) - 1)
    old = statements[place]
    if not old.patient or not old.verb or not _takes(old, old.patient):
        return statements
    kinds = {noun.kind for noun in old.verb.objects}
    if kind_of(old.actor) not in kinds or (old.negated and not is_one(old.patient)):
        return statements
    return _with(statements, place, old._replace(actor=old.patient, patient=old.actor))


def qualities(statements: Statements, draw: Draw) -> Statements:
    """The big dog saw the cat → the dog saw the big cat."""
    place = draw.between(0, len(statements) - 1)
    old = statements[place]
    if not old.patient or not old.patient.noun or not old.actor.noun:
        return statements
    suits = [quality in old.patient.noun.adjectives for quality in old.actor.qualities]
    suits += [quality in old.actor.noun.adjectives for quality in old.patient.qualities]
    if not all(suits):
        return statements
    actor = old.actor._replace(qualities=old.patient.qualities)
    patient = old.patient._replace(qualities=old.actor.qualities)
    return _with(statements, place, old._replace(actor=actor, patient=patient))


def determiners(statements: Statements, draw: Draw) -> Statements:
    """Two dogs saw my cat → my dog saw two cats."""
    place = draw.between(0, len(statements) - 1)
    old = statements[place]
    if not old.patient or not old.patient.noun or not old.actor.noun or old.negated:
        return statements
    if old.patient.noun.mass:
        return statements
    actor = old.actor._replace(determined=old.patient.determined)
    patient = old.patient._replace(determined=old.actor.determined)
    return _with(statements, place, old._replace(actor=actor, patient=patient))


def actors(statements: Statements, draw: Draw) -> Statements:
    """Paul slept, and Mary left → Mary slept, and Paul left."""
    if len(statements) < 2:
        return statements
    one, two = statements
    fits = _takes(one, two.actor) and _takes(two, one.actor)
    if not fits or not _may_deny(one, two.actor) or not _may_deny(two, one.actor):
        return statements
    return one._replace(actor=two.actor), two._replace(actor=one.actor)


def _may_deny(statement: Statement, actor: Participant) -> bool:
    return is_one(actor) or not statement.negated


def moments(statements: Statements, draw: Draw) -> Statements:
    """Paul slept in May, and Mary left in June → Paul slept in June, and Mary left in May."""
    return _exchanged(statements, "moment")


def places(statements: Statements, draw: Draw) -> Statements:
    """Paul slept in Oslo, and Mary left → Paul slept, and Mary left in Oslo."""
    return _exchanged(statements, "place")


def company(statements: Statements, draw: Draw) -> Statements:
    """Paul slept with Emma, and Mary left → Paul slept, and Mary left with Emma."""
    return _exchanged(statements, "company")


def _exchanged(statements: Statements, slot: str) -> Statements:
    if len(statements) < 2 or any(statement.quality for statement in statements):
        return statements
    one, two = statements
    if slot == "moment" and one.tense != two.tense:
        return statements
    parts = one._asdict()[slot], two._asdict()[slot]
    return one._replace(**{slot: parts[1]}), two._replace(**{slot: parts[0]})


def denial(statements: Statements, draw: Draw) -> Statements:
    """Paul did not sleep, and Mary left → Paul slept, and Mary did not leave."""
    if len(statements) < 2 or not all(is_one(statement.actor) for statement in statements):
        return statements
    one, two = statements
    return one._replace(negated=two.negated), two._replace(negated=one.negated)


def opposed(statements: Statements, draw: Draw) -> Statements:
    """Paul slept → Paul did not sleep."""
    place = draw.between(0, len(statements) - 1)
    old = statements[place]
    new = old._replace(negated=not old.negated and is_one(old.actor))
    return _with(statements, place, new)


def circumstance(statements: Statements, draw: Draw) -> Statements:
    """Another time, place or number, or a contrary adjective."""
    place = draw.between(0, len(statements) - 1)
    others = rivals(statements[place], draw) + recounted(statements[place], draw)
    return _with(statements, place, draw.pick(others)) if others else statements


def noun(statements: Statements, draw: Draw) -> Statements:
    """Another noun that has a synonym, in the place of one that has."""
    place = draw.between(0, len(statements) - 1)
    old, slot = statements[place], draw.pick(("actor", "patient"))
    mention = old.actor if slot == "actor" else old.patient
    if not mention or not mention.noun or mention.noun.english not in synonyms("noun"):
        return statements
    others = [n for n in nouns_of(mention.noun.kind) if n.english in synonyms("noun")]
    new = mention._replace(noun=draw.pick(others))
    there = [each.word for statement in statements for each in statement.mentions]
    if new.word in there:
        return statements
    return _with(statements, place, old._replace(**{slot: new}))


def adjective(statements: Statements, draw: Draw) -> Statements:
    """Another adjective that has a synonym, in the place of one that has."""
    place = draw.between(0, len(statements) - 1)
    old, slot = statements[place], draw.pick(("actor", "patient"))
    mention = old.actor if slot == "actor" else old.patient
    if not mention or not mention.noun or len(mention.qualities) != 1:
        return statements
    if mention.qualities[0].english not in synonyms("adjective"):
        return statements
    suits = [a for a in mention.noun.adjectives if a.english in synonyms("adjective")]
    new = mention._replace(qualities=(draw.pick(suits),))
    return _with(statements, place, old._replace(**{slot: new}))


def verb(statements: Statements, draw: Draw) -> Statements:
    """Another verb that has a synonym, in the place of one that has."""
    place = draw.between(0, len(statements) - 1)
    old = statements[place]
    if not old.verb or old.verb.name not in synonyms("verb"):
        return statements
    use, patient = ("transitive" if old.patient else "intransitive"), old.patient
    fit = [v for v in verbs(use) if v.name in synonyms("verb") and kind_of(old.actor) in v.subjects]
    if patient:
        fit = [v for v in fit if kind_of(patient) in {noun.kind for noun in v.objects}]
    taken = [statement.verb and statement.verb.name for statement in statements]
    fit = [v for v in fit if v.name not in taken and not v.state]
    return _with(statements, place, old._replace(verb=draw.pick(fit))) if fit else statements


def manner(statements: Statements, draw: Draw) -> Statements:
    """Another adverb that has a synonym, in the place of one that has."""
    place = draw.between(0, len(statements) - 1)
    old = statements[place]
    if not old.manner or old.manner.english not in synonyms("adverb"):
        return statements
    others = [e for e in expressions("manner") if e.english in synonyms("adverb")]
    return _with(statements, place, old._replace(manner=draw.pick(others)))


EXCHANGES: tuple[Change, ...] = (
    roles,
    qualities,
    determiners,
    actors,
    moments,
    places,
    company,
    denial,
)
REPLACEMENTS: tuple[Change, ...] = (opposed, circumstance, noun, adjective, verb, manner)
