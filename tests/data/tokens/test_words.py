"""What counts as a word."""

import re
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from saccade.data import lingua
from saccade.data.three_sentences import SENTENCES, sentences
from saccade.data.tokens.words import word_spans, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I think therefore I am", ["I", "think", "therefore", "I", "am"]),
        ("L’accord, signé.", ["L’", "accord", ",", "signé", "."]),
        ("aujourd'hui", ["aujourd'", "hui"]),
        ("la zone (économique)...", ["la", "zone", "(", "économique", ")", ".", ".", "."]),
        ("peut-être 1992", ["peut-être", "1992"]),
        ("the dogs' bones", ["the", "dogs", "'", "bones"]),
        ("我喜欢iPhone手机，2024年。", [*"我喜欢", "iPhone", *"手机，", "2024", *"年。"]),
        ("コーヒーを飲む", ["コーヒー", *"を飲む"]),
        ("ก็ภาษา", ["ก็", *"ภาษา"]),
        ("이것은 책이다.", ["이것은", "책이다", "."]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("العَرَبِيَّة، نمی\u200cخواهم", ["العَرَبِيَّة", "،", "نمی\u200cخواهم"]),
        ("hi👍🏽👍👨\u200d👩\u200d👧🇫🇷🇩🇪", ["hi", "👍🏽", "👍", "👨\u200d👩\u200d👧", "🇫🇷", "🇩🇪"]),
        ("", []),
        (" \n\t", []),
    ],
)
def test_words_are_what_stands_between_blanks_and_marks(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "ends", "expected"),
    [
        ("我喜欢学习。", [1, 3, 5, 6], ["我", "喜欢", "学习", "。"]),
        ("ภาษาไทย", [4, 7], ["ภาษา", "ไทย"]),
        ("ก็ดี", [1, 2, 4], ["ก็", "ดี"]),  # never within a letter and its marks
        ("we are 人們", [1, 4, 8, 9], ["we", "are", "人", "們"]),  # nor within words with blanks
    ],
)
def test_where_there_are_no_blanks_a_piece_is_a_word(
    text: str, ends: list[int], expected: list[str]
) -> None:
    assert words(text, list(pairwise([0, *ends]))) == expected


PARTS = [
    "a",
    "e\u0301",
    " ",
    "l'",
    "-",
    "我",
    "の",
    "カ",
    "ก็",
    "ល្",
    "👨\u200d👩\u200d👧",
    "🇫🇷",
    "ّ",
    "\n",
    ".",
]


@given(st.text() | st.lists(st.sampled_from(PARTS)).map("".join), st.sets(st.integers(1, 30)))
def test_words_cover_everything_but_blanks_and_cut_no_character(text: str, ends: set[int]) -> None:
    for pieces in ([], list(pairwise([0, *sorted(e for e in ends if e < len(text)), len(text)]))):
        spans = word_spans(text, pieces)
        assert [text[start:end] for start, end in spans] == words(text, pieces)
        assert all(start < end for start, end in spans)
        assert all(before[1] <= after[0] for before, after in pairwise(spans))
        covered = {i for start, end in spans for i in range(start, end)}
        assert covered >= {i for i, letter in enumerate(text) if not letter.isspace()}
        clusters = [match.span() for match in regex.finditer(r"\X", text)]
        assert covered <= {i for a, b in clusters if text[a:b].strip() for i in range(a, b)}
        assert {place for span in spans for place in span} <= {0, *(end for _, end in clusters)}


@given(st.text(st.characters(max_codepoint=0x24F, exclude_categories=["Cc", "Cf"]) | st.just("’")))
def test_latin_words_are_what_they_were(text: str) -> None:
    assert words(text) == re.findall(r"\w+['’](?=\w)|[\w-]+|[^\w\s]", text)


def test_the_words_of_lingua_are_what_its_alignments_count() -> None:
    for pair in lingua.pairs("test", 200):
        for text in (pair.source, pair.target):
            assert words(text) == re.findall(r"\w+['’](?=\w)|[\w-]+|[^\w\s]", text)


def test_three_sentences_are_drawn_from_their_world_and_again_for_a_seed() -> None:
    drawn = sentences(300, seed=1)
    assert drawn == sentences(300, seed=1)
    assert drawn != sentences(300, seed=2)
    assert set(drawn) == set(SENTENCES)
    assert all(drawn.count(sentence) > 70 for sentence in SENTENCES)
