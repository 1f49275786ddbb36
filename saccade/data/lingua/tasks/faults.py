"""Grammatical faults: each breaks one rule of English in a sentence that keeps all of them.

A fault lists the edits that a sentence offers it. It leaves out every place where the result
could still be read as English: "they find the bicycle red" is a sentence, in "the friends of the
boy who sleep" it may be the friends who do, and "the committee have met" is British.

Most kinds come in opposite directions ("the dog sleep", "the dogs sleeps"), so that no word is a
sign of a fault by itself.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from saccade.data.lingua.tokens import TAGS, Word
from saccade.data.lingua.words.lexicon import Noun, expressions, nouns, verbs
from saccade.data.lingua.words.morphology import EnglishVerb

_USES = ("intransitive", "transitive", "placed", "catenative", "saying", "weather")
_PLURAL_OF = {"is": "are", "was": "were", "has": "have", "does": "do"}
_SINGULAR_OF = {plural: singular for singular, plural in _PLURAL_OF.items()}
_OBJECT_OF = {"he": "him", "she": "her", "they": "them"}
_SUBJECT_OF = {him: he for he, him in _OBJECT_OF.items()}
_TAKES_BASE = ("do", "does", "did", "will", "can", "cannot", "must", "to")
_HAVE = ("has", "have", "had")
_BE = ("am", "is", "are", "was", "were")
_ONE, _MANY = ("a", "this", "every"), ("these", "many", "several")
_AFTER_THE = ("the", "all", "many", "several")
_OTHER_VERBS = ("saw", "found", "fell")  # pasts that are also the base of another verb
# Other kinds may go bare in the singular, as a matter or a habit (in town, at school, changes law),
# and the family may be called so (Mother sleeps).
_COUNTED = ("person", "animal", "thing")
_FAMILY = ("mother", "father", "aunt", "uncle", "brother", "sister", "cousin")
_OPENS_OBJECT = ("determiner", "pronoun", "proper noun")
_MODIFIER = ("adjective", "adverb")
_WITHIN_A_CLAUSE = set(TAGS) - {"conjunction", "punctuation"}


class Edit(NamedTuple):
    """Put `words` in the place of the sentence's words from `start` up to `stop`."""

    start: int
    stop: int
    words: tuple[Word, ...]


EnglishSentence = Sequence[Word]
Fault = Callable[[EnglishSentence], Iterator[Edit]]


def edited(sentence: EnglishSentence, edit: Edit) -> list[Word]:
    """The sentence with its fault."""
    return [*sentence[: edit.start], *edit.words, *sentence[edit.stop :]]


@cache
def _verbs() -> dict[str, EnglishVerb]:
    """Every verb by each of its forms."""
    return {form: verb.english for use in _USES for verb in verbs(use) for form in verb.english}


@cache
def _nouns() -> dict[str, Noun]:
    """Every noun by its singular and its plural."""
    return {form: noun for noun in nouns() for form in (noun.english, noun.english_plural)}


@cache
def _bodies() -> set[str]:
    """The words of what English takes for one or for many, as one likes: committee, Japan."""
    names = {word for name in expressions("entities") for word in name.english.split()}
    groups = {form for form, noun in _nouns().items() if noun.kind == "group"}
    return names | groups | {name.english for name in expressions("countries")}


@cache
def _particles() -> set[tuple[str, str]]:
    """Look for, go to …"""
    led = (*verbs("transitive"), *verbs("placed"))
    return {(verb.english.base, verb.particle) for verb in led if verb.particle}


def _swap(sentence: EnglishSentence, index: int, text: str) -> Edit:
    return Edit(index, index + 1, (Word(text, sentence[index].tag),))


def _before(sentence: EnglishSentence, index: int, *skipped: str) -> int:
    """Where the nearest word before `index` stands that has none of these tags; -1: nowhere."""
    index -= 1
    while index >= 0 and sentence[index].tag in skipped:
        index -= 1
    return index


def _finite(sentence: EnglishSentence) -> Iterator[int]:
    """The verbs and auxiliaries whose subject, and its number, nobody can doubt."""
    for index, word in enumerate(sentence):
        leader = sentence[_before(sentence, index, "adverb", "negation")]
        free = leader.tag not in ("auxiliary", "particle", "conjunction", "punctuation")
        doubtful = leader.text in ("who", "whom", "that", "there")
        if word.tag in ("verb", "auxiliary") and free and not doubtful:
            start = _before(sentence, index, *_WITHIN_A_CLAUSE)
            if not any(part.text in _bodies() for part in sentence[start + 1 : index]):
                yield index


