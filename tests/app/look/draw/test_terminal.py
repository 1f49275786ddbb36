"""Attention as text: on terminals of any width, in words of any script."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from saccade.app.look.draw.terminal import draw_text, terminal

WORDS = st.lists(
    st.sampled_from(
        ["the", "Economic", "我们", "コーヒー", "لغة", "👨\u200d👩\u200d👧", "", "\x1b[2J"]
    )
)
CODES = re.compile(r"\x1b\[[0-9;]*m")


@given(WORDS.filter(len), WORDS.filter(len), st.integers(30, 100), st.booleans())
def test_lines_fit_and_end_between_words(
    rows: list[str], columns: list[str], width: int, colour: bool
) -> None:
    weights = [[1 / len(columns)] * len(columns)] * len(rows)
    drawn = draw_text(rows, columns, weights, colour=colour, width=width)
    lines = CODES.sub("", drawn).split("\n")
    assert all(cell_len(line) <= width for line in lines)
    assert "\x1b" not in "".join(lines)  # none of the text's own
    if colour:
        blocks = [block.split("\n") for block in CODES.sub("", drawn).split("\n\n")]
        assert all(len(block) == len(rows) for block in blocks)
        first = " ".join(block[0] for block in blocks)
        assert all(word in first for word in columns if word.isalpha())


def test_words_of_wide_letters_are_aligned() -> None:
    lines = draw_text(["我", "the"], ["a"], [[1.0], [1.0]], colour=False).split("\n")
    assert lines == [" 我  ← a 1.00", "the  ← a 1.00"]


def test_a_piece_that_carries_a_character_on_repeats_it_with_a_mark() -> None:
    drawn = draw_text(["我", "", "们"], ["a"], [[1.0]] * 3, colour=False)
    assert [line.split()[0] for line in drawn.split("\n")] == ["我", "我″", "们"]


def test_many_columns_come_in_blocks() -> None:
    columns = [f"word{i}" for i in range(12)]
    drawn = CODES.sub("", draw_text(["a", "b"], columns, [[0.1] * 12] * 2, colour=True, width=40))
    blocks = drawn.split("\n\n")
    assert len(blocks) == 3
    assert " ".join(block.split("\n")[0][3:] for block in blocks).split() == columns


@pytest.mark.parametrize("variable", [("NO_COLOR", "1"), ("TERM", "dumb"), ("COLUMNS", "55")])
def test_a_terminal_that_wants_no_colour_gets_numbers(
    variable: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "TERM", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv(*variable)
    assert terminal() == {"colour": False, "width": None}  # a file
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    found = terminal()
    assert found["colour"] is (variable[0] == "COLUMNS")
    assert found["width"] == (55 if variable[0] == "COLUMNS" else 80)
