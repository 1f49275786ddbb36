"""Clauses without a doer: the weather, and what there is."""

from saccade.data.lingua.adverbials import place, tail
from saccade.data.lingua.clauses import Frame, modified
from saccade.data.lingua.draw import Draw
from saccade.data.lingua.noun_phrases import simple
from saccade.data.lingua.tokens import Mot, Phrase, Word, fixed
from saccade.data.lingua.verb_groups import Style, Tense, active, be
from saccade.data.lingua.words.lexicon import nouns_of, verbs
from saccade.data.lingua.words.morphology import IL, Agreement, conjugate


def weather(draw: Draw, frame: Frame, size: int) -> Phrase:
    """It was raining → il pleuvait."""
    verb, phrase = draw.pick(verbs("weather")), fixed("it", "il", "pronoun")
    style = Style(draw.pick(frame.active))
    phrase.add(active(verb, Agreement(), style))
    tense = None if frame.dated else style.tense
    phrase.add(tail(draw, size - len(phrase.english), tense, alive=False))
    return phrase


def there_is(draw: Draw, tense: Tense, size: int) -> Phrase:
    """There is a dog in the garden → il y a un chien dans le jardin."""
    where = place(draw, draw.between(2, 4))
    noun = draw.pick(nouns_of(draw.pick(("person", "animal", "thing"))))
    left = size - 2 - len(where.english) - (tense is Tense.FUTURE)
    what = modified(draw, noun, left, 1, "exists") if left >= 6 else None
    what = what or simple(draw, noun, max(2, min(left, 4)), "exists")
    there, will, avoir = Word("there", "pronoun"), Word("will", "auxiliary"), conjugate("avoir")
    if tense is Tense.FUTURE:
        verb = Word("be", "verb")
        has, words = Mot(avoir.future[IL], verb, (will,)), [there, will, verb]
    else:
        verb = Word(be(what.agreement, past=tense is Tense.PAST), "verb")
        forms = avoir.imperfect if tense is Tense.PAST else avoir.present
        has, words = Mot(forms[IL], verb), [there, verb]
    phrase = Phrase(words, [Mot("il", there), Mot("y", there), has])
    phrase.add(what.phrase)
    phrase.add(where)
    return phrase
