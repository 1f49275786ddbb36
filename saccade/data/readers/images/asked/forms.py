"""The three forms of rows about images, each by its keys.

    questions   {"image": "a.jpg", "question": "what colour is it?", "answers": ["red", "red"]}
    referring   {"image": "a.jpg", "phrase": "the man on the left", "box": [12, 30, 200, 180]}
    choices     {"image": "a.jpg", "sentences": ["a dog runs", "a dog sleeps"], "right": 1}

One answer may stand as a string under `answer`. In every form `boxes` may list the regions of the
image. A `box` has corners, a `bbox` left, top, width and height; both are in pixels.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from saccade.data.readers.images.asked.items import AskedItem, Choice, ImageQuestion, Referred
from saccade.data.readers.images.asked.row import BOX, AskedRow
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.records import first_key, kind_of, shown_keys

Item = TypeVar("Item", bound=AskedItem)

ANSWERS = ("answers", "answer")
_FEWEST = 2  # sentences to choose from


@dataclass(frozen=True)
class AskedForm(Generic[Item]):
    """A form of rows.

    Args:
        name: what a folder of them holds.
        noun: what one is called.
        words: in the names of files that hold this form; files with words of others are left out.
        keys: what a row has, beside its image and the regions of that.
        item: what a row says.
    """

    name: str
    noun: str
    words: tuple[str, ...]
    keys: tuple[str, ...]
    item: Callable[[AskedRow], Item]


def _question(row: AskedRow) -> ImageQuestion:
    text = row.text("question")
    key = next((key for key in ANSWERS if key in row.fields), None)
    if key is None:
        raise BadRow(
            f"no answers: neither 'answers' nor 'answer'; it has {shown_keys(row.fields)}; give one"
        )
    answers = row.texts(key)
    if not answers:
        raise BadRow(f"no answers: {key!r} is an empty list; give at least one")
    return ImageQuestion(row.image, text, answers, file=row.file, line=row.line)


def _referred(row: AskedRow) -> Referred:
    return Referred(row.image, row.text("phrase"), row.box(), file=row.file, line=row.line)


def _choice(row: AskedRow) -> Choice:
    texts = row.texts(first_key(row.fields, ("sentences",)))
    if len(texts) < _FEWEST:
        raise BadRow(
            f"fewer than two sentences: 'sentences' has {len(texts)}; give those to choose from"
        )
    right = _whole(row.fields[first_key(row.fields, ("right",))], "right")
    if not 0 <= right < len(texts):
        raise BadRow(
            f"no such sentence: 'right' is {right!r:.60}, and the {len(texts)} sentences have the "
            f"numbers 0 to {len(texts) - 1}; give one of these"
        )
    return Choice(row.image, texts, right, file=row.file, line=row.line)


def _whole(value: Any, key: str) -> int:
    """A whole number, also where a table made it a text or a fraction of nothing."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        with suppress(ValueError):
            return int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        what = kind_of(value)
        raise BadRow(f"wrong type: {key!r} is {what}, not a whole number; count from 0")
    return value


QUESTIONS = AskedForm(
    "questions", "question", ("questions", "question", "vqa"), ("question", *ANSWERS), _question
)
REFERRING = AskedForm(
    "referring phrases", "phrase", ("referring", "phrases", "refcoco"), ("phrase", *BOX), _referred
)
CHOICES = AskedForm("choices", "choice", ("choices", "choice"), ("sentences", "right"), _choice)
ASKED_FORMS: tuple[AskedForm[Any], ...] = (QUESTIONS, REFERRING, CHOICES)