def plural_verb(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog sleep."""
    for index in _finite(sentence):
        text = sentence[index].text
        verb = _verbs().get(text)
        joined = sentence[_before(sentence, index, *_WITHIN_A_CLAUSE)].text == "and"
        if joined or sentence[index - 1].text == "I":
            continue
        if text in _PLURAL_OF:
            yield _swap(sentence, index, _PLURAL_OF[text])
        elif verb and text == verb.third:
            yield _swap(sentence, index, verb.base)


def singular_verb(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dogs sleeps."""
    for index in _finite(sentence):
        text = sentence[index].text
        verb = _verbs().get(text)
        if text in _SINGULAR_OF:
            yield _swap(sentence, index, _SINGULAR_OF[text])
        elif verb and text == verb.base:
            yield _swap(sentence, index, verb.third)


def inflected_infinitive(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog did not slept; the dog wants to sleeps."""
    for index, verb, leader in _led(sentence):
        if leader in _TAKES_BASE:
            forms = {verb.third, verb.past, verb.gerund}.difference(_OTHER_VERBS)
            yield from (_swap(sentence, index, text) for text in sorted(forms))


def bare_participle(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog has eat the bread; the dog is eat the bread; the dog has ate."""
    for index, verb, leader in _led(sentence):
        text = sentence[index].text
        if leader in _HAVE and verb.past != verb.participle == text:
            yield _swap(sentence, index, verb.past)
        form = verb.participle if leader in _HAVE else verb.gerund if leader in _BE else verb.base
        after = sentence[index + 1]
        has_object = after.tag in _OPENS_OBJECT and after.text not in ("this", "every")
        if has_object and text == form != verb.base:
            yield _swap(sentence, index, verb.base)


def _led(sentence: EnglishSentence) -> Iterator[tuple[int, EnglishVerb, str]]:
    """The verbs that follow an auxiliary or "to", and that one."""
    for index, word in enumerate(sentence):
        verb = _verbs().get(word.text) if word.tag == "verb" else None
        leader = sentence[_before(sentence, index, "adverb", "negation")]
        if verb and leader.tag in ("auxiliary", "particle"):
            yield index, verb, leader.text


def adjective_late(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog big sleeps. Not in an object, where it may be meant: she found the dog sick."""
    for index in range(1, len(sentence) - 1):
        first, second = sentence[index], sentence[index + 1]
        if first.tag == "adjective" and second.tag == "noun":
            start = _before(sentence, index, "determiner", "number", *_MODIFIER)
            subordinate = sentence[start].tag == "conjunction" and sentence[start].text != "and"
            if start < 0 or subordinate:
                yield Edit(index, index + 2, (second, first))


def adjective_early(sentence: EnglishSentence) -> Iterator[Edit]:
    """Big the dog sleeps. Not in an object: she kept secret the letter."""
    for index in range(len(sentence) - 2):
        first, second, third = sentence[index : index + 3]
        of_object = index and sentence[index - 1].tag in ("verb", "determiner")
        described = third.tag in ("noun", "adjective") and second.tag == "adjective"
        if first.tag == "determiner" and described and not of_object:
            yield Edit(index, index + 2, (second, first))


def negation_early(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog not does sleep; the dog not is big."""
    for index in range(1, len(sentence) - 1):
        first, second = sentence[index], sentence[index + 1]
        if second.text == "not" and first.tag in ("auxiliary", "verb"):
            yield Edit(index, index + 2, (second, first))


def negation_alone(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog not sleeps: without its auxiliary."""
    for index in range(1, len(sentence) - 2):
        first, second, third = sentence[index : index + 3]
        verb = _verbs().get(third.text)
        if first.text in ("do", "does", "did") and second.text == "not" and verb:
            text = {"does": verb.third, "did": verb.past}.get(first.text, verb.base)
            yield Edit(index, index + 3, (second, Word(text, "verb")))


def many_of_one(sentence: EnglishSentence) -> Iterator[Edit]:
    """A dogs; this dogs; every dogs."""
    for index, noun, determiner in _determined(sentence):
        if determiner.text in _ONE and not noun.mass:
            yield _swap(sentence, index, noun.english_plural)


def one_of_many(sentence: EnglishSentence) -> Iterator[Edit]:
    """Two dog; these dog; many dog."""
    for index, noun, determiner in _determined(sentence):
        if determiner.text in _MANY or determiner.tag == "number":
            yield _swap(sentence, index, noun.english)


def _determined(sentence: EnglishSentence) -> Iterator[tuple[int, Noun, Word]]:
    """The nouns that have a determiner or a number, and it."""
    for index, word in enumerate(sentence):
        noun = _nouns().get(word.text) if word.tag == "noun" else None
        before = _before(sentence, index, *_MODIFIER)
        if noun and before >= 0 and sentence[before].tag in ("determiner", "number"):
            yield index, noun, sentence[before]


def missing_determiner(sentence: EnglishSentence) -> Iterator[Edit]:
    """Dog sleeps. Not after "and" or a comma: the man and woman sleep."""
    for index, noun, _ in _determined(sentence):
        before = _before(sentence, index, *_MODIFIER)
        joined = before > 0 and sentence[before - 1].text in ("and", ",")
        one = sentence[index].text == noun.english
        if one and noun.kind in _COUNTED and noun.english not in _FAMILY and not joined:
            yield Edit(before, before + 1, ())


def missing_verb(sentence: EnglishSentence) -> Iterator[Edit]:
    """The dog eating; the dog not sleep; the dog big. Not after "and": is big and is sad."""
    for index, word in enumerate(sentence[:-1]):
        after, joined = sentence[index + 1], index and sentence[index - 1].text == "and"
        verb = _verbs().get(after.text)
        progressive = word.text in _BE and verb and after.text == verb.gerund
        denied = word.text in ("do", "does", "did") and after.text == "not"
        copula = word.text in _BE and (after.tag == "adjective" or after.text == "very")
        if (progressive or denied or copula) and index and not joined:
            yield Edit(index, index + 1, ())


def missing_link(sentence: EnglishSentence) -> Iterator[Edit]:
    """She looks the key; she goes Paris; she wants buy the key."""
    for index in range(1, len(sentence) - 2):
        word, verb = sentence[index], _verbs().get(sentence[index - 1].text)
        if verb is None or sentence[index - 1].tag != "verb":
            continue
        if word.tag == "particle" and sentence[index + 2].tag == "determiner":
            yield Edit(index, index + 1, ())
        if word.tag == "preposition" and (verb.base, word.text) in _particles():
            yield Edit(index, index + 1, ())


def second_determiner(sentence: EnglishSentence) -> Iterator[Edit]:
    """The my dog; the this dog."""
    for index, word in enumerate(sentence):
        if word.tag == "determiner" and word.text not in _AFTER_THE:
            yield Edit(index, index, (Word("the", "determiner"),))


def needless_link(sentence: EnglishSentence) -> Iterator[Edit]:
    """She must to sleep; she will to sleep."""
    for index, verb, leader in _led(sentence):
        if leader in _TAKES_BASE and leader != "to" and sentence[index].text == verb.base:
            yield Edit(index, index, (Word("to", "particle"),))


def object_first(sentence: EnglishSentence) -> Iterator[Edit]:
    """Him sleeps."""
    for index, word in enumerate(sentence):
        if word.text in _OBJECT_OF:
            yield _swap(sentence, index, _OBJECT_OF[word.text])


def subject_last(sentence: EnglishSentence) -> Iterator[Edit]:
    """She saw he."""
    for index, word in enumerate(sentence):
        if word.tag == "pronoun" and word.text in _SUBJECT_OF:
            yield _swap(sentence, index, _SUBJECT_OF[word.text])


FAULTS: dict[str, tuple[Fault, ...]] = {
    "agreement": (plural_verb, singular_verb),
    "verb form": (inflected_infinitive, bare_participle),
    "word order": (adjective_late, adjective_early),
    "negation": (negation_early, negation_alone),
    "number": (many_of_one, one_of_many),
    "missing word": (missing_determiner, missing_verb, missing_link),
    "needless word": (second_determiner, needless_link),
    "case": (object_first, subject_last),
}
