"""A sample of texts: all of them where they are few, and a fair part where not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.tokens import text_sample
from saccade.data.tokens.text_sample import TextSample

rows_of_texts = st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4)), max_size=40)


@given(rows_of_texts)
def test_few_rows_are_all_taken_in_order(rows: list[tuple[str, ...]]) -> None:
    sample = TextSample(iter(rows))
    assert sample.rows == list(enumerate(rows))
    assert sample.total == len(rows)


@pytest.mark.parametrize(("texts", "characters"), [(100, 10**9), (10**9, 300)])
def test_a_sample_keeps_its_bounds_its_order_and_its_place(
    texts: int, characters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_sample, "MOST_TEXTS", texts)
    monkeypatch.setattr(text_sample, "MOST_CHARACTERS", characters)
    rows = [(f"{number:03}",) for number in range(1000)]
    sample = TextSample(iter(rows))
    assert 40 <= len(sample.rows) <= 100
    assert sample.total == 1000
    numbers = [number for number, _ in sample.rows]
    assert numbers == sorted(numbers)
    assert all(row == rows[number] for number, row in sample.rows)
    assert min(numbers) < 200  # from everywhere
    assert max(numbers) >= 800
    assert TextSample(iter(rows)).rows == sample.rows  # and always the same


def test_of_one_long_text_that_is_all() -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_sample, "MOST_CHARACTERS", 5)
        assert TextSample([("a" * 9,)]).rows == [(0, ("a" * 9,))]
