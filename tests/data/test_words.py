"""What counts as a word."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.three_sentences import SENTENCES, sentences
from saccade.data.words import word_spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I think therefore I am", ["I", "think", "therefore", "I", "am"]),
        ("L’accord, signé.", ["L’", "accord", ",", "signé", "."]),
        ("aujourd'hui", ["aujourd'", "hui"]),
        ("la zone (économique)...", ["la", "zone", "(", "économique", ")", ".", ".", "."]),
        ("peut-être 1992", ["peut-être", "1992"]),
        ("the dogs' bones", ["the", "dogs", "'", "bones"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_words_are_what_stands_between_blanks_and_marks(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@given(st.text())
def test_spans_are_in_order_and_cover_everything_but_blanks(text: str) -> None:
    spans = word_spans(text)
    assert [text[start:end] for start, end in spans] == words(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    covered = {i for start, end in spans for i in range(start, end)}
    assert covered == {i for i, letter in enumerate(text) if not letter.isspace()}


def test_three_sentences_are_drawn_from_their_world_and_again_for_a_seed() -> None:
    drawn = sentences(300, seed=1)
    assert drawn == sentences(300, seed=1)
    assert drawn != sentences(300, seed=2)
    assert set(drawn) == set(SENTENCES)
    assert all(drawn.count(sentence) > 70 for sentence in SENTENCES)
