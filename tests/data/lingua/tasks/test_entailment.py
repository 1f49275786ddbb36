"""Entailment: the labels hold in every small world, and the hypothesis tells nothing of them."""

from collections import Counter
from random import Random

import pytest

from saccade.data.lingua import SPLITS, is_held_out
from saccade.data.lingua.tasks.entailment import LABELS, Argument, argument
from saccade.data.lingua.tasks.statements import Participant, Statement, say_statement
from saccade.data.lingua.tasks.strength import denies, opposite, sign
from saccade.data.lingua.tokens import write_english
from saccade.data.lingua.verb_groups import Tense
from saccade.data.lingua.words.lexicon import nouns, verbs
from tests.data.lingua.tasks.worlds import World, true
from tests.marks import one_fast

DOG = next(noun for noun in nouns() if noun.english == "dog")
SLEEP = next(verb for verb in verbs("intransitive") if verb.name == "sleep")


def outcomes(given: Argument, worlds: int, seed: int) -> Counter[bool]:
    """Over the worlds in which the premise is true: how often the hypothesis is."""
    rng, found = Random(seed), Counter[bool]()
    statements = (*given.premise, *given.hypothesis)
    for _ in range(worlds):
        world = World(rng, statements)
        if all(true(each, world) for each in given.premise):
            found[all(true(each, world) for each in given.hypothesis)] += 1
        if given.label == "neutral" and len(found) == 2:
            break
    return found


def verdict(found: Counter[bool]) -> str:
    if found[True] and found[False]:
        return "neutral"
    return "entails" if found[True] else "contradicts"


def check(split: str, count: int, start: int = 0) -> None:
    for index in range(start, start + count):
        given = argument(split, index)
        found = outcomes(given, 3000 if given.label == "neutral" else 250, index)
        if sum(found.values()) < 10:
            found += outcomes(given, 20_000 if given.label == "neutral" else 3000, index + 1)
        assert sum(found.values()) > 0, given.texts
        assert verdict(found) == given.label, (given.label, given.texts, found)


@pytest.mark.parametrize("split", one_fast(SPLITS))
def test_labels_are_true_in_every_small_world(split: str) -> None:
    check(split, 36)


@pytest.mark.slow
def test_many_labels_are_true_in_every_small_world() -> None:
    check("train", 800, start=100)


def test_the_hypothesis_is_denied_and_described_alike_under_every_label() -> None:
    counts = {label: Counter[str]() for label in LABELS}
    for index in range(3000):
        given = argument("train", index)
        first, *more = given.hypothesis
        traits = {
            "denies": denies(first),
            "has two statements": bool(more),
            "is long": len(given.texts[1].split()) > 12,
            "has a time": first.moment is not None,
            "says every": first.actor.determined == "every",
        }
        counts[given.label].update(name for name, is_so in traits.items() if is_so)
    for name in counts["neutral"]:
        shares = [counts[label][name] / 1000 for label in LABELS]
        assert max(shares) - min(shares) < 0.07, name


def test_held_out_combinations_are_in_both_sentences_or_in_none() -> None:
    for split in SPLITS:
        for index in range(40):
            given = argument(split, index)
            for statements in (given.premise, given.hypothesis):
                assert any(map(met, statements)) == (split == "compositional")


def met(statement: Statement) -> bool:
    """Whether a held-out combination is in a statement, told from its parts."""
    pairs = [
        (quality.english, mention.word)
        for mention in statement.mentions
        for quality in mention.qualities
    ]
    if statement.verb and statement.patient and statement.patient.noun:
        pairs.append((statement.verb.name, statement.patient.word))
    if statement.quality:
        pairs.append((statement.quality.english, statement.actor.word))
    return any(is_held_out(*pair) for pair in pairs)


@pytest.mark.parametrize(
    ("determined", "signs", "denied"),
    [("a", (1, 1), "no"), ("every", (-1, 1), "not every"), ("no", (-1, -1), "a")],
)
def test_narrower_is_stronger_or_weaker_as_the_determiner_has_it(
    determined: str, signs: tuple[int, int], denied: str
) -> None:
    statement = Statement(Participant(noun=DOG, determined=determined), Tense.PAST, SLEEP)
    assert (sign(statement, "actor"), sign(statement, "place")) == signs
    assert opposite(statement).actor.determined == denied
    assert opposite(opposite(statement)) == statement


@pytest.mark.parametrize(
    ("determined", "negated", "expected"),
    [
        ("the", False, "The dog slept"),
        ("the", True, "The dog did not sleep"),
        ("no", False, "No dog slept"),
        ("not every", False, "Not every dog slept"),
        ("three", False, "Three dogs slept"),
    ],
)
def test_a_statement_is_said_in_english(determined: str, negated: bool, expected: str) -> None:
    mention = Participant(noun=DOG, determined=determined)
    statement = Statement(mention, Tense.PAST, SLEEP, negated=negated)
    assert write_english(say_statement(statement)) == expected
