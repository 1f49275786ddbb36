"""Lingua's laws: reproducible, disjoint, unambiguous, aligned, and of the length asked for."""

import re
from collections import Counter
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from saccade.data.lingua import (
    SPLITS,
    AlignedPair,
    LinguaSettings,
    is_held_out,
    pairs,
)
from saccade.data.lingua.words.lexicon import adjectives, expressions, nouns, verbs
from saccade.data.tokens.words import words
from saccade.errors import ConfigError

NOUN_OF = {form: n.english for n in nouns() for form in (n.english, n.english_plural)}
ADJECTIVE_OF = {adjective.english: adjective.english for adjective in adjectives()}
VERB_OF = {form: verb.name for verb in verbs("transitive") if verb.direct for form in verb.english}
BETWEEN = frozenset(
    (
        *("the", "a", "an", "this", "these", "some", "any", "many", "several", "every", "all"),
        *("my", "his", "her", "our", "your", "their", "very"),
        *(number.english for number in expressions("numbers")),
    )
)


@cache
def sample(split: str, count: int) -> list[AlignedPair]:
    return pairs(split, count)


def combinations(source: str) -> set[tuple[str, str]]:
    """Adjectives and verbs of a sentence, each with the noun that directly follows."""
    found: set[tuple[str, str]] = set()
    waiting: list[str] = []
    for word in words(source[0].lower() + source[1:]):
        if word in NOUN_OF:
            found |= {(first, NOUN_OF[word]) for first in waiting}
            waiting = []
        elif word in ADJECTIVE_OF:
            waiting.append(word)
        elif word in VERB_OF:
            waiting = [VERB_OF[word]]
        elif word not in BETWEEN:
            waiting = []
    return found


@settings(max_examples=15, deadline=None)
@given(
    split=st.sampled_from(SPLITS),
    seed=st.integers(0, 99),
    few=st.integers(0, 5),
    more=st.integers(0, 5),
)
def test_a_smaller_count_is_a_prefix_of_a_larger_one(
    split: str, seed: int, few: int, more: int
) -> None:
    chosen = LinguaSettings(seed=seed)
    assert pairs(split, few + more, chosen)[:few] == pairs(split, few, chosen)


def test_the_data_are_the_same_in_every_process() -> None:
    (pair,) = pairs("train", 1)
    assert pair.source == "The law is not criticised today."
    assert pair.target == "La loi n'est pas critiquée aujourd'hui."


def test_another_seed_gives_other_sentences() -> None:
    assert pairs("train", 20) != pairs("train", 20, LinguaSettings(seed=1))


@pytest.mark.slow
def test_no_sentence_is_in_two_splits() -> None:
    other = pairs("train", 3000, LinguaSettings(seed=5, longest=5))
    seen = Counter(
        source
        for split, count in (
            ("train", 10_000),
            ("valid", 500),
            ("test", 500),
            ("compositional", 3000),
        )
        for source in {pair.source for pair in sample(split, count)}
        | ({pair.source for pair in other} if split == "train" else set())
    )
    assert max(seen.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("split", "count"), [("train", 10_000), ("valid", 500), ("test", 500)])
def test_held_out_combinations_stay_out_of(split: str, count: int) -> None:
    met = {pair for p in sample(split, count) for pair in combinations(p.source)}
    assert len(met) > 400
    assert not [pair for pair in met if is_held_out(*pair)]


@pytest.mark.slow
def test_every_compositional_sentence_has_a_held_out_combination() -> None:
    forms = NOUN_OF | ADJECTIVE_OF
    for pair in sample("compositional", 3000):
        present = words(pair.source[0].lower() + pair.source[1:])
        text = " ".join(present)
        firsts = {forms[w] for w in present if w in ADJECTIVE_OF}
        firsts |= {
            verb.name
            for verb in verbs("transitive")
            if any(form in present for form in verb.english) and verb.particle in text
        }
        nouns = {NOUN_OF[w] for w in present if w in NOUN_OF}
        assert any(is_held_out(first, noun) for first in firsts for noun in nouns), pair.source


@pytest.mark.slow
def test_most_compositional_sentences_show_it_side_by_side() -> None:
    shown = [
        any(is_held_out(*c) for c in combinations(p.source)) for p in sample("compositional", 3000)
    ]
    assert sum(shown) > 0.6 * len(shown)


@pytest.mark.slow
def test_every_adjective_noun_and_verb_is_plentiful_in_training() -> None:
    counts = Counter(w for p in sample("train", 30_000) for w in words(p.source))
    for noun in nouns():
        assert counts[noun.english] + counts[noun.english_plural] > 50, noun.english
    for adjective in adjectives():
        assert counts[adjective.english] > 50, adjective.english
    for verb in verbs("transitive"):
        assert sum(counts[form] for form in set(verb.english)) > 50, verb.name


