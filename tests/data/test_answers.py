"""Answers: what counts as the same, how right each is, and the numbers of the frequent ones."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.answers import AnswerSet, answer_score, normalise, soft_score, soft_scores
from saccade.data.shapes import ANSWERS
from saccade.errors import ConfigError, DataError

SAME = {
    "dog": ["Dog", " dog ", "a dog", "The dog.", "dog!", "«dog»", "'dog'"],
    "2 dogs": ["two dogs", "2 dogs", "TWO  dogs", "the two dogs"],
    "t shirt": ["T-shirt", "t shirt", "a t/shirt"],
    "dont know": ["don't know", "dont know", "don’t know", "Don't know..."],
    "1000": ["1,000", "1000"],
    "2.5": ["2.5", "2.5.", "$2.5"],
    "10": ["ten", "10"],
    "café au lait": ["Café au lait", "cafe\u0301 au lait"],
    "red and blue": ["red, and blue", "red and blue"],
    "a": ["A", " a"],
    "?!": ["?!"],
    "हिन्दी": ["हिन्दी", "हिन्दी।"],
}


@pytest.mark.parametrize("plain", SAME)
def test_answers_that_mean_the_same_are_the_same(plain: str) -> None:
    assert {normalise(answer) for answer in SAME[plain]} == {plain}


def test_answers_that_mean_another_stay_apart() -> None:
    assert len({normalise(answer) for answer in ("1", "10", "1.0", "1,5", "11", "one one")}) == 6
    assert len({normalise(answer) for answer in ANSWERS}) == len(ANSWERS)


@given(st.text() | st.text("aA the.,'2-\u0301İ\0", max_size=9))
def test_what_is_normalised_stays_so_and_is_not_lost(answer: str) -> None:
    once = normalise(answer)
    assert normalise(once) == once
    assert bool(once) == bool(answer.replace("\0", " ").strip())
    assert once == " ".join(once.split())


def test_three_of_ten_people_make_an_answer_right() -> None:
    assert [soft_score(count) for count in range(5)] == [0, 1 / 3, 2 / 3, 1, 1]
    assert soft_score(10) == 1


@given(st.integers(1, 40).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_a_score_is_that_of_the_same_share_among_ten(given: tuple[int, int]) -> None:
    count, people = given
    score = soft_score(count, people)
    assert score == pytest.approx(min(1, (count / people) * 10 / 3))
    assert soft_score(0, people) == 0
    assert soft_score(people, people) == 1
    assert soft_score(7 * count, 7 * people) == pytest.approx(score)


def test_the_official_way_of_leaving_one_out_is_at_most_a_tenth_away() -> None:
    for count in range(11):
        gave = [True] * count + [False] * (10 - count)
        left = [min(1, sum(nine) / 3) for nine in combinations(gave, 9)]
        assert abs(soft_score(count) - sum(left) / len(left)) <= 0.1 + 1e-9


@pytest.mark.parametrize(("count", "people"), [(2, 1), (-1, 3), (0, 0)])
def test_more_answers_than_people_are_refused(count: int, people: int) -> None:
    told = f"count={count} of people={people}: give at most as many, of at least 1"
    with pytest.raises(ConfigError, match=told):
        soft_score(count, people)


def test_scores_of_a_question_are_those_of_what_people_meant() -> None:
    answers = ["red", "Red.", "the red", *["dark red"] * 2, *["maroon"] * 5]
    assert soft_scores(answers) == {"red": 1, "dark red": 2 / 3, "maroon": 1}
    assert answer_score("a Dark-red", answers) == 2 / 3
    assert answer_score("blue", answers) == 0
    assert soft_scores(["one"]) == {"1": 1}


QUESTIONS = [["Red", "red", "blue"], ["two"], ["2"], ["red"], ["an apple"], ["Apple"]]


def test_the_most_frequent_answers_get_numbers() -> None:
    assert AnswerSet.most_frequent(QUESTIONS, 99).names == ("red", "2", "apple", "blue")
    known = AnswerSet.most_frequent(QUESTIONS, 2)
    assert known.names == ("red", "2")
    assert len(known) == 2
    assert [known.number(one) for one in ("RED", "two", "apple")] == [0, 1, None]
    assert known.scores(["red", "blue", "blue", "two", "x", "x"]) == {0: 5 / 9, 1: 5 / 9}
    assert known.scores(["apple"]) == {}


@given(st.lists(st.lists(st.text(min_size=1).filter(str.strip), min_size=1), min_size=1))
def test_to_numbers_and_back_is_the_normalised_answer(questions: list[list[str]]) -> None:
    known = AnswerSet.most_frequent(questions, 10_000)
    for answer in (answer for answers in questions for answer in answers):
        number = known.number(answer)
        assert number is not None
        assert known.names[number] == normalise(answer)
    assert known.unknown(questions) == ""
    assert known == AnswerSet.most_frequent(reversed(questions), 10_000)
    for answers in questions:
        told = {known.names[number]: score for number, score in known.scores(answers).items()}
        assert told == soft_scores(answers)


def test_questions_without_a_known_answer_are_told() -> None:
    known = AnswerSet.most_frequent(QUESTIONS, 1)
    assert known.unknown(QUESTIONS) == (
        "4 questions with no answer among the 1 known, most often '2' (2), 'apple' (2)"
    )
    assert known.unknown([["x"]]) == (
        "1 question with no answer among the 1 known, most often 'x' (1)"
    )


def test_what_is_no_set_of_answers_is_refused() -> None:
    with pytest.raises(ConfigError, match="there are no answers to choose from: give at least one"):
        AnswerSet(())
    with pytest.raises(ConfigError, match="the answer 'red' is there 2 times; give each once"):
        AnswerSet(("red", "Red"))
    with pytest.raises(ConfigError, match="most=0 is below 1; give the number of answers to choo"):
        AnswerSet.most_frequent([["x"]], 0)
    with pytest.raises(DataError, match="there are no questions with answers to choose from; give"):
        AnswerSet.most_frequent([], 5)
