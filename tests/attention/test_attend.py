"""Attention as a function: against torch, and by the laws that define it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import scaled_dot_product_attention

from saccade.attention import masks
from saccade.attention.attend import attend, fused, weigh
from saccade.attention.scores import Additive, Multiplicative, Score, dot, scaled_dot

size, seed = st.integers(1, 6), st.integers(0, 999)
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12}


def randn(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    draws = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return draws.to(dtype)


def every_score() -> list[Score]:
    torch.manual_seed(0)
    return [dot, scaled_dot, Multiplicative(4, 4).double(), Additive(4, 4, hidden=5).double()]


@given(t=size, s=size, seed=seed)
def test_agrees_with_torch_under_any_mask(t: int, s: int, seed: int) -> None:
    q, k, v = randn(t, 4, seed=seed), randn(s, 4, seed=seed + 1), randn(s, 3, seed=seed + 2)
    mask = randn(t, s, seed=seed + 3) > 0  # now and then a row is all False
    expected = scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=mask)[0]
    torch.testing.assert_close(attend(q, k, v, mask=mask).output, expected)


@given(t=size, s=size, seed=seed)
def test_ignores_the_order_of_the_memory(t: int, s: int, seed: int) -> None:
    q, k, v = randn(t, 4, seed=seed), randn(s, 4, seed=seed + 1), randn(s, 3, seed=seed + 2)
    mask = randn(t, s, seed=seed + 3) > 0
    order = torch.randperm(s, generator=torch.Generator().manual_seed(seed))
    for score in every_score():
        shuffled = attend(q, k[order], v[order], mask=mask[:, order], score=score)
        straight = attend(q, k, v, mask=mask, score=score)
        torch.testing.assert_close(shuffled.output, straight.output)
        torch.testing.assert_close(shuffled.weights, straight.weights[:, order])


@given(s=size, seed=seed)
def test_self_attention_of_a_shuffled_input_is_the_shuffled_output(s: int, seed: int) -> None:
    x = randn(s, 4, seed=seed)
    order = torch.randperm(s, generator=torch.Generator().manual_seed(seed))
    torch.testing.assert_close(
        attend(x[order], x[order], x[order]).output, attend(x, x, x)[0][order]
    )


@given(t=size, s=size, seed=seed)
def test_weights_are_probabilities_over_what_may_be_seen(t: int, s: int, seed: int) -> None:
    q, k = randn(t, 4, seed=seed), randn(s, 4, seed=seed + 1)
    mask = randn(t, s, seed=seed + 2) > 0
    weights = attend(q, k, k, mask=mask).weights
    assert ((weights >= 0) & (weights <= 1)).all()
    assert weights[~mask].eq(0).all()
    torch.testing.assert_close(weights.sum(dim=-1), mask.any(dim=-1).double())


def test_without_a_mask_weights_sum_to_one() -> None:
    weights = weigh(100 * randn(3, 5, 7, seed=0))
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(3, 5, dtype=torch.float64))


def test_a_query_that_may_look_nowhere_reads_zero_and_has_a_finite_gradient() -> None:
    q = randn(2, 4, seed=0).requires_grad_()
    mask = torch.tensor([[True, True], [False, False]])
    output = attend(q, q, q, mask=mask).output
    output.sum().backward()
    assert output[1].eq(0).all()
    assert q.grad is not None
    assert q.grad.isfinite().all()


@pytest.mark.parametrize("which", range(4))
def test_gradients_agree_with_finite_differences(which: int) -> None:
    inputs = [randn(n, 4, seed=n).requires_grad_() for n in (2, 3, 3)]
    mask = torch.tensor([[True, False, True], [False, False, False]])
    score = every_score()[which]
    assert torch.autograd.gradcheck(
        lambda q, k, v: tuple(attend(q, k, v, mask=mask, score=score)), inputs
    )


MASKS = {
    "none": lambda b, t, s: None,
    "causal": lambda b, t, s: masks.causal(t, s),
    "padding": lambda b, t, s: masks.padding(torch.tensor([s, 1]), s),
    "window": lambda b, t, s: masks.window(t, s, reach=1),
    "causal and padding": lambda b, t, s: masks.both(
        masks.causal(t, s), masks.padding(torch.tensor([s, 1]), s)
    ),
    "causal and window": lambda b, t, s: masks.both(
        masks.causal(t, s), masks.window(t, s, reach=1)
    ),
    "nothing to see": lambda b, t, s: masks.padding(torch.tensor([s, 0]), s),
    "one blind query": lambda b, t, s: torch.arange(t)[:, None].expand(t, s).gt(0)[None, None],
    "all blind": lambda b, t, s: torch.zeros(1, 1, 1, s, dtype=torch.bool),
}


def _compared(
    t: int, s: int, values: int, dtype: torch.dtype, mask: torch.Tensor | None, *, causal: bool
) -> None:
    q, k, v = (
        randn(2, 3, n, width, seed=n + width, dtype=dtype).requires_grad_()
        for n, width in ((t, 4), (s, 4), (s, values))
    )
    seen = masks.both(mask, masks.causal(t, s)) if causal else mask
    plain = attend(q, k, v, mask=seen).output
    fast = fused(q, k, v, mask=mask, causal=causal)
    close = {"atol": TOLERANCE[dtype], "rtol": 0}
    torch.testing.assert_close(fast, plain, **close)
    upstream = randn(*plain.shape, seed=9, dtype=dtype)
    slow_gradients = torch.autograd.grad(plain, (q, k, v), upstream)
    for ours, theirs in zip(torch.autograd.grad(fast, (q, k, v), upstream), slow_gradients):
        assert ours.isfinite().all()
        torch.testing.assert_close(ours, theirs, atol=5 * TOLERANCE[dtype], rtol=0)


@pytest.mark.parametrize("values", [4, 7])
@pytest.mark.parametrize(("t", "s"), [(5, 5), (3, 5), (1, 5), (1, 1)])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_equals_attend_under_every_mask(
    dtype: torch.dtype, kind: str, t: int, s: int, values: int
) -> None:
    _compared(t, s, values, dtype, MASKS[kind](2, t, s), causal=False)


@pytest.mark.parametrize(("t", "s"), [(5, 5), (3, 5), (1, 5), (1, 1)])
@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_and_causal_equals_attend_under_both_masks(
    dtype: torch.dtype, kind: str, t: int, s: int
) -> None:
    _compared(t, s, 4, dtype, MASKS[kind](2, t, s), causal=True)


def test_fused_reads_zero_where_a_long_row_is_blind() -> None:
    q = randn(1, 2, 130, 8, seed=0, dtype=torch.float32).requires_grad_()
    mask = masks.padding(torch.tensor([0]), 130)
    output = fused(q, q, q, mask=mask)
    output.sum().backward()
    assert output.eq(0).all()
    assert q.grad is not None
    assert q.grad.isfinite().all()