@pytest.mark.slow
def test_a_source_has_one_target_even_in_lower_case() -> None:
    target_of: dict[str, str] = {}
    short = pairs("train", 5000, LinguaSettings(longest=5))
    for pair in [*sample("train", 30_000), *sample("compositional", 3000), *short]:
        assert target_of.setdefault(pair.source.lower(), pair.target.lower()) == pair.target.lower()


@pytest.mark.slow
@pytest.mark.parametrize("split", ["train", "compositional"])
def test_every_target_word_has_exactly_one_sure_link_and_links_are_in_range(split: str) -> None:
    for pair in sample(split, 3000):
        source, target = words(pair.source), words(pair.target)
        assert sorted(j for _, j in pair.sure) == list(range(len(target)))
        assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in pair.possible)
        assert set(pair.sure) <= set(pair.possible)


@pytest.mark.slow
def test_punctuation_names_and_numbers_link_to_themselves() -> None:
    for pair in sample("train", 3000):
        source, target = words(pair.source), words(pair.target)
        for i, j in pair.sure:
            if target[j] in ".,":
                assert source[i] == target[j]
            if target[j].isdigit() or target[j] in ("Paris", "Paul", "Oslo", "Emma"):
                assert source[i] == target[j]


@pytest.mark.slow
def test_lengths_follow_the_bands() -> None:
    lengths = [len(words(pair.source)) - 1 for pair in sample("train", 10_000)]
    assert min(lengths) >= 3
    assert max(lengths) <= 80
    for low, high, share in (
        (3, 10, 0.45),
        (11, 20, 0.25),
        (21, 30, 0.15),
        (31, 50, 0.1),
        (51, 80, 0.05),
    ):
        drawn = sum(low <= length <= high for length in lengths) / len(lengths)
        assert drawn == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("length", [3, 4, 7, 15, 33, 62, 80])
def test_an_exact_length_is_met_exactly(length: int) -> None:
    for split in ("train", "compositional"):
        for pair in pairs(split, 15, LinguaSettings(shortest=length, longest=length)):
            assert len(words(pair.source)) - 1 == length


VOWEL = "[aeiouyâàéèêëîïôûœAEIOUÉ]"
MUTE_H = "[hH](?!aut|uit|éros|ongrie)"
WRONG = {
    "contraction": r"\b(de|à) les? ",
    "elision": rf"\b(le|la|de|je|ne|que|me|se|ce|ma|sa) ({VOWEL}|{MUTE_H})",
    "s'il": r"\bsi ils?\b",
    "liaison": rf"\b(un|le|ce|mon|son) (très )?(beau|nouveau|vieux) ({VOWEL}|{MUTE_H})",
    "aspirated h": r"'(huit|haut|héros|Hongrie)",
    "needless elision": r"'(?!h)[bcdfgjklmnpqrstvwxz]",
    "needless liaison": r"\b(bel|nouvel|vieil|cet) (?!h)[bcdfgjklmnpqrstvwxz]",
    "number": r"\b(les|des|ces|mes|ses|nos|vos|leurs) (homme|femme|lettre|chien|maison|ami)\b",
    "gender": r"\b(un|ce|le) (femme|lettre|maison|loi|question)\b|\b(une|la|cette) (livre|chien)\b",
    "spacing": r" [,.]|  |' ",
    "doubled word": r"\b(le|la|de|que|ne|pas|et) \1\b",
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", WRONG)
def test_no_french_surface_fault_of(fault: str) -> None:
    pattern = re.compile(WRONG[fault], re.IGNORECASE if fault != "needless elision" else 0)
    assert not [p.target for p in sample("train", 30_000) if pattern.search(p.target)][:3]


@pytest.mark.slow
def test_english_writes_an_before_a_vowel_sound() -> None:
    wrong = re.compile(r"\ba (apple|old|honest|uncle|artist|Italian)\b|\ban (useful|European|univ)")
    assert not [p.source for p in sample("train", 10_000) if wrong.search(p.source)]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"shortest": 2}, "shortest=2 is too short"),
        ({"longest": 81}, "longest=81 is too long"),
        ({"shortest": 9, "longest": 8}, "shortest=9 exceeds longest=8"),
    ],
)
def test_wrong_settings_say_what_is_wrong(wrong: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        LinguaSettings(**wrong)


def test_an_unknown_split_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no split 'dev'; try one of: train, valid"):
        pairs("dev", 1)


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(ConfigError, match="count=-1 is negative"):
        pairs("train", -1)
