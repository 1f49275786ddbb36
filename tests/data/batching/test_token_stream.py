"""Documents as a stream: the same tokens as if they were joined."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.ragged import Ragged
from saccade.data.batching.token_stream import TokenStream

END = 99
documents = st.lists(st.lists(st.integers(0, 50), max_size=7), min_size=1, max_size=9)


def joined(rows: list[list[int]]) -> list[int]:
    return rows[0] if len(rows) == 1 else [word for row in rows for word in (*row, END)]


def all_of(stream: TokenStream) -> list[int]:
    return stream.take(torch.tensor([0]), torch.tensor([len(stream)])).tolist() if stream else []


@given(documents)
def test_documents_are_kept_apart_by_an_end(rows: list[list[int]]) -> None:
    stream = TokenStream(Ragged.of(rows), END)
    assert len(stream) == len(joined(rows))
    assert all_of(stream) == joined(rows)


@given(documents, st.data())
def test_runs_are_taken_in_any_order_and_may_overlap(
    rows: list[list[int]], data: st.DataObject
) -> None:
    expected = joined(rows)
    if expected:
        place = st.integers(0, len(expected) - 1)
        runs = data.draw(st.lists(st.tuples(place, place).map(sorted), min_size=1, max_size=6))
        first, last = torch.tensor(runs).T
        found = TokenStream(Ragged.of(rows), END).take(first, last - first + 1)
        assert found.tolist() == [token for a, b in runs for token in expected[a : b + 1]]
        assert found.dtype == torch.int64


@given(documents, st.data())
def test_a_choice_of_documents_is_a_stream_too(rows: list[list[int]], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    chosen = [row for row, one in zip(rows, kept) if one]
    if chosen:
        stream = TokenStream(Ragged.of(rows).where(torch.tensor(kept)), END)
        assert all_of(stream) == joined(chosen)
