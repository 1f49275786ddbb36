"""Outcomes counted by hand, and the laws of their divergence."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.errors import ConfigError
from saccade.metrics.outcomes import (
    GroupOutcome,
    divergence,
    error_rate,
    group_said,
    outcome_divergence,
    outcomes,
    ratio,
    read_groups,
)

MEN_AND_WOMEN = read_groups(("man,boy,men", "woman, girl"))
weights = st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda w: sum(w) > 0.01)


def shares(weights: list[float]) -> list[float]:
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("caption", "group"),
    [
        ("a man rides a horse .", "man"),
        ("Two Boys and a BOY, running", "man"),  # boys is not among the words, boy is
        ("a girl", "woman"),
        ("a man and a woman", None),
        ("a person with a manly hat", None),
        ("", None),
    ],
)
def test_a_caption_says_the_group_whose_words_it_has_and_none_if_both(
    caption: str, group: str | None
) -> None:
    assert group_said(caption, MEN_AND_WOMEN) == group


def test_outcomes_counted_by_hand() -> None:
    truth = ["man", "man", "man", "woman", "woman", "woman", "woman"]
    said = ["man", "woman", None, "woman", "woman", "man", "woman"]
    found = outcomes(truth, said)
    assert found == {"man": GroupOutcome(1, 1, 1), "woman": GroupOutcome(3, 1, 0)}
    assert error_rate(found) == pytest.approx(2 / 7)
    assert found["woman"].shares == (0.75, 0.25, 0.0)
    assert ratio(said, MEN_AND_WOMEN) == pytest.approx(4 / 2)
    assert ratio(truth, MEN_AND_WOMEN) == pytest.approx(4 / 3)


def test_to_decline_is_no_error() -> None:
    found = outcomes(["man", "woman"], [None, None])
    assert error_rate(found) == 0
    assert outcome_divergence(found) == 0
    assert ratio([None, None], MEN_AND_WOMEN) is None
    assert error_rate({}) == 0


@given(p=weights, q=weights)
def test_divergence_is_symmetric_lies_in_a_bit_and_is_zero_for_equals(
    p: list[float], q: list[float]
) -> None:
    p, q = shares(p), shares(q)
    found = divergence([p, q])
    assert 0 <= found <= 1 + 1e-12
    assert found == pytest.approx(divergence([q, p]))
    assert divergence([p, p]) == pytest.approx(0, abs=1e-12)
    assert divergence([p, p, p]) == pytest.approx(0, abs=1e-12)


def test_divergence_is_a_bit_for_those_with_nothing_in_common() -> None:
    assert divergence([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]) == pytest.approx(1)


@given(p=weights, q=weights)
def test_divergence_is_the_entropy_that_not_knowing_the_group_adds(
    p: list[float], q: list[float]
) -> None:
    def entropy(x: list[float]) -> float:
        return -sum(v * math.log2(v) for v in x if v > 0)

    p, q = shares(p), shares(q)
    middle = [(a + b) / 2 for a, b in zip(p, q)]
    expected = entropy(middle) - (entropy(p) + entropy(q)) / 2
    assert divergence([p, q]) == pytest.approx(expected, abs=1e-9)


def test_groups_that_fare_alike_do_not_diverge_however_many_they_are() -> None:
    alike = {"man": GroupOutcome(8, 1, 1), "woman": GroupOutcome(80, 10, 10)}
    assert outcome_divergence(alike) == pytest.approx(0, abs=1e-12)
    assert outcome_divergence({"man": GroupOutcome(8, 1, 1)}) == 0
    apart = {"man": GroupOutcome(10, 0, 0), "woman": GroupOutcome(0, 10, 0)}
    assert outcome_divergence(apart) == pytest.approx(1)


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        (("man",), "two lists"),
        (("man", " , "), "two lists"),
        (("man,boy", "boy"), "twice"),
        (("man", "young woman"), "not one word"),
    ],
)
def test_groups_that_make_no_sense_are_refused(lists: tuple[str, ...], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        read_groups(lists)
