"""A view: every score and weight by its formula, and who may look where."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from saccade.attention import masks
from saccade.attention.look.view import UNSEEN, View
from tests.attention.kernels import DTYPES, draws, may_look, numbers, truth, views


@settings(max_examples=100)
@given(view=views(longest=12))
def test_weights_are_the_softmax_of_what_may_be_seen(view: View) -> None:
    weights, right = view.weights(), truth(view)
    tolerance = 1e-12 if view.q.dtype == torch.float64 else 1e-5
    assert weights.shape == view.shape
    assert abs(numbers(weights) - right.weights).max() <= tolerance
    assert weights[torch.from_numpy(~right.seen)].eq(0).all()


@settings(max_examples=100)
@given(view=views(longest=12))
def test_allowed_says_who_may_look_where(view: View) -> None:
    allowed = view.allowed()
    everywhere = np.ones(view.shape, dtype=bool)
    seen = everywhere if allowed is None else everywhere & allowed.numpy()
    assert (seen == may_look(view)).all()


def test_nothing_hidden_needs_no_mask() -> None:
    assert View(draws(1, 1, 3, 4, seed=0), draws(1, 1, 3, 4, seed=1), 1.0).allowed() is None


@settings(max_examples=100)
@given(view=views(longest=12))
def test_scores_are_finite_however_much_is_hidden(view: View) -> None:
    scores = view.scores()
    hidden = torch.from_numpy(~may_look(view))
    assert scores.isfinite().all()
    assert scores[hidden].eq(UNSEEN).all()
    assert view.normaliser(scores).isnan().logical_not().all()
    assert (scores * view.weights()).isfinite().all()  # as in −Σ a log a


@pytest.mark.parametrize("dtype", DTYPES)
def test_blind_queries_weigh_everything_zero_in_every_precision(dtype: torch.dtype) -> None:
    q, k = draws(1, 2, 3, 4, seed=0, dtype=dtype), draws(1, 2, 5, 4, seed=1, dtype=dtype)
    mask = torch.tensor([True, False, True])[None, None, :, None]
    bias = torch.zeros(1, 1, 3, 5, dtype=dtype).masked_fill(~mask, -torch.inf)
    for view in (View(q, k, 0.5, mask=mask), View(q, k, 0.5, bias=bias)):
        weights, lse = view.weights(), view.normaliser(view.scores())
        assert weights[:, :, 1].eq(0).all()
        assert lse[:, :, 1].eq(-torch.inf).all()
        torch.testing.assert_close(weights[:, :, [0, 2]].sum(dim=-1), torch.ones_like(lse[..., 1:]))


def test_low_precision_is_scored_in_single_and_double_stays_double() -> None:
    q, k = draws(1, 1, 3, 4, seed=0), draws(1, 1, 3, 4, seed=1)
    assert View(q, k, 1.0).scores().dtype == torch.float64
    for dtype in DTYPES[1:]:
        assert View(q.to(dtype), k.to(dtype), 1.0).scores().dtype == torch.float32


def test_a_sink_takes_its_share_and_is_read_by_nobody() -> None:
    view = View(draws(1, 2, 3, 4, seed=0), draws(1, 2, 5, 4, seed=1), 0.5)
    plain, sink = view.weights(), torch.tensor([0.3, -torch.inf], dtype=torch.float64)
    shared = replace(view, sink=sink).weights()
    total = shared.sum(dim=-1)
    assert total[:, 0].lt(1).all()
    torch.testing.assert_close(total[:, 1], torch.ones_like(total[:, 1]))
    torch.testing.assert_close(shared / total[..., None], plain)


def test_a_normaliser_of_some_heads_takes_their_own_sinks() -> None:
    view = View(draws(1, 3, 2, 4, seed=0), draws(1, 3, 5, 4, seed=1), 0.5, sink=draws(3, seed=2))
    scores = view.scores()
    some = view.normaliser(scores[:, 1:], heads=slice(1, None))
    torch.testing.assert_close(some, view.normaliser(scores)[:, 1:])


def test_neighbouring_heads_share_a_key_head() -> None:
    q, k = draws(1, 6, 3, 4, seed=0), draws(1, 2, 5, 4, seed=1)
    view = View(q, k, 0.5)
    assert (view.shape, view.group) == ((1, 6, 3, 5), 3)
    alone = [View(q[:, n : n + 1], k[:, n // 3][:, None], 0.5).weights() for n in range(6)]
    torch.testing.assert_close(view.weights(), torch.cat(alone, dim=1))


def test_a_cap_bounds_every_score_before_the_bias() -> None:
    q, k = 100 * draws(1, 1, 3, 4, seed=0), draws(1, 1, 5, 4, seed=1)
    bias = torch.full((1, 1, 1, 1), 50.0, dtype=torch.float64)
    capped = View(q, k, 1.0, softcap=2.0, bias=bias).scores() - 50
    assert capped.abs().max() <= 2.0
    assert capped.abs().max() > 1.9


@pytest.mark.parametrize(("queries", "keys"), [(3, 3), (2, 5), (5, 2)])
def test_causal_and_reach_are_the_masks_of_their_names(queries: int, keys: int) -> None:
    view = View(draws(1, 1, queries, 4, seed=0), draws(1, 1, keys, 4, seed=1), 0.5)
    causal, window = masks.causal(queries, keys), masks.window(queries, keys, reach=1)
    both = replace(view, causal=True, reach=1)
    torch.testing.assert_close(both.weights(), replace(view, mask=causal & window).weights())
