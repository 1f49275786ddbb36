"""Sequences end to end: against lists of lists."""

from itertools import chain, pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.batching.ragged import Ragged
from saccade.data.batching.rows import BatchShape, Rows, few, with_token
from saccade.data.tokens.vocabulary import OURS

PAD = OURS.pad

Lists = list[list[int]]
lists = st.lists(st.lists(st.integers(4, 99), max_size=7), min_size=1, max_size=8).filter(any)


@st.composite
def shapes(draw: st.DrawFn, rows: Lists) -> BatchShape | None:
    """None, or a shape that the rows fit into."""
    if draw(st.booleans()):
        return None
    longest = max(map(len, rows)) + draw(st.integers(0, 5))
    more = draw(st.integers(0, 6))
    rest = draw(st.integers(0, more * longest))
    return BatchShape(sum(map(len, rows)) + rest, len(rows) + more, longest)


def laid(rows: Lists, shape: BatchShape | None = None) -> Rows:
    return Rows.of(*flat(rows), shape=shape)


def joined(rows: Lists) -> list[int]:
    return list(chain.from_iterable(rows))


def flat(rows: Lists) -> tuple[Tensor, Tensor]:
    return torch.tensor(joined(rows)), torch.tensor([len(row) for row in rows])


def padding(rows: Lists) -> Lists:
    longest = max(map(len, rows))
    return [row + [PAD] * (longest - len(row)) for row in rows]


@given(st.data())
def test_padded_is_the_rows_below_each_other_whatever_fills_the_room(data: st.DataObject) -> None:
    rows = data.draw(lists)
    assert laid(rows, data.draw(shapes(rows))).padded().tolist() == padding(rows)


def test_filling_that_makes_up_for_the_raggedness_is_no_rectangle() -> None:
    rows = laid([[4], [5, 6, 7]], BatchShape(6, 4, 16))
    assert not rows.rectangular
    assert rows.padded().tolist() == [[4, PAD, PAD], [5, 6, 7]]


@given(st.data())
def test_out_of_the_rectangle_comes_what_went_in_without_the_filling(data: st.DataObject) -> None:
    rows = data.draw(lists)
    found = laid(rows, data.draw(shapes(rows)))
    rectangle = torch.stack([found.padded().double(), 2.0 * found.padded()], dim=-1)
    words = torch.tensor(joined(rows), dtype=torch.float64)
    assert found.real == len(words)
    assert found.out_of_rectangle(rectangle).equal(torch.stack([words, 2 * words], dim=-1))


@given(st.data())
def test_places_restart_in_each_sequence_and_starts_are_where_they_do(data: st.DataObject) -> None:
    rows = data.draw(lists)
    shape = data.draw(shapes(rows))
    found = laid(rows, shape)
    starts = found.starts.tolist()
    assert starts[0] == 0
    assert starts[-1] == len(found.tokens) == (found.real if shape is None else shape.tokens)
    assert len(starts) - 1 == (len(rows) if shape is None else shape.sequences)
    stretches = list(pairwise(starts))
    assert [end - start for start, end in stretches][: len(rows)] == list(map(len, rows))
    for start, end in stretches:
        assert found.places[start:end].tolist() == list(range(end - start))
        assert end - start <= found.longest
    assert found.longest == few(max(map(len, rows)) if shape is None else shape.longest)
    assert found.tokens[found.real :].eq(PAD).all()
    assert found.shape == (len(found.tokens), len(found.starts), found.longest)


@given(tokens=st.integers(0, 60), more=st.integers(0, 9), longest=st.integers(1, 9), data=st.data())
def test_filling_covers_the_room_exactly_and_is_never_too_long(
    tokens: int, more: int, longest: int, data: st.DataObject
) -> None:
    rest = data.draw(st.integers(0, more * longest))
    lengths = BatchShape(tokens + rest, 5 + more, longest).filling(5, tokens)
    assert sum(lengths) == rest
    assert len(lengths) == more
    assert all(0 <= length <= longest for length in lengths)


@pytest.mark.parametrize(("sequences", "tokens"), [(2, 11), (3, 5), (2, 5)])
def test_what_does_not_fit_a_room_is_found_out(sequences: int, tokens: int) -> None:
    with pytest.raises(AssertionError):
        BatchShape(10, 3, 4).filling(sequences, tokens)


@given(rows=lists, first=st.booleans())
def test_one_more_token_goes_before_or_behind_each(rows: Lists, first: bool) -> None:
    expected = [[3, *row] if first else [*row, 3] for row in rows]
    assert with_token(*flat(rows), 3, first=first).tolist() == joined(expected)


@given(rows=lists, data=st.data())
def test_taken_rows_lie_end_to_end_in_the_order_asked_for(rows: Lists, data: st.DataObject) -> None:
    ragged = Ragged.of(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=9))
    tokens, lengths = ragged.take(torch.tensor(chosen))
    assert tokens.tolist() == joined([rows[row] for row in chosen])
    assert lengths.tolist() == [len(rows[row]) for row in chosen]
    assert tokens.dtype == lengths.dtype == torch.long
    assert [ragged[row].tolist() for row in range(len(ragged))] == rows


@given(st.integers(1, 5000))
def test_few_lengths_are_enough_and_not_far_off(length: int) -> None:
    found = few(length)
    assert found >= length
    assert found.bit_count() == 1
    assert found == 16 or found < 2 * length


@given(rows=lists)
def test_without_a_room_nothing_is_filled(rows: Lists) -> None:
    found = laid(rows)
    assert found.real == len(found.tokens)
    assert found.longest == few(max(map(len, rows)))
    assert found.rectangular == (len(set(map(len, rows))) == 1)


@given(rows=lists, other=lists)
def test_batches_of_one_room_have_one_shape(rows: Lists, other: Lists) -> None:
    shape = BatchShape(112, 24, 16)
    assert laid(rows, shape).shape == laid(other, shape).shape
    moved = laid(rows, shape).to(torch.device("cpu"))
    assert moved.padded().equal(laid(rows, shape).padded())


@given(st.data())
def test_each_token_knows_its_sequence_and_a_rectangle_holds_what_is_known_of_it(
    data: st.DataObject,
) -> None:
    rows = data.draw(lists)
    whole = laid(rows, data.draw(shapes(rows)))
    named = [number for number, row in enumerate(rows) for _ in row]
    assert whole.sequences[: len(named)].tolist() == named
    pairs = torch.stack([whole.tokens, whole.tokens * 2], dim=1)
    once, twice = whole.rectangle(pairs).unbind(dim=2)
    assert once.tolist() == whole.padded().tolist() == padding(rows)
    assert torch.equal(twice, 2 * once)
