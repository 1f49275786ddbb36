"""Batches of one shape: every row once an epoch, and every batch within its shape."""

from math import ceil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.data.batching.mixed import MixedBatches
from saccade.errors import DataError

lengths = st.integers(1, 3).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(1, 9), min_size=columns, max_size=columns), min_size=1, max_size=60
    )
)
budgets, seeds, epochs = st.integers(27, 90), st.integers(0, 99), st.integers(0, 9)
Sizes = list[list[int]]


def plan(rows: Sizes, *, budget: int, seed: int = 0) -> MixedBatches:
    return MixedBatches.of_lengths(torch.tensor(rows), budget=budget, seed=seed)


def dealt_row_by_row(rows: list[int], count: int) -> list[list[int]]:
    batches: list[list[int]] = [[] for _ in range(count)]
    for number, row in enumerate(rows):
        turn, place = divmod(number, count)
        batches[count - 1 - place if turn % 2 else place].append(row)
    return batches


def batches_row_by_row(
    rows: Sizes, *, budget: int, seed: int, epoch: int
) -> tuple[list[list[int]], list[int], int]:
    """Batches, and tokens and sequences of their shape, as runs had them in plain Python."""
    ordered, columns = sorted(rows, key=lambda row: row[::-1]), range(len(rows[0]))
    for count in range(ceil(sum(map(sum, rows)) / budget), len(rows) + 1):
        dealt = dealt_row_by_row(list(range(len(rows))), count)
        sums = [[sum(ordered[row][c] for row in batch) for c in columns] for batch in dealt]
        if max(map(sum, sums)) <= budget:
            break
    tokens = [ceil(max(one[c] for one in sums) / 16) * 16 for c in columns]
    longest = [max(1, *(row[c] for row in rows)) for c in columns]
    filling = max(ceil((tokens[c] - one[c]) / longest[c]) for c in columns for one in sums)
    rng = torch.Generator().manual_seed(seed * 1_000_003 + epoch)
    shuffled = torch.randperm(len(rows), generator=rng).tolist()
    shuffled.sort(key=lambda row: rows[row][::-1])
    order = torch.randperm(count, generator=rng).tolist()
    batches = dealt_row_by_row(shuffled, count)
    return [batches[i] for i in order], tokens, max(map(len, dealt)) + filling


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_batches_are_those_that_runs_have_always_had(
    rows: Sizes, budget: int, seed: int, epoch: int
) -> None:
    mixed = plan(rows, budget=budget, seed=seed)
    batches, tokens, sequences = batches_row_by_row(rows, budget=budget, seed=seed, epoch=epoch)
    assert [batch.tolist() for batch in mixed.epoch(epoch)] == batches
    assert [shape.tokens for shape in mixed.shapes] == tokens
    assert {shape.sequences for shape in mixed.shapes} == {sequences}


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_every_row_is_in_exactly_one_batch_of_an_epoch(
    rows: Sizes, budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    found = batches.epoch(epoch)
    assert len(found) == len(batches)
    assert all(len(batch) for batch in found)
    assert sorted(torch.cat(found).tolist()) == list(range(len(rows)))


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_no_batch_holds_more_than_the_budget(
    rows: Sizes, budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    assert all(int(batches.lengths[batch].sum()) <= budget for batch in batches.epoch(epoch))


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_every_batch_fits_its_rooms_and_its_filling_does_too(
    rows: Sizes, budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    assert len(batches.shapes) == len(rows[0])
    for batch in batches.epoch(epoch):
        for shape, column in zip(batches.shapes, batches.lengths[batch].T):
            assert int(column.max()) <= shape.longest <= max(map(max, rows))
            filling = shape.filling(len(batch), int(column.sum()))
            assert len(batch) + len(filling) == shape.sequences
            assert int(column.sum()) + sum(filling) == shape.tokens


@given(rows=lengths, budget=budgets)
def test_a_room_is_no_larger_than_the_fullest_batch_needs(rows: Sizes, budget: int) -> None:
    batches = plan(rows, budget=budget)
    sums = torch.stack([batches.lengths[batch].sum(dim=0) for batch in batches.epoch(0)])
    for shape, fullest in zip(batches.shapes, sums.amax(dim=0).tolist()):
        assert fullest <= shape.tokens < fullest + 16
        assert shape.tokens % 16 == 0


def shapes(batches: MixedBatches, epoch: int) -> list[Sizes]:
    return sorted(sorted(batches.lengths[batch].tolist()) for batch in batches.epoch(epoch))


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_every_epoch_mixes_the_same_lengths(
    rows: Sizes, budget: int, seed: int, epoch: int
) -> None:
    batches = plan(rows, budget=budget, seed=seed)
    assert shapes(batches, epoch) == shapes(batches, epoch + 1)


@given(rows=lengths, budget=budgets, seed=seeds, epoch=epochs)
def test_the_order_is_a_function_of_seed_and_epoch(
    rows: Sizes, budget: int, seed: int, epoch: int
) -> None:
    one, other = plan(rows, budget=budget, seed=seed), plan(rows, budget=budget, seed=seed)
    for number in (epoch + 3, epoch + 1):
        other.epoch(number)  # the order of asking does not matter
    ours, theirs = one.epoch(epoch), other.epoch(epoch)
    assert all(a.equal(b) for a, b in zip(ours, theirs, strict=True))


def ordered(batches: MixedBatches, epoch: int) -> list[int]:
    return torch.cat(batches.epoch(epoch)).tolist()


def test_epochs_differ_and_so_do_seeds() -> None:
    rows = [[1 + i % 4] for i in range(60)]
    batches = plan(rows, budget=20, seed=5)
    assert len({tuple(ordered(batches, epoch)) for epoch in range(20)}) == 20
    assert ordered(batches, 0) != ordered(plan(rows, budget=20, seed=6), 0)


def test_who_meets_whom_differs_from_epoch_to_epoch() -> None:
    batches = plan([[3]] * 40, budget=30)
    groups = [{frozenset(batch.tolist()) for batch in batches.epoch(e)} for e in (0, 1)]
    assert groups[0] != groups[1]


def test_the_order_of_the_batches_differs_too() -> None:
    """Else the longest row would always be learnt at the same time."""
    batches = plan([[1 + i] for i in range(40)], budget=80)
    holders = {max(range(len(batches)), key=lambda i: most(batches, e, i)) for e in range(9)}
    assert len(holders) > 2


def most(batches: MixedBatches, epoch: int, index: int) -> int:
    return int(batches.lengths[batches.epoch(epoch)[index]].max())


@given(rows=lengths, budget=budgets)
def test_padding_is_the_share_of_what_is_computed_in_vain(rows: Sizes, budget: int) -> None:
    batches = plan(rows, budget=budget)
    computed = len(batches) * sum(shape.tokens for shape in batches.shapes)
    assert batches.padding == pytest.approx(1 - sum(map(sum, rows)) / computed)


@pytest.mark.parametrize(("budget", "most"), [(4096, 0.03), (16384, 0.01)])
def test_little_is_filled_up_where_a_batch_has_many_rows(budget: int, most: float) -> None:
    rng = torch.Generator().manual_seed(0)
    source = torch.randint(5, 60, (20_000,), generator=rng)
    target = (source + torch.randint(-4, 5, (20_000,), generator=rng)).clamp(min=1)
    batches = MixedBatches.of_lengths(torch.stack([source, target], dim=1), budget=budget, seed=0)
    assert batches.padding < most
    assert len(batches) <= ceil(int((source + target).sum()) / budget) * 1.01 + 1


@pytest.mark.parametrize("rows", [torch.zeros(0, 2, dtype=torch.long), torch.zeros(3, 1).long()])
def test_nothing_to_learn_from_is_refused(rows: Tensor) -> None:
    with pytest.raises(DataError, match="every row is empty"):
        MixedBatches.of_lengths(rows, budget=10, seed=0)


def test_a_row_that_fits_in_no_batch_is_refused() -> None:
    with pytest.raises(DataError, match=r"a row has 12 tokens, .*hold \(11\); .*--train.batch-"):
        plan([[1, 1], [5, 7]], budget=11)
