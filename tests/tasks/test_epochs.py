"""The order of the rows in each epoch: what holds for all kinds of work."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.tasks.epochs import ChapterOrder, batches_of, equal_batches

counts, sizes, seeds = st.integers(1, 40), st.integers(1, 12), st.integers(0, 99)


def epoch_of(order: ChapterOrder, number: int) -> list[int]:
    first = number * len(order)
    parts = [order.at(first + at, 0, 1) for at in range(len(order))]
    assert {(counts, epoch) for _, counts, epoch in parts} == {(True, number)}
    return torch.cat([rows for rows, _, _ in parts]).tolist()


@given(count=counts, size=sizes, seed=seeds, number=st.integers(0, 5))
def test_an_epoch_has_every_row_once(count: int, size: int, seed: int, number: int) -> None:
    rows = 3 * torch.arange(count)
    assert sorted(epoch_of(batches_of(rows, size, seed=seed), number)) == rows.tolist()
    assert sorted(epoch_of(equal_batches(count, size, seed=seed), number)) == list(range(count))


@given(count=counts, size=sizes, seed=seeds)
def test_batches_are_as_large_as_asked_or_as_one_another(count: int, size: int, seed: int) -> None:
    order = batches_of(torch.arange(count), size, seed=seed)
    own = [len(order.at(at, 0, 1)[0]) for at in range(len(order))]
    assert set(own[:-1]) <= {size}
    order = equal_batches(count, size, seed=seed)
    equal = [len(order.at(at, 0, 1)[0]) for at in range(len(order))]
    assert max(equal) <= size
    assert max(equal) - min(equal) <= 1


@given(count=counts, size=sizes, seed=seeds, positions=st.lists(st.integers(0, 60), max_size=6))
def test_a_position_is_found_again_whatever_came_before(
    count: int, size: int, seed: int, positions: list[int]
) -> None:
    order = equal_batches(count, size, seed=seed)
    for position in positions:
        alone = equal_batches(count, size, seed=seed).at(position, 0, 1)
        torch.testing.assert_close(order.at(position, 0, 1)[0], alone[0], rtol=0, atol=0)


@given(count=counts, size=sizes, seed=seeds, repeats=st.integers(1, 4))
def test_repeated_rows_make_an_epoch_no_longer(
    count: int, size: int, seed: int, repeats: int
) -> None:
    found = epoch_of(equal_batches(count, size, seed=seed, repeats=repeats), 0)
    assert len(found) == len(set(found)) == count
    rows = [example % count for example in found]
    assert len(set(rows)) == -(-count // repeats)
