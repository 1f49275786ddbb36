"""Text of others that is safe to print."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\u202eb", r"a\u202eb"),
        ("a\rb\tc\nd", r"a\rb\tc\nd"),
        ("\ud800", r"\ud800"),
        (
            "عربي 中文 👩\u200d👩\u200d👧 می\u200cخواهم",
            "عربي 中文 👩\u200d👩\u200d👧 می\u200cخواهم",
        ),
    ],
)
def test_what_is_not_seen_is_spelt_out(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_line_ends_stay_where_lines_are_meant() -> None:
    assert printable("a\nb\x07", lines=True) == "a\nb\\x07"


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    shown = printable(text)
    left = {unicodedata.category(one) for one in shown if one not in "\u200c\u200d"}
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text
