"""Saying the same in other words."""

from typing import NamedTuple

from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tasks.statements import PLAIN, Participant, Statement, Wording, numbers
from saccade.data.lingua.words.synonyms import synonyms


class Saying(NamedTuple):
    """A statement and how it is said."""

    statement: Statement
    wording: Wording = PLAIN


class Rewording(NamedTuple):
    """One thing that can be said otherwise: in which statement, and what.

    `what` is "time first", "passive", "contracted", "order" or the word that has a synonym.
    """

    place: int
    what: str


Sayings = tuple[Saying, ...]


def rewordings(sayings: Sayings) -> list[Rewording]:
    """Everything that could be said otherwise."""
    found = [Rewording(0, "order")] if len(sayings) > 1 else []
    for place, (statement, _) in enumerate(sayings):
        whats = with_synonyms(statement)
        whats += ["time first"] if statement.moment else []
        whats += ["contracted"] if statement.negated else []
        whats += ["passive"] if can_be_passive(statement) else []
        found += [Rewording(place, what) for what in whats]
    return found


def reworded(sayings: Sayings, chosen: list[Rewording]) -> Sayings:
    """The same, said the other way in each of these points."""
    wordings = [saying.wording for saying in sayings]
    for place, what in chosen:
        old = wordings[place]
        if what == "time first":
            wordings[place] = old._replace(time_first=not old.time_first)
        elif what == "passive":
            wordings[place] = old._replace(passive=not old.passive)
        elif what == "contracted":
            wordings[place] = old._replace(contracted=not old.contracted)
        elif what != "order":
            wordings[place] = old._replace(other_words=old.other_words ^ {what})
    result = tuple(Saying(saying.statement, new) for saying, new in zip(sayings, wordings))
    return result[::-1] if any(what == "order" for _, what in chosen) else result


def with_synonyms(statement: Statement) -> list[str]:
    """The words of a statement that have a synonym."""
    found = [m.noun.english for m in statement.mentions if m.noun]
    found = [english for english in found if english in synonyms("noun")]
    qualities = [quality for m in statement.mentions for quality in m.qualities]
    qualities += [statement.quality] if statement.quality else []
    names = [quality.english for quality in qualities]
    found += [english for english in names if english in synonyms("adjective")]
    found += [v.name for v in (statement.verb,) if v and v.name in synonyms("verb")]
    return found + [m.english for m in (statement.manner,) if m and m.english in synonyms("adverb")]


def can_be_passive(statement: Statement) -> bool:
    """Whether the passive says the same: two dogs, or a dog, may be others when it is denied."""
    verb, patient = statement.verb, statement.patient
    if verb is None or patient is None or not verb.direct:
        return False
    return not statement.negated or not (_counts(statement.actor) or _counts(patient))


def _counts(mention: Participant) -> bool:
    return mention.determined == "a" or mention.determined in numbers()


def fitted(saying: Saying, statement: Statement, draw: Draw) -> Saying:
    """Another statement in the same wording, as far as it goes; new words come as chance has it."""
    old, words = set(with_synonyms(saying.statement)), with_synonyms(statement)
    chosen = {word for word in words if word not in old and draw.chance(0.5)}
    kept = saying.wording.other_words.intersection(words) | chosen
    passive = saying.wording.passive and can_be_passive(statement)
    return Saying(statement, saying.wording._replace(other_words=kept, passive=passive))
