"""Verb groups: tense, negation, adverbs and clitics around one verb.

The English group is auxiliaries and a main verb. The French one is

    [ne] [clitic] finite [pas] [adverb] [participles]

A French simple tense renders the English main verb, and possibly its auxiliaries; a French
auxiliary renders an English one where there is one (has eaten, was signed), else the main verb.
"""

from enum import Enum, auto
from typing import NamedTuple

from saccade.data.lingua.tokens import Mot, Phrase, Word
from saccade.data.lingua.words.lexicon import Expression, Verb
from saccade.data.lingua.words.morphology import (
    IL,
    JE,
    Agreement,
    Conjugation,
    Persons,
    conjugate,
)


class Tense(Enum):
    """An English tense; each has one French rendering."""

    PRESENT = auto()  # eats → mange
    PROGRESSIVE = auto()  # is eating → mange
    PAST = auto()  # ate → a mangé; a state: liked → aimait
    PERFECT = auto()  # has eaten → a mangé
    IMPERFECT = auto()  # was eating → mangeait
    PLUPERFECT = auto()  # had eaten → avait mangé
    FUTURE = auto()  # will eat → mangera


class Style(NamedTuple):
    """How a verb is used: everything but the verb and its subject.

    `adverb` is one word in both languages; "not" and "never" go into `negation`. `clitic` is an
    object pronoun before the French verb. `preceding` is the agreement of an object that French
    puts before the verb (clitic or relative), with which a participle after avoir agrees.
    """

    tense: Tense
    negation: str = ""
    adverb: Expression | None = None
    clitic: Mot | None = None
    preceding: Agreement | None = None
    subjunctive: bool = False


_PARTNER = {"not": "pas", "never": "jamais"}
_MODALS = {"can": "pouvoir", "must": "devoir"}
_REFLEXIVE = ("me", "se", "nous", "vous", "se")


def be(subject: Agreement, *, past: bool) -> str:
    """The English verb to be."""
    if past:
        return "was" if subject.person in (JE, IL) else "were"
    return "am" if subject.person == JE else "is" if subject.person == IL else "are"


def _english(verb: Verb, subject: Agreement, style: Style) -> tuple[str, str]:
    """The auxiliary, if any, and the main verb."""
    forms, third = verb.english, subject.person == IL
    match style.tense:
        case Tense.PRESENT:
            if style.negation == "not":
                return ("does" if third else "do"), forms.base
            return "", forms.third if third else forms.base
        case Tense.PAST:
            return ("did", forms.base) if style.negation == "not" else ("", forms.past)
        case Tense.PROGRESSIVE:
            return be(subject, past=False), forms.gerund
        case Tense.IMPERFECT:
            return be(subject, past=True), forms.gerund
        case Tense.PERFECT:
            return ("has" if third else "have"), forms.participle
        case Tense.PLUPERFECT:
            return "had", forms.participle
        case Tense.FUTURE:
            return "will", forms.base


def _simple(french: Conjugation, style: Style) -> Persons | None:
    """The French simple tense, or None where French needs a compound."""
    if style.tense in (Tense.PRESENT, Tense.PROGRESSIVE):
        return french.subjunctive if style.subjunctive else french.present
    if style.tense is Tense.IMPERFECT:
        return french.imperfect
    return french.future if style.tense is Tense.FUTURE else None


def _auxiliary(french: Conjugation, style: Style) -> Persons:
    """The tense of the auxiliary in a compound."""
    if style.subjunctive:
        return french.subjunctive
    return french.imperfect if style.tense is Tense.PLUPERFECT else french.present


class _Frame:
    """The words of negation and adverb, and their places in both languages."""

    def __init__(self, style: Style) -> None:
        self.english: list[Word] = []
        self.before: list[Mot] = []
        self.after: list[Mot] = []
        if style.negation:
            negation = Word(style.negation, "negation")
            self.english.append(negation)
            self.before.append(Mot("ne", negation, (), "n'"))
            self.after.append(Mot(_PARTNER[style.negation], negation))
        if style.adverb:
            adverb = Word(style.adverb.english, "adverb")
            self.english.append(adverb)
            self.after.append(Mot(style.adverb.french, adverb))


def _clitics(verb: Verb, subject: Agreement, main: Word, style: Style) -> list[Mot]:
    if verb.reflexive:
        return [_reflexive(subject, main)]
    return [style.clitic] if style.clitic else []


