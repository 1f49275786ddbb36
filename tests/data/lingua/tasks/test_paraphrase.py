"""Paraphrase: same means the same statements, different does not, and a text has one meaning."""

from collections import Counter
from functools import cache

import pytest

from saccade.data.lingua.tasks.paraphrase import ParaphrasePair, paraphrase_pair
from saccade.data.lingua.tasks.rewording import Sayings, can_be_passive, reworded, rewordings
from saccade.data.lingua.tasks.statements import Statement
from saccade.data.lingua.words.lexicon import adjectives, expressions, nouns, verbs
from saccade.data.lingua.words.synonyms import synonyms
from saccade.data.tokens.words import words


@cache
def made(count: int) -> list[ParaphrasePair]:
    return [paraphrase_pair("train", index) for index in range(count)]


def meaning(sayings: Sayings) -> list[str]:
    return sorted(told(saying.statement) for saying in sayings)


def told(statement: Statement) -> str:
    """A statement in a fixed form of its own, with dictionary words alone."""
    said = [str(statement.tense), str(statement.negated), str(statement.moment)]
    for mention in (statement.actor, statement.patient, statement.company):
        if mention:
            described = [quality.english for quality in mention.qualities]
            said.append(f"{mention.determined} {described} {mention.word}")
    verb, quality = statement.verb, statement.quality
    said.append(verb.name if verb else quality.english if quality else "")
    said += [each.english for each in (statement.manner, statement.place) if each]
    return " | ".join(said)


def test_the_label_tells_whether_the_statements_are_the_same() -> None:
    for each in made(1500):
        assert (meaning(each.first) == meaning(each.second)) == (each.label == "same")
        assert each.texts[0] != each.texts[1]


@pytest.mark.slow
def test_a_text_has_one_meaning() -> None:
    meaning_of: dict[str, list[str]] = {}
    for each in made(8000):
        for text, sayings in zip(each.texts, (each.first, each.second)):
            assert meaning_of.setdefault(text, meaning(sayings)) == meaning(sayings), text


def test_different_pairs_share_as_many_words_as_same_ones() -> None:
    shares = {"same": 0.0, "different": 0.0}
    for each in made(1500):
        first, second = (Counter(words(text.lower())) for text in each.texts)
        shares[each.label] += (first & second).total() / max(first.total(), second.total()) / 750
    assert shares["same"] > 0.8
    assert shares["same"] - shares["different"] < 0.05


def test_saying_it_otherwise_twice_is_saying_it_as_before() -> None:
    for each in made(200):
        for point in rewordings(each.first):
            again = reworded(each.first, [point])
            assert again != each.first
            assert reworded(again, [point]) == each.first


def test_a_passive_is_not_made_where_it_could_mean_something_else() -> None:
    for each in made(500):
        for statement, wording in (*each.first, *each.second):
            if wording.passive and statement.negated and can_be_passive(statement):
                assert statement.patient is not None
                assert statement.patient.determined not in ("a", "two", "three", "twenty")


def test_every_word_with_a_synonym_is_in_the_lexicon_and_the_synonym_is_not() -> None:
    known = {
        "adjective": {adjective.english for adjective in adjectives()},
        "noun": {noun.english for noun in nouns()},
        "verb": {verb.name for use in ("transitive", "intransitive") for verb in verbs(use)},
        "adverb": {manner.english for manner in expressions("manner")},
    }
    for use, there in known.items():
        assert synonyms(use).keys() <= there
        others = {other.split()[0].replace("_", " ") for other in synonyms(use).values()}
        assert others.isdisjoint(there)
        assert len(others) == len(synonyms(use))
