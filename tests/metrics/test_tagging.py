"""Spans in tags, and how many of them were found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.tagging import Span, has_spans, span_f1, spans_in, word_accuracy

SPANS: dict[str, list[tuple[str, int, int]]] = {
    "": [],
    "O O": [],
    "B-X I-X O": [("X", 0, 2)],
    "O B-X": [("X", 1, 2)],
    "B-X B-X": [("X", 0, 1), ("X", 1, 2)],
    "B-X I-Y": [("X", 0, 1), ("Y", 1, 2)],
    "I-X I-X O I-X": [("X", 0, 2), ("X", 3, 4)],  # the older scheme, without B where none is needed
    "B-X I-X E-X S-Y": [("X", 0, 3), ("Y", 3, 4)],
    "B-X E-X I-X": [("X", 0, 2), ("X", 2, 3)],
    "S-X S-X E-X E-X": [("X", 0, 1), ("X", 1, 2), ("X", 2, 3), ("X", 3, 4)],
    "B-X L-X U-Y O": [("X", 0, 2), ("Y", 2, 3)],
    "B-X S-X I-X": [("X", 0, 1), ("X", 1, 2), ("X", 2, 3)],
    "B-X E-Y": [("X", 0, 1), ("Y", 1, 2)],
    "B-A-B I-A-B": [("A-B", 0, 2)],
    "B-X NOUN I-X": [("X", 0, 1), ("X", 2, 3)],
}


@pytest.mark.parametrize("tags", SPANS)
def test_spans_are_those_of_the_shared_task(tags: str) -> None:
    assert spans_in(tags.split()) == [Span(*span) for span in SPANS[tags]]


kinds = st.sampled_from("XY")
pieces = st.lists(st.tuples(kinds, st.integers(1, 4), st.integers(0, 2)), max_size=6)
LAST_AND_LONE = {"BIO": ("I", "B"), "BIOES": ("E", "S"), "BILOU": ("L", "U")}


@given(pieces=pieces, scheme=st.sampled_from(list(LAST_AND_LONE)))
def test_spans_that_are_written_are_read_back(
    pieces: list[tuple[str, int, int]], scheme: str
) -> None:
    tags: list[str] = []
    wanted: list[Span] = []
    last, lone = LAST_AND_LONE[scheme]
    for kind, length, gap in pieces:
        wanted.append(Span(kind, len(tags), len(tags) + length))
        marks = ["B", *"I" * (length - 2), last] if length > 1 else [lone]
        tags += [f"{mark}-{kind}" for mark in marks] + ["O"] * gap
    assert spans_in(tags) == wanted


tagged = st.lists(st.sampled_from(["O", "B-X", "I-X", "E-Y", "S-Y", "I-Y"]), min_size=1)


@given(tags=st.lists(tagged, min_size=1))
def test_the_truth_scores_1_and_nothing_scores_0(tags: list[list[str]]) -> None:
    there = any(spans_in(one) for one in tags)
    assert span_f1(tags, tags) == ((1, 1, 1) if there else (0, 0, 0))
    assert span_f1([["O"] * len(one) for one in tags], tags) == (0, 0, 0)
    assert word_accuracy(tags, tags) == 1


@given(truth=st.lists(tagged, min_size=1))
def test_f1_is_the_harmonic_mean_and_lies_between(truth: list[list[str]]) -> None:
    found = [tags[::-1] for tags in truth]
    precision, recall, f1 = span_f1(found, truth)
    assert min(precision, recall) - 1e-12 <= f1 <= max(precision, recall) + 1e-12
    assert f1 == pytest.approx(2 * precision * recall / ((precision + recall) or 1))
    turned = span_f1(truth, found)
    assert (turned.precision, turned.recall, turned.f1) == (recall, precision, f1)


def test_a_case_by_hand() -> None:
    truth = [["B-X", "I-X", "O", "B-Y"], ["O", "B-X"]]
    found = [["B-X", "I-X", "O", "B-X"], ["B-Y", "B-X"]]
    assert span_f1(found, truth) == (2 / 4, 2 / 3, pytest.approx(4 / 7))
    assert word_accuracy(found, truth) == 4 / 6


def test_parts_of_speech_have_no_spans() -> None:
    assert has_spans(["O", "B-X", "I-X"])
    assert not has_spans(["NOUN", "VERB", "O"])
    assert not has_spans(["O", "O"])
    assert not has_spans(["B-X", "NOUN"])


def test_sentences_of_other_lengths_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="zip"):
        word_accuracy([["O"]], [["O", "O"]])
