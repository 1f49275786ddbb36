"""Acceptability: the faults are faults, the rest is the grammar's own, and both begin alike."""

import re
from functools import cache
from random import Random

import pytest

from saccade.data.lingua import LinguaSettings, drafts, pairs
from saccade.data.lingua.tasks import LabelledSentence, acceptability
from saccade.data.lingua.tasks.faults import FAULTS, Fault, edited
from saccade.data.lingua.tokens import TAGS, Word, write_english

EVERY = [fault for faults in FAULTS.values() for fault in faults]


def tokens(text: str) -> list[Word]:
    """Words with the first letters of their tags: "the/det dog/noun"."""
    split = [each.split("/") for each in text.split()]
    return [Word(word, next(tag for tag in TAGS if tag.startswith(x))) for word, x in split]


def faulty(fault: Fault, count: int, settings: LinguaSettings) -> list[str]:
    sentences = drafts(Random(1), "train", settings)
    return [
        write_english(edited(phrase.english, edit))
        for phrase, _ in (next(sentences) for _ in range(count))
        for edit in fault(phrase.english)
    ]


@pytest.mark.slow
def test_no_faulty_sentence_is_one_that_the_grammar_makes() -> None:
    good = {pair.source for pair in pairs("train", 20_000, LinguaSettings(longest=4))}
    good |= {pair.source for pair in pairs("train", 20_000, LinguaSettings(longest=7, seed=1))}
    for fault in EVERY:
        wrong = faulty(fault, 6000, LinguaSettings(longest=5))
        assert good.isdisjoint(wrong), fault


@pytest.mark.parametrize("fault", EVERY, ids=lambda fault: fault.__name__)
def test_a_fault_changes_the_sentence_and_can_be_found(fault: Fault) -> None:
    sentences = drafts(Random(2), "train", LinguaSettings())
    found = 0
    for phrase, _ in (next(sentences) for _ in range(300)):
        for edit in fault(phrase.english):
            found += 1
            assert write_english(edited(phrase.english, edit)) != write_english(phrase.english)
    assert found > 5


@cache
def sample() -> list[LabelledSentence]:
    return acceptability("train", 9000)


# What each kind of fault looks like on the page, told without the grammar's tables.
PEOPLE = "minister|doctor|teacher|student|judge|soldier|king|letter|book|dog|car|house|school|law"
SEEN = {
    "agreement": r"\b(he|she|it) (are|were|have|do|see|want|eat|say)\b|\b(we|they) (is|was|has)\b",
    "number": rf"\b(an?|this|every) ({PEOPLE})s\b|\b(two|many|several|these) ({PEOPLE})\b",
    "negation": r"\bnot (does|do|did|will|is|are|was|were|has|have|had|must|am)\b",
    "needless word": r"\bthe (a|an|my|his|this|every)\b|\b(will|must|can) to\b",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEEN)
def test_what_is_plainly_wrong_is_labelled_so_and_never_the_other_way(kind: str) -> None:
    pattern, counts = re.compile(SEEN[kind], re.IGNORECASE), {"acceptable": 0, "not acceptable": 0}
    for item in sample():
        counts[item.label] += bool(pattern.search(item.texts[0]))
    assert counts["acceptable"] == 0
    assert counts["not acceptable"] > 20


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("they/pron find/verb the/det red/adj car/noun ./punct", "word order"),
        ("the/det club/noun was/verb big/adj ./punct", "agreement"),
        ("he/pron sleeps/verb and/conj works/verb ./punct", "missing word"),
        ("the/det men/noun will/aux bring/verb a/det law/noun ./punct", "missing word"),
        ("she/pron crossed/verb many/det towns/noun ./punct", "needless word"),
    ],
)
def test_what_may_be_english_is_left_alone(sentence: str, why: str) -> None:
    assert [edit for fault in FAULTS[why] for edit in fault(tokens(sentence))] == []


@pytest.mark.slow
def test_acceptable_sentences_could_have_had_a_fault_too() -> None:
    lengths = {"acceptable": 0, "not acceptable": 0}
    for item in acceptability("train", 3000):
        lengths[item.label] += len(item.texts[0].split())
    assert lengths["acceptable"] == pytest.approx(lengths["not acceptable"], rel=0.1)
