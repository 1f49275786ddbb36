"""A look in blocks: the definitions, within the rounding of its precision, in little memory."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from saccade.attention.kernels.look import blocks
from saccade.attention.kernels.look.largest import largest
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import View
from tests.attention.kernels import (
    BLIND_SIGNS,
    DTYPES,
    check_lse,
    check_places,
    draws,
    errors,
    keeps,
    of_glance,
    statistics,
    truth,
    views,
    with_lse,
)
from tests.marks import one_fast

FLOOR = {np.float64: 1e-12, np.float32: 2e-6}  # of errors that are not worth comparing


def looked(view: View, keep: Keep, size: int = 1 << 22) -> Glance:
    """The look with blocks of so many bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(blocks.BLOCK_BYTES, "cpu", size)
        return blocks.observe(view, keep)


def check(view: View, keep: Keep, size: int) -> None:
    """No statistic is more than twice as wrong as the same arithmetic on whole matrices, but for
    what the log-sum-exp of a row, which is held in that arithmetic, cannot tell apart.
    """
    precision: Any = np.float64 if view.q.dtype == torch.float64 else np.float32
    right, plain = truth(view), truth(view, precision)
    finite = right.lse[np.isfinite(right.lse)]
    floor = FLOOR[precision] + np.finfo(precision).eps * abs(finite).max(initial=0)
    exact, glance = statistics(right.weights, keep), looked(view, keep, size)
    ours = errors(of_glance(glance), exact)
    theirs = errors(statistics(plain.weights, keep), exact)
    assert {n: e for n, e in ours.items() if e > 2 * theirs[n] + floor} == {}
    rounding = 2 * theirs["highest"] + floor
    check_places(glance, right, tolerance=rounding)
    seen = np.isfinite(right.lse)
    lse_error = abs(plain.lse[seen] - right.lse[seen]).max(initial=0)
    check_lse(glance, right, tolerance=2 * lse_error + floor)


block_bytes = st.sampled_from([1, 400, 3000, 1 << 22])


@pytest.mark.slow
@settings(max_examples=160)
@given(view=views(), keep=keeps, size=block_bytes)
def test_finds_what_the_definitions_say_whatever_the_view(
    view: View, keep: Keep, size: int
) -> None:
    check(view, keep, size)


@pytest.mark.slow
@settings(max_examples=80)
@given(view=views(), keep=keeps, size=block_bytes, blind=st.sampled_from(BLIND_SIGNS))
def test_takes_a_kernels_log_sum_exp_whatever_that_says_of_blind_queries(
    view: View, keep: Keep, size: int, blind: float
) -> None:
    check(with_lse(view, truth(view), blind), keep, size)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("queries", "keys"), [(200, 200), (50, 200), (200, 50), (1, 300)])
def test_longer_rows_than_a_group_or_a_block_hold_no_surprise(
    dtype: torch.dtype, queries: int, keys: int
) -> None:
    q, k = draws(1, 4, queries, 16, seed=0, dtype=dtype), draws(1, 2, keys, 16, seed=1, dtype=dtype)
    for reach in (None, 40):
        view = View(q, k, 0.5, causal=True, reach=reach)
        for keep in (Keep(), Keep(map_side=0), Keep(map_side=16, top=20)):
            check(view, keep, 1 << 14)


