"""Noun phrases: determiners, adjectives that move, names, pronouns, and "and" between them.

Nothing here may depend on what the English does not show. So "they" is always ils, "you" always
vous, and the members of a coordination carry no phrases of their own: in "the letters of the
woman and the minister" nobody could tell which words agree with what follows.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal, NamedTuple

from saccade.data.lingua.draw import Draw
from saccade.data.lingua.tokens import Mot, Phrase, Word, de, definite, fixed, mark
from saccade.data.lingua.words.lexicon import Adjective, Expression, Noun, expressions, nouns_of
from saccade.data.lingua.words.morphology import IL, ILS, JE, NOUS, VOUS, Agreement


class NounPhrase(NamedTuple):
    """A phrase, what agrees with it, and the nouns it is about (none for names)."""

    phrase: Phrase
    agreement: Agreement
    nouns: tuple[Noun, ...]
    kind: str


class Quality(NamedTuple):
    """An adjective as it stands in a phrase."""

    adjective: Adjective
    very: bool = False


_PRONOUNS: tuple[tuple[str, str, str, Agreement], ...] = (
    ("I", "je", "j'", Agreement(JE)),
    ("he", "il", "", Agreement(IL)),
    ("she", "elle", "", Agreement(IL, True)),
    ("we", "nous", "", Agreement(NOUS)),
    ("you", "vous", "", Agreement(VOUS)),
    ("they", "ils", "", Agreement(ILS)),
)
# English: French singular masculine, feminine, plural
_POSSESSIVES: Mapping[str, tuple[str, str, str]] = {
    "my": ("mon", "ma", "mes"),
    "his": ("son", "sa", "ses"),
    "her": ("son", "sa", "ses"),
    "our": ("notre", "notre", "nos"),
    "your": ("votre", "votre", "vos"),
    "their": ("leur", "leur", "leurs"),
}
_OWNERS = ("my", "his", "her", "our", "your", "their")
# Where a phrase stands decides which determiners it may take:
#   negated  the object of a negated verb, where French writes de for a and any
#   loved    the object of to like, where a bare noun takes le, la, les
#   of       after de, which does not go with the French for "some"
#   headed   before a phrase with "of", which goes best with "the"
#   exists   after "there is"
Use = Literal["plain", "negated", "loved", "of", "headed", "exists"]

_OF = (
    *("the",) * 9,
    *("the s",) * 5,
    *("a",) * 7,
    *("owner",) * 4,
    *("owner s",) * 3,
    *("this", "this", "this s", "number s", "number s", "several s", "every", "all s"),
)
_DEFINITE = ("the", "the", "the", "the s", "the s", "owner", "owner s", "this", "this s")
# How often each determiner comes; a final s asks for the plural.
_COUNT_MENU: Mapping[Use, tuple[str, ...]] = {
    "plain": (*_OF, "some s", "many s"),
    "negated": ("the", "the", "the s", "owner", "owner s", "a", "a", "any s", "this"),
    "loved": _DEFINITE,
    "of": _OF,
    "headed": ("the", "the", "the s"),
    "exists": ("a", "a", "a", "number s", "several s", "many s", "some s"),
}
_MASS_MENU: Mapping[Use, tuple[str, ...]] = {
    "plain": ("the", "the", "owner", "this", "some", "some"),
    "negated": ("the", "owner", "any", "any"),
    "loved": ("the", "owner", "this"),
    "of": ("the", "owner", "this"),
    "headed": ("the",),
    "exists": ("some",),
}
_INVARIABLE = {"these": "ces", "several": "plusieurs", "every": "chaque"}
_UNSPOKEN: Mapping[Use, str] = {"negated": "any", "loved": "the"}


def pronoun(draw: Draw) -> NounPhrase:
    """A subject pronoun."""
    english, french, liaison, agreement = draw.pick(_PRONOUNS)
    word = Word(english, "pronoun")
    return NounPhrase(Phrase([word], [Mot(french, word, (), liaison)]), agreement, (), "person")


def named(name: Expression, kind: str) -> NounPhrase:
    """A person or a city, which take no article."""
    return NounPhrase(fixed(*name[:4]), _third(name.feminine, name.plural), (), kind)


def country(name: Expression) -> NounPhrase:
    """A country, which takes an article in French alone: France → la France."""
    phrase = fixed(*name[:4])
    phrase.french.insert(0, definite(phrase.english[0], feminine=name.feminine, plural=False))
    return NounPhrase(phrase, _third(name.feminine, False), (), "group")


def entity(name: Expression) -> NounPhrase:
    """A name with an article in both languages: the European Union → l'Union européenne."""
    phrase, the = fixed(*name[:4]), Word("the", "determiner")
    phrase.english.insert(0, the)
    phrase.french.insert(0, definite(the, feminine=name.feminine, plural=name.plural))
    return NounPhrase(phrase, _third(name.feminine, name.plural), (), "group")


