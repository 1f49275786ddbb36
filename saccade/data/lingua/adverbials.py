"""Adverbials: when, where, with whom and how."""

from collections.abc import Mapping
from functools import cache

from saccade.data.lingua.draw import Draw
from saccade.data.lingua.noun_phrases import named, simple
from saccade.data.lingua.tokens import Mot, Phrase, Word, de, definite, empty, fixed
from saccade.data.lingua.verb_groups import Tense
from saccade.data.lingua.words.lexicon import Expression, expressions, nouns_of

_TIMES: Mapping[Tense, tuple[str, ...]] = {
    Tense.PRESENT: ("present", "any time", "weekdays"),
    Tense.PAST: ("past", "any time", "weekdays"),
    Tense.IMPERFECT: ("past", "any time", "weekdays"),
    Tense.FUTURE: ("future", "any time", "weekdays"),
}
_YEARS: Mapping[Tense, tuple[int, int]] = {
    Tense.PAST: (1950, 2019),
    Tense.IMPERFECT: (1950, 2019),
    Tense.FUTURE: (2030, 2069),
}
# English preposition: French preposition before a common noun.
_PLACE_PREPOSITIONS = (("in", "dans"), ("in", "dans"), ("behind", "derrière"), ("near", "près"))
_COMPANY = (("with", "avec"), ("with", "avec"), ("without", "sans"), ("for", "pour"))


def in_year(year: int) -> Phrase:
    """In 1992 → en 1992."""
    return fixed(f"in {year}", f"en {year}", "preposition,number", "0 1")


def in_month(month: int, year: int) -> Phrase:
    """In August 1992 → en août 1992."""
    english, french = expressions("months")[month - 1][:2]
    tags = "preposition,proper noun,number"
    return fixed(f"in {english} {year}", f"en {french} {year}", tags, "0 1 2")


def on_date(day: int, month: int, year: int) -> Phrase:
    """On 3 May 1992 → le 3 mai 1992; the first of a month is le 1er."""
    english, french = expressions("months")[month - 1][:2]
    ordinal = "1er" if day == 1 else str(day)
    tags = "preposition,number,proper noun,number"
    return fixed(f"on {day} {english} {year}", f"le {ordinal} {french} {year}", tags, "0 1 2 3")


def years_ago(number: Expression) -> Phrase:
    """Two years ago → il y a deux ans."""
    french = f"il y a {number.french} ans"
    return fixed(f"{number.english} years ago", french, "number,noun,adverb", "2 2 2 0 1")


def time(draw: Draw, tense: Tense, size: int) -> Phrase | None:
    """A time of `size` words that suits the tense, if there is one."""
    years = _YEARS.get(tense)
    if years and size > 1 and (size == 4 or draw.chance(0.5)):
        year = draw.between(*years)
        if size == 2:
            return in_year(year)
        if size == 4:
            return on_date(draw.between(1, 28), draw.between(1, 12), year)
        if years[0] < 2000 and draw.chance(0.3):
            return years_ago(draw.pick(expressions("numbers")))
        return in_month(draw.between(1, 12), year)
    choices = _times(tense, size)
    return fixed(*draw.pick(choices)[:4]) if choices else None


@cache
def _times(tense: Tense, size: int) -> list[Expression]:
    """The expressions of so many English words that tell a time which suits the tense."""
    if tense is Tense.PROGRESSIVE:
        choices = expressions("present")[:4]
    else:
        choices = tuple(e for name in _TIMES.get(tense, ()) for e in expressions(name))
    return [choice for choice in choices if len(choice.english.split()) == size]


def manner(draw: Draw) -> Phrase:
    """One English word that says how."""
    return fixed(*draw.pick(expressions("manner"))[:4])


def named_place(draw: Draw, preposition: str) -> Phrase:
    """To Paris → à Paris; to France → en France; to Japan → au Japon; from Japan → du Japon."""
    word = Word(preposition, "preposition")
    if draw.chance(0.5):
        place = named(draw.pick(expressions("cities")), "place").phrase
        head = de(word) if preposition == "from" else Mot("à", word)
        return Phrase([word, *place.english], [head, *place.french])
    name = draw.pick(expressions("countries"))
    country = Word(name.english, "proper noun")
    article = definite(country, feminine=name.feminine, plural=False)
    if name.feminine:
        lead = [de(word) if preposition == "from" else Mot("en", word)]
    else:
        lead = [de(word) if preposition == "from" else Mot("à", word), article]
    return Phrase([word, country], [*lead, Mot(name.french, country)])


def place(draw: Draw, size: int, preposition: str = "") -> Phrase:
    """A place in `size` words or so; `preposition` (to, from, in) where the verb asks for one."""
    if size == 2 and not preposition and draw.chance(0.1):
        return fixed("at home", "à la maison", "preposition,noun", "0 1 1")
    if size <= 2:
        return named_place(draw, preposition or "in")
    english, french = draw.pick(_PLACE_PREPOSITIONS)
    if preposition:
        english, french = preposition, {"to": "à", "from": "de", "in": "dans"}[preposition]
    word = Word(english, "preposition")
    words, mots = [word], [de(word) if french == "de" else Mot(french, word)]
    if size >= 5 and not preposition and draw.chance(0.3):
        english = "in front of"
        words = [Word("in", "preposition"), Word("front", "noun"), Word("of", "preposition")]
        mots = [Mot("devant", words[1], (words[0], words[2]))]
    elif french == "près":
        mots.append(de(word))
    use = "of" if mots[-1].text == "de" else "plain"
    beside = english != "in" and not preposition
    noun = draw.pick(nouns_of("height" if beside and draw.chance(0.4) else "place"))
    inside = simple(draw, noun, max(2, size - len(words)), use).phrase
    return Phrase([*words, *inside.english], [*mots, *inside.french])


def company(draw: Draw, size: int) -> Phrase:
    """With Paul; without her old friends; for the minister."""
    english, french = draw.pick(_COMPANY)
    word = Word(english, "preposition")
    if size == 2:
        who = named(draw.pick(expressions("people")), "person").phrase
    else:
        who = simple(draw, draw.pick(nouns_of("person")), size - 1).phrase
    return Phrase([word, *who.english], [Mot(french, word), *who.french])


def tail(draw: Draw, size: int, tense: Tense | None, *, alive: bool) -> Phrase:
    """Adverbials of about `size` words in all: how, with whom, where and, given a tense, when."""
    phrase = empty()
    if size <= 0:
        return phrase
    when = None
    if tense and (draw.chance(0.6) or size == 1 or size > 5):
        when = time(draw, tense, draw.between(1, min(4, size)))
    left = size - (len(when.english) if when else 0)
    if alive and (left == 1 or (left > 5 and draw.chance(0.5))):
        phrase.add(manner(draw))
        left -= 1
    if alive and left >= 2 and (left > 5 or draw.chance(0.4)):
        share = left if left <= 4 else min(4, left - 2)
        phrase.add(company(draw, share))
        left -= share
    if left >= 2:
        phrase.add(place(draw, min(left, 6)))
    if when:
        phrase.add(when)
    return phrase
