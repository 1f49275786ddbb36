"""Sequences in one flat tensor: how they are stored and chosen makes no difference."""

import hashlib

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.ragged import Ragged, RaggedRows, token_type

sequences = st.lists(st.lists(st.integers(0, 60_000), max_size=5), min_size=1, max_size=9)


def small(rows: list[list[int]]) -> Ragged:
    """The same in two bytes for each token."""
    ragged = Ragged.of(rows)
    return Ragged(ragged.flat.to(torch.uint16), ragged.starts)


def read(ragged: Ragged | RaggedRows) -> list[list[int]]:
    tokens, lengths = ragged.take(torch.arange(len(ragged)))
    return [row.tolist() for row in tokens.split(lengths.tolist())]


def fingerprint_in_one_go(rows: list[list[int]]) -> str:
    """As runs have noted it since there were any."""
    flat = np.array([token for row in rows for token in row], np.int32)
    starts = np.array([0, *map(len, rows)], np.int64).cumsum()
    return hashlib.sha256(flat.tobytes() + starts.tobytes()).hexdigest()


@given(sequences)
def test_a_fingerprint_is_that_of_the_tokens_whatever_holds_them(rows: list[list[int]]) -> None:
    assert Ragged.of(rows).fingerprint() == fingerprint_in_one_go(rows)
    assert small(rows).fingerprint() == fingerprint_in_one_go(rows)


@given(rows=sequences, data=st.data())
def test_a_choice_is_what_a_copy_of_it_is(rows: list[list[int]], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    kept[0] = True
    chosen = [row for row, keep in zip(rows, kept) if keep]
    some = small(rows).where(torch.tensor(kept))
    assert read(some) == chosen
    assert some.lengths.tolist() == [len(row) for row in chosen]
    assert some.fingerprint() == Ragged.of(chosen).fingerprint()
    assert read(some.end_to_end()) == chosen
    assert some.end_to_end().flat.dtype == torch.uint16
    last = torch.arange(len(some)) == len(some) - 1
    assert read(some.where(last)) == chosen[-1:]


def test_neighbours_are_chosen_without_a_copy() -> None:
    whole = small([[1, 2], [3], [4, 5, 6], []])
    for kept in ([True] * 4, [False, True, True, False], [True, False, False, False]):
        some = whole.where(torch.tensor(kept))
        assert some.end_to_end().flat.untyped_storage().data_ptr() == (
            whole.flat.untyped_storage().data_ptr()
        )


@given(st.lists(sequences, min_size=1, max_size=4))
def test_parts_are_joined_end_to_end(parts: list[list[list[int]]]) -> None:
    assert read(Ragged.joined(map(small, parts))) == [row for rows in parts for row in rows]


def test_two_bytes_hold_as_many_tokens_as_they_can() -> None:
    assert [token_type(size).itemsize for size in (4, 65_536, 65_537)] == [2, 2, 4]