def _third(feminine: bool, plural: bool) -> Agreement:
    return Agreement(ILS if plural else IL, feminine)


def determiner(name: str, noun: Noun, *, plural: bool, bare_adjective: bool) -> Phrase:
    """A determiner, `name` being its English word or a number.

    `bare_adjective` tells that an adjective stands first in French: des becomes de.
    """
    feminine, numbers = noun.feminine, _numbers()
    word = Word(name, "number" if name in numbers else "determiner")
    if name == "the":
        return Phrase([word], [definite(word, feminine=feminine, plural=plural)])
    if name == "a":
        return Phrase([word], [Mot("une" if feminine else "un", word)])
    if name in _POSSESSIVES:
        masculine, her, several = _POSSESSIVES[name]
        text = several if plural else her if feminine else masculine
        return Phrase([word], [Mot(text, word, (), masculine if text in ("ma", "sa") else "")])
    if name == "this":
        return Phrase([word], [Mot("cette", word) if feminine else Mot("ce", word, (), "cet")])
    if name == "some":
        return Phrase([word], partitive(word, noun, plural, bare_adjective))
    if name == "any":
        return Phrase([word], [de(word)])
    if name == "many":
        return Phrase([word], [Mot("beaucoup", word), de(word)])
    if name == "all":
        the = Word("the", "determiner")
        return Phrase([word, the], [Mot("toutes" if feminine else "tous", word), Mot("les", the)])
    return Phrase([word], [Mot((_INVARIABLE | numbers)[name], word)])


@cache
def _numbers() -> dict[str, str]:
    """The English numbers and their French."""
    return {number.english: number.french for number in expressions("numbers")}


def partitive(word: Word, noun: Noun, plural: bool, bare_adjective: bool) -> list[Mot]:
    """Some: du, de la, de l', des, or de before an adjective in the plural."""
    if not plural:
        return [de(word), definite(word, feminine=noun.feminine, plural=False)]
    return [de(word) if bare_adjective else Mot("des", word)]


def described(
    noun: Noun,
    *,
    plural: bool = False,
    determined: str = "",
    qualities: tuple[Quality, ...] = (),
    bare: str = "some",
) -> NounPhrase:
    """A noun with its determiner and adjectives.

    French adjectives after the noun stand in reverse: European economic policy → politique
    économique européenne. Without a determiner, `bare` says which one French supplies.
    """
    agreement = _third(noun.feminine, plural)
    head = Word(noun.english_plural if plural else noun.english, "noun")
    first = any(quality.adjective.before for quality in qualities)
    if determined:
        phrase = determiner(determined, noun, plural=plural, bare_adjective=first)
    else:
        unspoken = determiner(bare, noun, plural=plural, bare_adjective=first)
        phrase = Phrase([], [Mot(m.text, head, (), m.liaison, m.article) for m in unspoken.french])
    after: list[Mot] = []
    for quality in qualities:
        words, mots = _quality(quality, agreement)
        phrase.english.extend(words)
        if quality.adjective.before:
            phrase.french.extend(mots)
        else:
            after[:0] = mots
    phrase.english.append(head)
    phrase.french.append(Mot(noun.french_plural if plural else noun.french, head))
    phrase.french.extend(after)
    return NounPhrase(phrase, agreement, (noun,), noun.kind)


