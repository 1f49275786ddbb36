"""Answers of people to questions about images, as VQA scores them.

Antol et al. 2015, arXiv:1505.00468: ten people answer, and an answer that three of them gave is
right. Departs from the official scorer in two ways: it takes each person out in turn and averages,
which gives 0.3, 0.6, 0.9, 1 instead of 1/3, 2/3, 1, 1; and it has a table of contractions, where
here apostrophes do not count.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from saccade.data.readers.report import counted
from saccade.errors import ConfigError, DataError
from saccade.printable import printable

PEOPLE = 10  # who answer each question of VQA,
AGREEING = 3  # and how many of them make an answer right
_ARTICLES = frozenset(("a", "an", "the"))
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DIGITS = {word: str(number) for number, word in enumerate(_NUMBERS)}
_APOSTROPHES = re.compile("['\u2019`]")
_WITHIN_NUMBERS = re.compile(r"(?<=\d),(?=\d)")  # 1,000
_POINT = re.compile(r"\.(?=\d)")  # 2.5, .5
_KEPT_POINT = "\0"
_SHOWN = 3  # unknown answers in a report


def normalise(answer: str) -> str:
    """The same for answers that differ in case, punctuation, articles, or two against 2.

    "The T-shirt." is "t shirt", "two dogs" is "2 dogs", "don't" is "dont", "1,000" is "1000". What
    would leave nothing, such as the letter "A", is only made small.
    """
    small = unicodedata.normalize("NFC", answer.lower().replace(_KEPT_POINT, " "))
    text = _WITHIN_NUMBERS.sub("", _APOSTROPHES.sub("", small))
    text = _POINT.sub(_KEPT_POINT, text)
    marks = (" " if unicodedata.category(one)[0] in "PS" else one for one in text)
    words = "".join(marks).replace(_KEPT_POINT, ".").split()
    kept = [_DIGITS.get(word, word) for word in words if word not in _ARTICLES]
    return " ".join(kept or small.split())


def soft_score(count: int, people: int = PEOPLE) -> float:
    """How right an answer is that so many of the people gave.

        score = min(1, count / (3/10 · people))

    This is min(1, count / 3) of ten people, and 1 for the answer of a single one.
    """
    if not 0 <= count <= people or people < 1:
        raise ConfigError(f"count={count} of people={people}: give at most as many, of at least 1")
    return min(1.0, count * PEOPLE / (AGREEING * people))


def soft_scores(answers: Sequence[str]) -> dict[str, float]:
    """Every answer that was given, normalised, with its score."""
    counts = Counter(map(normalise, answers))
    return {answer: soft_score(count, len(answers)) for answer, count in counts.items()}


def answer_score(answer: str, answers: Sequence[str]) -> float:
    """How right an answer is, by what people answered."""
    return soft_scores(answers).get(normalise(answer), 0.0)


@dataclass(frozen=True)
class AnswerSet:
    """The answers that a model chooses from, by number; all are normalised."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise ConfigError("there are no answers to choose from: give at least one")
        for name, count in Counter(map(normalise, self.names)).items():
            if count > 1:
                raise ConfigError(f"the answer {name!r} is there {count} times; give each once")

    @classmethod
    def most_frequent(cls, questions: Iterable[Sequence[str]], most: int) -> "AnswerSet":
        """At most so many of the answers to some questions, the most frequent first.

        An answer counts once for each who gave it; of equals the first in the alphabet is taken.
        """
        if most < 1:
            raise ConfigError(f"most={most} is below 1; give the number of answers to choose from")
        counts = Counter(normalise(answer) for answers in questions for answer in answers)
        if not counts:
            raise DataError("there are no questions with answers to choose from; give some")
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(tuple(answer for answer, _ in ranked[:most]))

    def __len__(self) -> int:
        return len(self.names)

    def number(self, answer: str) -> int | None:
        """The number of an answer; None for one that is not among them."""
        return self._numbers.get(normalise(answer))

    def scores(self, answers: Sequence[str]) -> dict[int, float]:
        """What to learn for a question: the numbers of its answers with their scores.

        Answers that are not among these have no number; where none is, there is nothing to learn.
        """
        found = soft_scores(answers).items()
        return {self._numbers[name]: score for name, score in found if name in self._numbers}

    def unknown(self, questions: Iterable[Sequence[str]]) -> str:
        """How many questions none of these answers fits, and what was answered; "" if none."""
        lost = [answers for answers in questions if not self.scores(answers)]
        if not lost:
            return ""
        counts = Counter(normalise(answer) for answers in lost for answer in answers)
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]
        named = ", ".join(f"{printable(answer)!r} ({count:,})" for answer, count in ranked)
        return (
            f"{counted(len(lost), 'question')} with no answer among the {len(self):,} known, "
            f"most often {named}"
        )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {normalise(name): number for number, name in enumerate(self.names)}