@given(view=views(), keep=keeps)
def test_the_size_of_a_block_does_not_matter(view: View, keep: Keep) -> None:
    whole = looked(view, keep).tensors()
    for name, part in looked(view, keep, 600).tensors().items():
        if part.is_floating_point():
            torch.testing.assert_close(part, whole[name], atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize(("queries", "keys"), [(0, 5), (5, 0), (0, 0), (1, 1)])
@pytest.mark.parametrize("keep", [Keep(), Keep(map_side=0, top=0, received=False)])
def test_nothing_to_see_or_nobody_to_see_it_is_no_trouble(
    queries: int, keys: int, keep: Keep
) -> None:
    view = View(draws(2, 3, queries, 4, seed=0), draws(2, 3, keys, 4, seed=1), 0.5)
    glance = blocks.observe(view, keep)
    assert glance.entropy.shape == glance.where.shape == (2, 3, queries)
    alone = queries == keys == 1
    expected = torch.full_like(glance.highest, 1.0 if alone else 0.0)
    torch.testing.assert_close(glance.highest, expected, rtol=1e-14, atol=0)
    assert glance.where.eq(0 if alone else -1).all()
    assert glance.entropy.abs().le(1e-15).all()
    assert keys or glance.lse.eq(-torch.inf).all()


def test_entropy_is_never_negative() -> None:
    view = View(draws(1, 1, 64, 1, seed=0).float(), 300 * draws(1, 1, 64, 1, seed=1).float(), 1.0)
    low = truth(view).lse - 1e-4  # a kernel that rounds makes weights a little more than 1
    given_away = replace(view, lse=torch.from_numpy(low).float())
    assert blocks.observe(given_away, Keep()).entropy.min() >= 0


class Largest(TorchDispatchMode):
    """Remembers the largest memory that any operation made or touched, in bytes."""

    bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        parts = [x for x in tree_leaves(made) if isinstance(x, Tensor)]
        self.bytes = max([self.bytes, *(x.untyped_storage().nbytes() for x in parts)])
        return made


@pytest.fixture
def fresh_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nobody had looked before."""
    monkeypatch.setattr(blocks, "BUFFERS", blocks.BlockBuffers())


@pytest.mark.usefixtures("fresh_buffers")
@pytest.mark.parametrize("reach", one_fast([None, 64]))
@pytest.mark.parametrize("keep", one_fast([Keep(), Keep(map_side=0)]))
def test_memory_stays_far_below_that_of_the_weights(keep: Keep, reach: int | None) -> None:
    size = 4096
    q, k = draws(1, 1, size, 8, seed=0).float(), draws(1, 1, size, 8, seed=1).float()
    padding = torch.arange(size)[None, None, None] < size - 100
    view = View(q, k, 0.3, causal=True, reach=reach, mask=padding)
    with Largest() as most:
        looked(view, keep, (1 << 20) // torch.get_num_threads())
    assert most.bytes <= 4 * size * size / 15


@pytest.mark.usefixtures("fresh_buffers")
def test_memory_follows_what_there_is_to_see_when_that_is_little() -> None:
    view = View(draws(1, 1, 3, 4, seed=0).float(), draws(1, 1, 1, 4, seed=1).float(), 0.5)
    with Largest() as most:
        blocks.observe(view, Keep(map_side=0))
    assert most.bytes <= 4096


@pytest.mark.usefixtures("fresh_buffers")
def test_no_more_than_two_blocks_are_held_for_the_next_look() -> None:
    long = View(draws(1, 1, 2, 4, seed=0).float(), draws(1, 1, 4096, 4, seed=1).float(), 0.5)
    short = View(*(draws(1, 1, 8, 4, seed=seed).float() for seed in (0, 1)), 0.5)
    looked(long, Keep(), 1 << 10)
    with Largest() as most:
        looked(short, Keep(), 1 << 10)
    assert most.bytes <= 2 * blocks.MOST_THREADS << 10


@pytest.mark.usefixtures("fresh_buffers")
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_any_number_of_threads_finds_the_same_and_is_left_as_it_was(threads: int) -> None:
    q, k = draws(2, 3, 70, 8, seed=0).float(), draws(2, 3, 70, 8, seed=1).float()
    view, before = View(q, k, 0.3, causal=True), torch.get_num_threads()
    exact = blocks.observe(replace(view, q=q.double(), k=k.double()), Keep(map_side=4)).tensors()
    torch.set_num_threads(threads)
    try:
        for inference in (True, False):  # memory that was made in that mode is used outside of it
            with torch.inference_mode(inference):
                found = blocks.observe(view, Keep(map_side=4)).tensors()
            for name, value in exact.items():
                torch.testing.assert_close(found[name].to(value), value, atol=1e-5, rtol=1e-5)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_of_equal_weights_each_is_named_once_on_few_threads_and_on_many() -> None:
    before, even = torch.get_num_threads(), torch.zeros(2, 5, 100)
    even[:, :, 7] = 1.0
    try:
        for threads in (1, 16):
            torch.set_num_threads(threads)
            for group in (1, 4):
                best, places = largest(even, 8, group)
                assert best.tolist() == [[[1.0] + 7 * [0.0]] * 5] * 2
                assert places[..., 0].eq(7).all()
                assert all(len(set(row)) == 8 for row in places.flatten(0, 1).tolist())
    finally:
        torch.set_num_threads(before)
