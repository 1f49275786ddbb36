"""Which texts say the same."""

from saccade.tasks.matching.same import marks, numbered, wording


def test_capitals_and_blanks_make_no_difference_but_words_do() -> None:
    assert wording(" A  red\tCircle ") == wording("a red circle") == "a red circle"
    assert wording("a red circle") != wording("red a circle")


def test_marks_are_equal_where_wordings_are() -> None:
    one, other, third = marks(["A  dog", "a DOG ", "a dog."])
    assert one == other != third


def test_equal_ones_have_one_number_each_below_how_many_there_are() -> None:
    assert numbered(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 0, 2, 1]
    assert numbered([]).tolist() == []
