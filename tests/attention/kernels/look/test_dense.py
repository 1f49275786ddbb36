"""A look from weights that are there: every statistic as it is defined."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.attention.kernels.look import dense
from saccade.attention.look.glance import Keep
from tests.attention.kernels import (
    Truth,
    check_places,
    draws,
    errors,
    keeps,
    numbers,
    of_glance,
    statistics,
)

size, seed = st.integers(1, 19), st.integers(0, 999)


def weights_of(*shape: int, seed: int, blind: bool = True) -> Tensor:
    """Softmax over about half of the keys; now and then a row has none."""
    hidden = draws(*shape, seed=seed + 1) > 0.3 if blind else torch.zeros(shape, dtype=torch.bool)
    scores = (3 * draws(*shape, seed=seed)).masked_fill(hidden, -torch.inf)
    return scores.softmax(dim=-1).nan_to_num(0.0)


def as_truth(weights: Tensor) -> Truth:
    found = numbers(weights)
    return Truth(found, np.zeros(found.shape[:3]), found > 0)


@given(t=size, s=size, seed=seed, keep=keeps)
def test_every_statistic_is_what_its_definition_says(t: int, s: int, seed: int, keep: Keep) -> None:
    weights = weights_of(2, 3, t, s, seed=seed)
    glance = dense.observe(weights, keep)
    gaps = errors(of_glance(glance), statistics(numbers(weights), keep))
    assert max(gaps.values()) <= 1e-13
    check_places(glance, as_truth(weights), tolerance=0)
    assert glance.keys == s
    assert glance.weights is weights


@given(t=size, s=size, seed=seed, side=st.integers(1, 20))
def test_maps_average_the_mass_and_keep_the_peak_of_each_cell(
    t: int, s: int, seed: int, side: int
) -> None:
    weights = weights_of(1, 2, t, s, seed=seed)
    glance = dense.observe(weights, Keep(map_side=side))
    down, across = glance.cell
    assert glance.mean_map is not None
    assert glance.max_map is not None
    assert glance.mean_map.shape == glance.max_map.shape == (1, 2, -(-t // down), -(-s // across))
    for a in range(glance.mean_map.shape[2]):
        for b in range(glance.mean_map.shape[3]):
            part = weights[0, :, a * down : (a + 1) * down, b * across : (b + 1) * across]
            mass = part.sum(dim=-1).mean(dim=-1)
            torch.testing.assert_close(glance.mean_map[0, :, a, b], mass)
            assert torch.equal(glance.max_map[0, :, a, b], part.amax(dim=(1, 2)))


@given(t=size, s=size, seed=seed, side=st.integers(1, 20))
def test_a_mean_map_holds_all_the_mass_that_there_is(t: int, s: int, seed: int, side: int) -> None:
    weights = weights_of(1, 1, t, s, seed=seed, blind=False)
    mean_map = dense.observe(weights, Keep(map_side=side)).mean_map
    assert mean_map is not None
    torch.testing.assert_close(mean_map.sum(dim=-1), torch.ones_like(mean_map[..., 0]))


@given(t=size, s=size, seed=seed, top=st.integers(1, 25))
def test_top_and_rest_make_up_the_whole(t: int, s: int, seed: int, top: int) -> None:
    weights = weights_of(1, 2, t, s, seed=seed)
    glance = dense.observe(weights, Keep(top=top))
    assert glance.top_weights is not None
    assert glance.rest is not None
    whole = glance.top_weights.sum(dim=-1) + glance.rest
    torch.testing.assert_close(whole, (weights.sum(dim=-1) > 0).double())
    assert top < s or glance.rest.le(1e-12).all()


def test_rest_is_unknown_where_no_top_is_kept_and_never_below_zero() -> None:
    assert dense.observe(weights_of(1, 1, 3, 4, seed=0), Keep(top=0)).rest is None
    more = torch.full((1, 1, 1, 2), 0.5 + 1e-7)
    rest = dense.observe(more, Keep()).rest
    assert rest is not None
    assert rest.item() == 0.0


def test_a_blind_query_has_zeros_and_no_place_and_no_normaliser() -> None:
    weights = weights_of(2, 3, 4, 5, seed=0, blind=False)
    weights[:, :, 1] = 0.0
    for lse in (None, torch.ones(2, 3, 4, dtype=torch.float64)):  # with a sink's score it is finite
        glance = dense.observe(weights, Keep(), lse=lse)
        numbers_of = glance.tensors()
        for name in ("entropy", "highest", "sink", "local", "top_weights", "weights"):
            assert numbers_of[name][:, :, 1].eq(0).all(), name
        assert glance.rest is not None
        assert glance.rest[:, :, 1].eq(0).all()
        assert glance.where[:, :, 1].eq(-1).all()
        assert numbers_of["top_places"][:, :, 1].eq(-1).all()
        assert (glance.lse is None) == (lse is None)
        if glance.lse is not None:
            assert glance.lse[:, :, 1].eq(-torch.inf).all()
            assert glance.lse[:, :, 0].isfinite().all()


@pytest.mark.parametrize(("t", "s"), [(0, 5), (5, 0), (0, 0)])
@pytest.mark.parametrize("keep", [Keep(), Keep(map_side=0, top=0, received=False)])
def test_no_queries_or_no_keys_give_empty_statistics(t: int, s: int, keep: Keep) -> None:
    glance = dense.observe(torch.zeros(2, 3, t, s), keep)
    assert glance.highest.shape == glance.where.shape == glance.local.shape == (2, 3, t)
    assert glance.entropy.eq(0).all()
    assert glance.where.eq(-1).all()
    assert glance.lse is None
    if keep.received:
        assert torch.equal(glance.received, torch.zeros(2, 3, s))  # type: ignore[arg-type]


def test_a_lone_key_gets_everything_and_leaves_no_doubt() -> None:
    glance = dense.observe(torch.ones(1, 1, 1, 1), Keep())
    assert glance.entropy.item() == 0.0
    assert not glance.entropy.signbit().any()  # not −0 either, which pages would show
    assert glance.highest.item() == glance.sink.item() == glance.local.item() == 1.0
    assert glance.where.item() == 0


def test_entropy_is_never_negative_though_weights_are_rounded_up() -> None:
    assert dense.observe(torch.full((1, 1, 1, 1), 1 + 1e-6), Keep()).entropy.item() == 0.0


def test_uniform_weights_have_the_logarithm_of_their_number_for_entropy() -> None:
    glance = dense.observe(torch.full((1, 1, 2, 8), 1 / 8), Keep(local=1, sink=3))
    torch.testing.assert_close(glance.entropy, torch.full((1, 1, 2), 8.0).log())
    assert glance.sink.eq(3 / 8).all()
    assert glance.local.tolist() == [[[3 / 8, 2 / 8]]]  # the last query has no key to its right


def test_local_takes_the_queries_for_the_last_positions() -> None:
    weights = torch.eye(6, dtype=torch.float64)[None, None]
    for t in range(1, 7):
        last = dense.observe(weights[:, :, -t:], Keep(local=0))
        assert last.local.eq(1).all()


def test_weights_are_kept_only_where_neither_side_is_longer_than_dense() -> None:
    weights = weights_of(1, 1, 3, 5, seed=0)
    assert dense.observe(weights, Keep(dense=4)).weights is None
    assert dense.observe(weights.mT, Keep(dense=4)).weights is None
    assert dense.observe(weights, Keep(dense=5)).weights is weights


def test_what_is_not_asked_for_is_not_there() -> None:
    keep = Keep(received=False, map_side=0, top=0, dense=0)
    glance = dense.observe(weights_of(1, 1, 3, 5, seed=0), keep, causal=True, reach=2)
    assert set(glance.tensors()) == {"entropy", "highest", "where", "sink", "local"}
    assert glance.cell == (1, 1)
    assert (glance.causal, glance.reach, glance.zoom) == (True, 2, None)