def _quality(quality: Quality, agreement: Agreement, *, attributive: bool = True) -> Phrase:
    adjective, word = quality.adjective, Word(quality.adjective.english, "adjective")
    liaison = adjective.liaison if attributive and agreement == (IL, False) else ""
    mot = Mot(adjective.forms[agreement.form], word, (), liaison)
    if not quality.very:
        return Phrase([word], [mot])
    very = Word("very", "adverb")
    return Phrase([very, word], [Mot("très", very), mot])


def predicative(draw: Draw, subject: NounPhrase, *, very: bool) -> Phrase | None:
    """An adjective after "to be", agreeing with the subject."""
    choices = (subject.nouns[0] if subject.nouns else nouns_of(subject.kind)[0]).adjectives
    choices = [a for a in choices if a.rank <= 3 and a.english != "new"]
    nouns = subject.nouns
    adjective = draw.combine(choices, lambda a: [(a.english, noun.english) for noun in nouns])
    if adjective is None:
        return None
    quality = Quality(adjective, very and adjective.gradable)
    return _quality(quality, subject.agreement, attributive=False)


def _qualities(draw: Draw, noun: Noun, count: int) -> tuple[Quality, ...]:
    """Up to `count` words of adjectives, in their English order."""
    chosen: dict[int, Quality] = {}
    for _ in range(count):
        left = [a for a in noun.adjectives if a.rank not in chosen] if chosen else noun.adjectives
        adjective = draw.combine(left, lambda a: [(a.english, noun.english)])
        if adjective:
            chosen[adjective.rank] = Quality(adjective)
    if len(chosen) == 1 and count > 1:
        ((rank, quality),) = chosen.items()
        chosen[rank] = Quality(quality.adjective, quality.adjective.gradable)
    return tuple(chosen[rank] for rank in sorted(chosen))


def simple(draw: Draw, noun: Noun, size: int, use: Use = "plain") -> NounPhrase:
    """A determiner, adjectives and `noun`, in about `size` words."""
    if size == 1:
        return described(noun, plural=not noun.mass, bare=_UNSPOKEN.get(use, "some"))
    name, _, plural = draw.pick((_MASS_MENU if noun.mass else _COUNT_MENU)[use]).partition(" ")
    if name == "owner":
        name = draw.pick(_OWNERS)
    elif name == "number":
        name = draw.pick(expressions("numbers")).english
    elif name == "this" and plural:
        name = "these"
    qualities = _qualities(draw, noun, size - 2 - (name == "all"))
    result = described(noun, plural=bool(plural), determined=name, qualities=qualities)
    if name == "a" and use == "negated":
        result.phrase.french[0] = de(result.phrase.english[0])
    return result


def about_names(draw: Draw, kind: str) -> NounPhrase | None:
    """A proper name of this kind, where there are any."""
    if kind == "person":
        return named(draw.pick(expressions("people")), kind)
    if kind == "group":
        if draw.chance(0.6):
            return entity(draw.pick(expressions("entities")))
        return country(draw.pick(expressions("countries")))
    return None


def coordinated(members: list[NounPhrase]) -> NounPhrase:
    """A and B; A, B and C. Masculine unless all are feminine."""
    whole = Phrase([], [])
    for index, member in enumerate(members):
        if index == len(members) - 1:
            whole.add(fixed("and", "et", "conjunction"))
        elif index:
            whole.add(mark(","))
        whole.add(member.phrase)
    nouns = tuple(noun for member in members for noun in member.nouns)
    feminine = all(member.agreement.feminine for member in members)
    return NounPhrase(whole, Agreement(ILS, feminine), nouns, members[0].kind)
