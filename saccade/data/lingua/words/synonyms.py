"""Other words for the same thing: big and large, to repair and to fix."""

from functools import cache

from saccade.data.lingua.words.lexicon import Adjective, Expression, Noun, Verb
from saccade.data.lingua.words.morphology import EnglishVerb, english_plural, english_verb
from saccade.data.lingua.words.tables import rows


@cache
def synonyms(wanted: str) -> dict[str, str]:
    """The dictionary forms of a use (adjective, noun, verb, adverb), each with its other word."""
    table = rows("synonyms", "use", "english", "other")
    return {english: other for use, english, other in table if use == wanted}


def other_adjective(adjective: Adjective) -> Adjective:
    """Large for big."""
    return adjective._replace(english=synonyms("adjective")[adjective.english])


def other_noun(noun: Noun) -> Noun:
    """Bike for bicycle."""
    english = synonyms("noun")[noun.english]
    return noun._replace(english=english, english_plural=english_plural(english))


def other_verb(verb: Verb) -> Verb:
    """Search for instead of look for, in all its forms."""
    english, particle = _other_forms(verb.name)
    return verb._replace(english=english, particle=particle)


@cache
def _other_forms(name: str) -> tuple[EnglishVerb, str]:
    first, *irregular = synonyms("verb")[name].split()
    base, _, particle = first.partition("_")
    return english_verb(base, *irregular), particle


def other_adverb(adverb: Expression) -> Expression:
    """Rapidly for quickly."""
    return adverb._replace(english=synonyms("adverb")[adverb.english])
