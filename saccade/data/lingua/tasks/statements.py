"""Statements: what a sentence says, apart from how it is said.

A sentence says one statement or several, joined by a comma and "and". A statement tells of one
happening (who did what to whom, how, with whom, where, when) or of how somebody or something is.
The grammar writes them; here they keep their parts, so that a part can be changed and the change
of meaning is known.
"""

from functools import cache
from typing import NamedTuple

from saccade.data.lingua.adverbials import in_month, in_year, on_date
from saccade.data.lingua.draw import is_held_out
from saccade.data.lingua.tokens import Word, fixed, mark
from saccade.data.lingua.verb_groups import Style, Tense, active, passive, to_be
from saccade.data.lingua.words.lexicon import Adjective, Expression, Noun, Verb, expressions
from saccade.data.lingua.words.morphology import IL, ILS, Agreement
from saccade.data.lingua.words.synonyms import other_adjective, other_adverb, other_noun, other_verb


@cache
def numbers() -> frozenset[str]:
    """The numbers that stand before a noun; they make it plural."""
    return frozenset(number.english for number in expressions("numbers"))


class Participant(NamedTuple):
    """Who or what a statement speaks of: a name, or a noun with its determiner and adjectives."""

    name: Expression | None = None
    noun: Noun | None = None
    determined: str = ""
    qualities: tuple[Adjective, ...] = ()

    @property
    def word(self) -> str:
        """The name or noun itself."""
        named_or_noun = self.name or self.noun
        assert named_or_noun is not None
        return named_or_noun.english


class Moment(NamedTuple):
    """A time: year, then perhaps month, then perhaps day; or one of a list of expressions."""

    kind: str  # "date", or the name of the list
    parts: tuple[int, ...]


class Statement(NamedTuple):
    """One happening, or with `quality` in the place of `verb`, one state."""

    actor: Participant
    tense: Tense
    verb: Verb | None = None
    quality: Adjective | None = None
    negated: bool = False
    patient: Participant | None = None
    manner: Expression | None = None
    company: Participant | None = None
    place: Expression | None = None
    moment: Moment | None = None

    @property
    def mentions(self) -> list[Participant]:
        """Everything that it speaks of."""
        return [m for m in (self.actor, self.patient, self.company) if m]


class Wording(NamedTuple):
    """How a statement is said: all of these leave its meaning as it is.

    `other_words` are the dictionary forms that a synonym stands for (`words/synonyms.py`).
    """

    time_first: bool = False
    passive: bool = False
    contracted: bool = False
    other_words: frozenset[str] = frozenset()


PLAIN = Wording()


def has_held_out(statement: Statement) -> bool:
    """Whether an adjective or the verb meets a noun that training must not show it with."""
    pairs = [
        (quality.english, mention.noun.english)
        for mention in statement.mentions
        if mention.noun
        for quality in mention.qualities
    ]
    if statement.verb and statement.patient and statement.patient.noun:
        pairs.append((statement.verb.name, statement.patient.noun.english))
    if statement.quality and statement.actor.noun:
        pairs.append((statement.quality.english, statement.actor.noun.english))
    return any(is_held_out(*pair) for pair in pairs)


def say(mention: Participant) -> list[Word]:
    """Paul; the big dog; two big dogs; no big dog; not every big dog."""
    if mention.name:
        return fixed(*mention.name[:4]).english
    assert mention.noun is not None
    tag = "number" if mention.determined in numbers() else "determiner"
    words = [Word(text, tag) for text in mention.determined.split()]
    words += [Word(quality.english, "adjective") for quality in mention.qualities]
    plural = mention.determined in numbers()
    words.append(Word(mention.noun.english_plural if plural else mention.noun.english, "noun"))
    return words


def _agreement(mention: Participant) -> Agreement:
    return Agreement(ILS if mention.determined in numbers() else IL)


def say_moment(moment: Moment) -> list[Word]:
    """In 1992; in May 1992; on 3 May 1992; on Monday."""
    if moment.kind != "date":
        return fixed(*expressions(moment.kind)[moment.parts[0]][:4]).english
    if len(moment.parts) == 3:
        return on_date(*reversed(moment.parts)).english
    if len(moment.parts) == 2:
        return in_month(*reversed(moment.parts)).english
    return in_year(*moment.parts).english


def say_statement(statement: Statement, wording: Wording = PLAIN) -> list[Word]:
    """The words of a statement, without a full stop."""
    statement = _reworded(statement, wording.other_words)
    when = say_moment(statement.moment) if statement.moment else []
    words = [*when, *mark(",").english] if when and wording.time_first else []
    words += _core(statement, wording)
    if statement.manner:
        words += fixed(*statement.manner[:4]).english
    if statement.company:
        words += [Word("with", "preposition"), *say(statement.company)]
    if statement.place:
        words += [Word("in", "preposition"), *fixed(*statement.place[:4]).english]
    return words if wording.time_first else words + when


def _reworded(statement: Statement, other_words: frozenset[str]) -> Statement:
    """The statement with synonyms for these words."""
    if not other_words:
        return statement
    verb, patient = statement.verb, statement.patient
    quality, manner = statement.quality, statement.manner
    return statement._replace(
        actor=_reworded_mention(statement.actor, other_words),
        patient=_reworded_mention(patient, other_words) if patient else None,
        verb=other_verb(verb) if verb and verb.name in other_words else verb,
        quality=_reworded_adjective(quality, other_words) if quality else None,
        manner=other_adverb(manner) if manner and manner.english in other_words else manner,
    )


def _reworded_mention(mention: Participant, other_words: frozenset[str]) -> Participant:
    noun = mention.noun
    if noun and noun.english in other_words:
        noun = other_noun(noun)
    qualities = [_reworded_adjective(quality, other_words) for quality in mention.qualities]
    return mention._replace(noun=noun, qualities=tuple(qualities))


def _reworded_adjective(adjective: Adjective, other_words: frozenset[str]) -> Adjective:
    return other_adjective(adjective) if adjective.english in other_words else adjective


def _core(statement: Statement, wording: Wording) -> list[Word]:
    """Who did what to whom, or who is how."""
    actor, agreement = say(statement.actor), _agreement(statement.actor)
    style = Style(statement.tense, "not" if statement.negated else "")
    if statement.quality:
        adjective = Word(statement.quality.english, "adjective")
        return [*actor, *_contract(to_be(agreement, style).english, wording), adjective]
    verb, patient = statement.verb, statement.patient
    assert verb is not None
    if patient and wording.passive:
        group = passive(verb, _agreement(patient), style).english
        by = Word("by", "preposition")
        return [*say(patient), *_contract(group, wording), by, *actor]
    words = [*actor, *_contract(active(verb, agreement, style).english, wording)]
    if verb.particle:
        words.append(Word(verb.particle, "preposition"))
    return words + (say(patient) if patient else [])


def _contract(group: list[Word], wording: Wording) -> list[Word]:
    """Did not → didn't; will not → won't."""
    if not wording.contracted or len(group) < 2 or group[1].text != "not":
        return group
    text = "won't" if group[0].text == "will" else group[0].text + "n't"
    return [Word(text, group[0].tag), *group[2:]]


def say_all(statements: list[list[Word]]) -> list[Word]:
    """Statements one after the other: …, and … ."""
    words = statements[0]
    for statement in statements[1:]:
        words = [*words, *mark(",").english, Word("and", "conjunction"), *statement]
    return words + mark(".").english
