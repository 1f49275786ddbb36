"""Batches: every row once an epoch, within the budget, in an order that the seed decides."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.batching.batches import Batches, pad
from saccade.errors import DataError
from saccade.tasks.base import shard_rows

lengths = st.integers(1, 3).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(1, 9), min_size=columns, max_size=columns), min_size=1, max_size=60
    )
)
budgets, seeds, epochs = st.integers(27, 90), st.integers(0, 99), st.integers(0, 9)


def plan(rows: list[list[int]], *, budget: int, seed: int = 0) -> Batches:
    return Batches.of_lengths(torch.tensor(rows), budget=budget, seed=seed)


def batches_row_by_row(
    rows: list[list[int]], *, budget: int, seed: int, epoch: int
) -> list[list[int]]:
    """The same as runs had it when batches were planned in plain Python."""
    ordered = sorted(rows, key=lambda row: row[::-1])
    cuts, start, widest = [0], 0, [0] * len(rows[0])
    for row, row_lengths in enumerate(ordered):
        grown = [max(a, b) for a, b in zip(widest, row_lengths)]
        if (row - start + 1) * sum(grown) > budget:
            cuts.append(row)
            start, grown = row, row_lengths
        widest = grown
    cuts.append(len(ordered))
    rng = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shuffled = torch.randperm(len(rows), generator=rng).tolist()
    shuffled.sort(key=lambda row: rows[row][::-1])
    order = torch.randperm(len(cuts) - 1, generator=rng).tolist()
    return [shuffled[cuts[i] : cuts[i + 1]] for i in order]


long_lengths = st.lists(st.tuples(st.integers(0, 70_000), st.integers(0, 9)), min_size=1)


@given(
    rows=lengths | long_lengths.map(lambda rows: [[1, 1], *map(list, rows)]),
    budget=budgets,
    seed=seeds,
    epoch=epochs,
)
def test_batches_are_those_that_runs_have_always_had(
    rows: list[list[int]], budget: int, seed: int, epoch: int
) -> None:
    budget = max(budget, *map(sum, rows))
    found = plan(rows, budget=budget, seed=seed).epoch(epoch)
    oracle = batches_row_by_row(rows, budget=budget, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in found] == oracle


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_every_row_is_in_exactly_one_batch_of_an_epoch(
    rows: list[list[int]], budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    found = torch.cat(batches.epoch(epoch))
    assert sorted(found.tolist()) == list(range(len(rows)))


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_no_batch_is_empty_or_costs_more_than_the_budget(
    rows: list[list[int]], budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    for batch in batches.epoch(epoch):
        assert 0 < len(batch) * int(batches.lengths[batch].amax(dim=0).sum()) <= budget


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_every_epoch_has_the_same_shapes(
    rows: list[list[int]], budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    shapes = [
        sorted((len(b), *batches.lengths[b].amax(dim=0).tolist()) for b in batches.epoch(number))
        for number in (epoch, epoch + 1)
    ]
    assert shapes[0] == shapes[1]
    assert len(shapes[0]) == len(batches)


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_the_order_is_a_function_of_seed_and_epoch(
    rows: list[list[int]], budget: int, seed: int, epoch: int
) -> None:
    one, other = plan(rows, budget=budget, seed=seed), plan(rows, budget=budget, seed=seed)
    for number in (epoch + 3, epoch + 1):
        other.epoch(number)  # the order of asking does not matter
    ours, theirs = one.epoch(epoch), other.epoch(epoch)
    assert all(a.equal(b) for a, b in zip(ours, theirs, strict=True))


def ordered(batches: Batches, epoch: int) -> list[int]:
    return torch.cat(batches.epoch(epoch)).tolist()


def test_epochs_differ_and_so_do_seeds() -> None:
    rows = [[1 + i % 4] for i in range(60)]
    batches = plan(rows, budget=20, seed=5)
    orders = {tuple(ordered(batches, epoch)) for epoch in range(20)}
    assert len(orders) == 20
    assert ordered(batches, 0) != ordered(plan(rows, budget=20, seed=6), 0)


def test_who_meets_whom_differs_from_epoch_to_epoch() -> None:
    batches = plan([[3]] * 40, budget=30)
    groups = [{frozenset(batch.tolist()) for batch in batches.epoch(e)} for e in (0, 1)]
    assert groups[0] != groups[1]


@given(rows=lengths, budget=budgets)
def test_padding_is_the_share_of_what_is_computed_in_vain(
    rows: list[list[int]], budget: int
) -> None:
    batches = plan(rows, budget=budget)
    computed = sum(
        len(batch) * int(batches.lengths[batch].amax(dim=0).sum()) for batch in batches.epoch(0)
    )
    assert batches.padding == pytest.approx(1 - sum(map(sum, rows)) / computed)


@given(rows=lengths)
def test_with_room_for_all_there_is_one_batch(rows: list[list[int]]) -> None:
    assert len(plan(rows, budget=10_000)) == 1


def test_a_row_that_fits_in_no_batch_is_refused() -> None:
    with pytest.raises(DataError, match=r"a row has 12 tokens, .*hold \(11\); .*--train.batch-"):
        plan([[1, 1], [5, 7]], budget=11)


@pytest.mark.parametrize("rows", [torch.zeros(0, 2, dtype=torch.long), torch.zeros(3, 1).long()])
def test_nothing_to_learn_from_is_refused(rows: Any) -> None:
    with pytest.raises(DataError, match="every row is empty"):
        Batches.of_lengths(rows, budget=10, seed=0)


@given(count=st.integers(1, 9), shards=st.integers(1, 6))
def test_the_shares_of_all_processes_are_the_batch_and_nobody_goes_without(
    count: int, shards: int
) -> None:
    rows = torch.arange(count) * 7
    shares = [shard_rows(rows, shard, shards) for shard in range(shards)]
    assert all(len(share) for share, _ in shares)
    counted = torch.cat([share for share, counts in shares if counts])
    assert sorted(counted.tolist()) == rows.tolist()


@given(st.lists(st.lists(st.integers(1, 9), max_size=5), min_size=1, max_size=5))
def test_padding_fills_up_on_the_right_only(rows: list[list[int]]) -> None:
    padded = pad([torch.tensor(row, dtype=torch.long) for row in rows], value=0)
    widest = max(map(len, rows))
    assert padded.tolist() == [row + [0] * (widest - len(row)) for row in rows]
