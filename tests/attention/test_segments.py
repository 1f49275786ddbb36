"""Stretches of a long row: against the lengths they are made of."""

from collections.abc import Iterator
from itertools import pairwise

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.attention.segments import Segments

Sizes = list[tuple[int, int]]
sizes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)


def segments_of(pairs: Sizes) -> Segments:
    """Queries and keys of each stretch."""
    queries, keys = (starts([pair[side] for pair in pairs]) for side in (0, 1))
    return Segments(queries, keys, max(q for q, _ in pairs), max(k for _, k in pairs))


def starts(lengths: list[int]) -> Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


def owners(lengths: list[int]) -> list[int]:
    return [stretch for stretch, length in enumerate(lengths) for _ in range(length)]


@given(sizes)
def test_a_query_may_look_at_the_keys_of_its_own_stretch(pairs: Sizes) -> None:
    mine, theirs = (owners([pair[side] for pair in pairs]) for side in (0, 1))
    mask = segments_of(pairs).mask(len(mine), len(theirs))
    assert mask.shape == (1, 1, len(mine), len(theirs))
    assert mask[0, 0].tolist() == [[a == b for b in theirs] for a in mine]


def unrolled(runs: list[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    for many, queries, keys in runs:
        yield from [(queries, keys)] * many


@given(sizes)
def test_runs_are_the_stretches_and_neighbouring_runs_differ(pairs: Sizes) -> None:
    runs = segments_of(pairs).runs
    assert list(unrolled(runs)) == pairs
    assert all(one[1:] != other[1:] for one, other in pairwise(runs))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8))
def test_sequences_among_themselves_are_queries_and_keys_at_once(lengths: list[int]) -> None:
    alone = Segments.among(starts(lengths), 4)
    pair = Segments(starts(lengths), starts(lengths), 4, 4)
    total = sum(lengths)
    assert alone.mask(total, total).equal(pair.mask(total, total))
    assert alone.runs == pair.runs
