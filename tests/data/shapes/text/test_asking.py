"""Questions: one answer each, and the answer is right by another way of finding it."""

import re
from collections import Counter
from functools import cache

import pytest

from saccade.data.shapes import (
    ANSWERS,
    COLOURS,
    KINDS,
    Question,
    Scene,
    Thing,
    questions,
    relation,
    scene,
)
from saccade.errors import ConfigError

NUMBERS = ["zero", "one", "two", "three", "four", "five"]
AXES = {"left of": (0, 1), "right of": (0, -1), "above": (1, 1), "below": (1, -1)}


@cache
def sample(count: int = 200) -> list[tuple[Scene, Question]]:
    found = [scene("train", index) for index in range(count)]
    return [(one, question) for one in found for question in questions(one)]


def named(found: Scene, text: str) -> list[Thing]:
    """The objects that fit the words of a noun phrase."""
    words = text.split()
    return [
        thing
        for thing in found.objects
        if all(w not in KINDS or w == thing.kind for w in words)
        and all(w not in COLOURS or w == thing.colour for w in words)
    ]


def answered(found: Scene, text: str) -> set[str]:
    """Every answer that the words allow, by reading the question afresh."""
    text = text.rstrip("?").replace("crosses", "cross")
    if match := re.fullmatch(r"how many (.*) are there", text):
        words = " ".join(w.removesuffix("s") for w in match[1].split() if w != "cross")
        words += " cross" if "cross" in match[1] else ""
        return {NUMBERS[len(named(found, words))]}
    if match := re.fullmatch(r"is there (.*)", text):
        return {"yes" if named(found, match[1]) else "no"}
    if match := re.fullmatch(r"is the (.*) big or small", text):
        return {thing.size for thing in named(found, match[1])}
    if match := re.fullmatch(
        rf"is the (\w+ \w+) ({'|'.join(AXES)}|behind|in front of) the (.*)", text
    ):
        (a,), (b,) = named(found, match[1]), named(found, match[3])
        stands = relation(found, found.objects.index(a), found.objects.index(b))
        assert stands is not None
        return {"yes" if stands == match[2] else "no"}
    if match := re.fullmatch(rf"what (\w+) is (?:the thing )?({'|'.join(AXES)}) the (.*)", text):
        (anchor,), (axis, sign) = named(found, match[3]), AXES[match[2]]
        there = [
            t for t in found.objects if sign * t.box[axis] < sign * anchor.box[axis] and t != anchor
        ]
        return {t.colour if match[1] == "colour" else t.kind for t in there}
    match = re.fullmatch(r"what (\w+) is the (.*)", text)
    assert match is not None
    return {t.colour if match[1] == "colour" else t.kind for t in named(found, match[2])}


def test_every_question_has_one_answer_and_it_is_given() -> None:
    for found, question in sample():
        assert answered(found, question.text) == {question.answer}


def test_answers_are_words_of_the_list_and_all_of_them_occur() -> None:
    assert {question.answer for _, question in sample()} == set(ANSWERS)


def test_yes_is_as_frequent_as_no_and_every_kind_of_question_is_asked() -> None:
    for takes in ("find", "relate"):
        verdicts = Counter(q.answer for _, q in sample() if q.takes == takes)
        assert verdicts["yes"] == verdicts["no"] > 50
    assert {q.takes for _, q in sample()} == {"look", "count", "find", "relate"}


def test_questions_are_the_same_for_the_same_scene() -> None:
    assert questions(scene("test", 3)) == questions(scene("test", 3))


def test_questions_about_figures_are_refused() -> None:
    with pytest.raises(ConfigError, match="questions are about shapes; take a scene without fig"):
        questions(scene("biased-test", 0))
