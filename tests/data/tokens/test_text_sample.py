"""A sample of texts: all of them where they are few, and a fair part where not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.tokens import text_sample
from saccade.data.tokens.text_sample import TextSample, enough_texts

rows_of_texts = st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=40)


@given(rows_of_texts)
def test_few_rows_are_all_taken_in_order(rows: list[tuple[str, ...]]) -> None:
    sample = TextSample(iter(rows))
    assert sample.rows == list(enumerate(rows))
    assert sample.total == len(rows)


@pytest.mark.parametrize(("texts", "characters"), [(100, 10**7), (1000, 0.3)])
def test_a_sample_keeps_its_bounds_its_order_and_its_place(
    texts: int, characters: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many characters for each of the texts that there may be."""
    monkeypatch.setattr(text_sample, "CHARACTERS", characters)
    rows = [(f"{number:03}",) for number in range(1000)]
    sample = TextSample(iter(rows), texts)
    assert 40 <= len(sample.rows) <= 100
    assert sample.total == 1000
    numbers = [number for number, _ in sample.rows]
    assert numbers == sorted(numbers)
    assert all(row == rows[number] for number, row in sample.rows)
    assert min(numbers) < 200  # from everywhere
    assert max(numbers) >= 800
    assert TextSample(iter(rows), texts).rows == sample.rows  # and always the same


def test_of_one_long_text_that_is_all() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_sample, "CHARACTERS", 5)
        assert TextSample([("a" * 9,)], 1).rows == [(0, ("a" * 9,))]


def test_byte_pairs_need_fewer_texts_the_fewer_they_are_and_words_all_that_may_be() -> None:
    asked = [("bpe", 300), ("bpe", 16_000), ("bpe", 250_000), ("words", 300), ("characters", 300)]
    assert [enough_texts(level, size) for level, size in asked] == [
        200_000,
        400_000,
        1_000_000,
        1_000_000,
        1_000_000,
    ]
