"""A corpus in chapters: every row once an epoch, and what was counted is not counted again."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import Int
from torch import Tensor

from saccade.data.batching.batches import Batches
from saccade.data.batching.mixed import MixedBatches
from saccade.data.batching.ragged import Ragged
from saccade.data.batching.rows import Rows
from saccade.tasks import chapters
from saccade.tasks.base import MakeBatching
from saccade.tasks.chapters import (
    ChapteredBatches,
    anew,
    chapters_of,
    count_of_chapter,
    rows_of_chapter,
)
from tests.tasks import bounded

MAKE: list[MakeBatching] = [Batches.of_lengths, MixedBatches.of_lengths]
LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=80)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chapters of sixteen rows and more, in stretches of three."""
    made_small(monkeypatch)


def made_small(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chapters, "CHAPTER_ROWS", 16)
    patch.setattr(chapters, "STRETCH", 3)


def columns(lengths: list[int]) -> tuple[Ragged, ...]:
    other = [(7 * n + 3) % 10 for n in lengths]
    return Ragged.of([[1] * n for n in lengths]), Ragged.of([[2] * n for n in other])


def batches_of(
    lengths: list[int], make: MakeBatching = Batches.of_lengths, seed: int = 0, **options: Any
) -> ChapteredBatches:
    rows = bounded(columns(lengths), **options)
    return ChapteredBatches(rows, make, budget=60, seed=seed)


def epoch_of(batches: ChapteredBatches, number: int) -> list[Int[Tensor, " batch"]]:
    first = number * len(batches)
    found = [batches.at(first + index) for index in range(len(batches))]
    assert all(epoch == number and counts for _, counts, epoch in found)
    return [rows for rows, _, _ in found]


@given(st.integers(0, 200), st.integers(1, 7))
def test_every_row_is_in_one_chapter(count: int, among: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        made_small(patch)
        parts = [rows_of_chapter(count, number, among) for number in range(among)]
        assert [len(part) for part in parts] == [
            count_of_chapter(count, number, among) for number in range(among)
        ]
    assert sorted(torch.cat(parts).tolist()) == list(range(count))
    assert all((part.diff() > 0).all() for part in parts)


def test_a_chapter_is_from_everywhere(small: None) -> None:
    assert [chapters_of(*size) for size in ((64,), (15, 0), (7, 1 << 40))] == [4, 1, 2]
    for number in range(4):
        rows = rows_of_chapter(640, number, 4).tolist()
        assert max(b - a for a, b in pairwise([0, *rows, 640])) <= 4 * 3


@pytest.mark.parametrize("make", MAKE)
@given(lengths=LENGTHS, seed=st.integers(0, 9), epoch=st.integers(0, 5), every=st.integers(0, 4))
def test_an_epoch_has_every_row_that_is_learnt_from_once_and_within_the_budget(
    make: MakeBatching, lengths: list[int], seed: int, epoch: int, every: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        made_small(patch)
        batches = batches_of(lengths, make, seed, longest=8, every=every)
        found = epoch_of(batches, epoch)
        again = epoch_of(batches_of(lengths, make, seed, longest=8, every=every), epoch)
    sides = torch.stack([column.lengths + 1 for column in columns(lengths)], dim=1)
    chosen = [row for row in range(len(lengths)) if not every or row % every]
    learnt = [row for row in chosen if int(sides[row].max()) <= 8]
    assert sorted(torch.cat([torch.empty(0), *found]).tolist()) == learnt
    assert batches.rows == len(learnt)
    assert batches.left_out == len(chosen) - len(learnt)
    assert batches.tokens == int(sides[learnt].sum())
    assert all(map(torch.equal, found, again))
    for rows in found:
        if batches.shapes is None:
            assert len(rows) * int(sides[rows].amax(dim=0).sum()) <= 60


@given(lengths=st.lists(st.integers(0, 9), min_size=33, max_size=90), epoch=st.integers(0, 5))
def test_batches_of_all_chapters_fit_into_one_shape(lengths: list[int], epoch: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        made_small(patch)
        batches = batches_of(lengths, MixedBatches.of_lengths)
        assert batches.chapters > 1
        found = epoch_of(batches, epoch)
    assert batches.shapes is not None
    positions = len(batches) * sum(shape.tokens for shape in batches.shapes)
    assert batches.padding == 1 - batches.tokens / positions
    made = set[Any]()
    for rows in found:
        for column, shape in zip(columns(lengths), batches.shapes):
            tokens, each = column.take(rows)
            words = torch.ones(int((each + 1).sum()), dtype=torch.long)
            made.add((shape, Rows.of(words, each + 1, shape=shape).shape))
            assert len(tokens) <= shape.tokens
    assert len(made) <= 2, "one shape for each column"


@pytest.mark.parametrize("make", MAKE)
@given(lengths=LENGTHS, seed=st.integers(0, 9), epoch=st.integers(0, 5))
def test_one_chapter_is_planned_as_if_there_were_none(
    make: MakeBatching, lengths: list[int], seed: int, epoch: int
) -> None:
    sides = torch.stack([column.lengths + 1 for column in columns(lengths)], dim=1)
    plain, ours = make(sides, budget=60, seed=seed), batches_of(lengths, make, seed)
    assert all(map(torch.equal, epoch_of(ours, epoch), plain.epoch(epoch)))
    assert (len(ours), ours.padding, ours.shapes) == (len(plain), plain.padding, plain.shapes)


def test_chapters_come_in_another_order_in_each_epoch_and_position_is_all_there_is(
    small: None,
) -> None:
    lengths = [n % 7 for n in range(200)]
    batches = batches_of(lengths)
    first = [int(epoch_of(batches, number)[0][0]) // 3 % batches.chapters for number in range(9)]
    assert len(set(first)) > 2
    backwards, total = batches_of(lengths), 3 * len(batches)
    found = {at: backwards.at(at) for at in reversed(range(total))}
    for at in range(total):
        rows, _, epoch = batches.at(at)
        assert torch.equal(rows, found[at][0])
        assert epoch == found[at][2]


@dataclass
class Kept:
    """Counts, and how often they were made."""

    counts: Any = None
    made: int = 0

    def __call__(self, count: Callable[[], Any]) -> Any:
        if self.counts is None:
            self.counts, self.made = anew(count), self.made + 1
        return self.counts


def test_a_later_start_looks_through_the_chapters_it_reaches(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, rows = Kept(), bounded(columns([n % 7 for n in range(400)]))
    cold = ChapteredBatches(rows, Batches.of_lengths, budget=60, seed=1, counted=kept)
    asked, looked = list[int](), ChapteredBatches.chapter

    def noted(self: ChapteredBatches, number: int) -> Any:
        asked.append(number)
        return looked(self, number)

    monkeypatch.setattr(ChapteredBatches, "chapter", noted)
    warm = ChapteredBatches(rows, Batches.of_lengths, budget=60, seed=1, counted=kept)
    assert torch.equal(warm.at(0)[0], cold.at(0)[0])
    assert (len(warm), warm.rows, warm.padding) == (len(cold), cold.rows, cold.padding)
    assert kept.made == 1
    assert len(asked) == 2, "one chapter for each of two batches"


def test_chapters_without_a_row_to_learn_from_are_passed_over(small: None) -> None:
    lengths = [9 if row // 3 % 5 == 2 else 2 for row in range(80)]
    batches = batches_of(lengths, longest=9)
    assert batches.chapters == 5
    found = torch.cat(epoch_of(batches, 1))
    assert sorted(found.tolist()) == [row for row in range(80) if lengths[row] == 2]
