"""How well words are tagged: word by word, and by the spans that tags such as B-PER mark.

Spans are those of the CoNLL-2000 shared task's evaluation, for the schemes BIO, BIOES and BILOU:
a tag that goes on where nothing began begins a span.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

OUTSIDE = "O"
_SPAN = re.compile(r"[BIESLU]-.+", re.DOTALL)
_BEGINS, _ENDS = "BSU", "ESLU"


class Span(NamedTuple):
    """Words from `start` up to `end` that are a `kind`."""

    kind: str
    start: int
    end: int


class SpanScores(NamedTuple):
    """Of the spans that were found how many are there, of those there how many were found, both."""

    precision: float
    recall: float
    f1: float


def word_accuracy(predicted: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> float:
    """The share of all words whose tag is right; a sentence has a tag for each word."""
    pairs = [
        (one, true)
        for found, tags in zip(predicted, labels, strict=True)
        for one, true in zip(found, tags, strict=True)
    ]
    return sum(one == true for one, true in pairs) / len(pairs)


def has_spans(tags: Iterable[str]) -> bool:
    """Whether tags mark spans: each is O or like B-PER, and not all are O."""
    kinds = {tag for tag in tags if tag != OUTSIDE}
    return bool(kinds) and all(_SPAN.fullmatch(tag) for tag in kinds)


def spans_in(tags: Sequence[str]) -> list[Span]:
    """The spans of a sentence, in order; what is no tag of a span is outside."""
    found: list[Span] = []
    start, kind, closed = 0, "", True
    for place, tag in enumerate([*tags, OUTSIDE]):
        mark, its_kind = (tag[0], tag[2:]) if _SPAN.fullmatch(tag) else (OUTSIDE, "")
        new = mark != OUTSIDE and (mark in _BEGINS or closed or its_kind != kind)
        if not closed and (mark == OUTSIDE or new):
            found.append(Span(kind, start, place))
        if new:
            start, kind = place, its_kind
        closed = mark == OUTSIDE or mark in _ENDS
        if mark in _ENDS:
            found.append(Span(kind, start, place + 1))
    return found


def span_f1(predicted: Sequence[Sequence[str]], labels: Sequence[Sequence[str]]) -> SpanScores:
    """Precision, recall and F1 of spans, over all sentences; 0 where there is nothing to divide by.

        P = right / found        R = right / there        F1 = 2 right / (found + there)

    A span is right where its kind, start and end are.
    """
    right = found = there = 0
    for mine, true in zip(predicted, labels, strict=True):
        spans, truth = set(spans_in(mine)), set(spans_in(true))
        right, found, there = right + len(spans & truth), found + len(spans), there + len(truth)
    return SpanScores(
        right / found if found else 0.0,
        right / there if there else 0.0,
        2 * right / (found + there) if found + there else 0.0,
    )