def _reflexive(subject: Agreement, sure: Word) -> Mot:
    text = _REFLEXIVE[subject.person]
    return Mot(text, sure, (), text[0] + "'" if text in ("me", "se") else "")


def active(verb: Verb, subject: Agreement, style: Style) -> Phrase:
    """A verb in the active voice."""
    auxiliary_text, main_text = _english(verb, subject, style)
    main, frame = Word(main_text, "verb"), _Frame(style)
    auxiliaries = [Word(auxiliary_text, "auxiliary")] if auxiliary_text else []
    english = [*auxiliaries, *frame.english, main]
    start = [*frame.before, *_clitics(verb, subject, main, style)]
    simple = _simple(verb.french, style)
    if simple is None and verb.state and style.tense is Tense.PAST and not style.subjunctive:
        simple = verb.french.imperfect
    if simple:
        finite = Mot(simple[subject.person], main, tuple(auxiliaries))
        return Phrase(english, [*start, finite, *frame.after])
    helper = conjugate("être" if verb.moves else "avoir")
    agreeing = subject if verb.moves else style.preceding or Agreement()
    finite = Mot(
        _auxiliary(helper, style)[subject.person], auxiliaries[0] if auxiliaries else main, (main,)
    )
    participle = Mot(verb.french.participle[agreeing.form], main)
    return Phrase(english, [*start, finite, *frame.after, participle])


def to_be(subject: Agreement, style: Style, tag: str = "verb") -> Phrase:
    """To be, before an adjective; its past is a state: was → était. `tag` is its part of speech."""
    frame, etre, avoir = _Frame(style), conjugate("être"), conjugate("avoir")
    french = _simple(etre, style)
    if style.tense is Tense.FUTURE:
        will, main = Word("will", "auxiliary"), Word("be", tag)
        english = [will, *frame.english, main]
        finite = [Mot(etre.future[subject.person], main, (will,)), *frame.after]
    else:
        main = Word(be(subject, past=style.tense is Tense.PAST), tag)
        english = [main, *frame.english]
        if french is None and style.subjunctive:
            finite = [Mot(avoir.subjunctive[subject.person], main), *frame.after, Mot("été", main)]
        else:
            finite = [Mot((french or etre.imperfect)[subject.person], main), *frame.after]
    return Phrase(english, [*frame.before, *finite])


def passive(verb: Verb, subject: Agreement, style: Style) -> Phrase:
    """To be done; its past is an event: was signed → a été signé."""
    frame, done = _Frame(style), Word(verb.english.participle, "verb")
    participle = Mot(verb.french.participle[subject.form], done)
    if style.tense is not Tense.PAST:
        phrase = to_be(subject, style, "auxiliary")
        return Phrase([*phrase.english, done], [*phrase.french, participle])
    was = Word(be(subject, past=True), "auxiliary")
    helper = Mot(_auxiliary(conjugate("avoir"), style)[subject.person], was)
    french = [*frame.before, helper, *frame.after, Mot("été", was), participle]
    return Phrase([was, *frame.english, done], french)


def infinitive(verb: Verb, subject: Agreement) -> Phrase:
    """The bare infinitive; a reflexive still agrees with the subject: je veux me reposer."""
    word = Word(verb.english.base, "verb")
    mots = [_reflexive(subject, word)] if verb.reflexive else []
    return Phrase([word], [*mots, Mot(verb.french.infinitive, word)])


def catenative(verb: Verb, subject: Agreement, style: Style) -> Phrase:
    """A verb that leads to an infinitive: tries to → essaie de."""
    phrase = active(verb, subject, style)
    to = Word("to", "particle")
    phrase.english.append(to)
    if verb.preposition:
        liaison = "d'" if verb.preposition == "de" else ""
        phrase.french.append(Mot(verb.preposition, to, (), liaison))
    return phrase


def modal(name: str, subject: Agreement, *, negated: bool) -> Phrase:
    """Can and must; "cannot" is one English word that three French words render."""
    word = Word("cannot" if negated and name == "can" else name, "auxiliary")
    finite = Mot(conjugate(_MODALS[name]).present[subject.person], word)
    if not negated:
        return Phrase([word], [finite])
    negation = word if name == "can" else Word("not", "negation")
    english = [word] if negation is word else [word, negation]
    return Phrase(english, [Mot("ne", negation, (), "n'"), finite, Mot("pas", negation)])
