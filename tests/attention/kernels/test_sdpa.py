"""torch's fused attention with its log-sum-exp: the same bits, and the right logarithm."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from saccade.attention.kernels import sdpa
from saccade.attention.kernels.sdpa import sdpa_with_lse
from saccade.attention.look.view import View
from tests.attention.kernels import DTYPES, draws, truth

B, N, T, S, K = 2, 3, 5, 7, 8
LSE_ERROR = {
    torch.float64: 1e-13, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 2e-3,
}  # fmt: skip
Mask = Callable[[torch.dtype], Tensor | None]


def hiding(*shape: int, blind: bool = False) -> Tensor:
    mask = draws(*shape, seed=3) > 0
    mask[..., 0] = True  # a key that all see
    if blind:
        mask[..., 1, :] = False
    return mask


MASKS: dict[str, Mask] = {
    "none": lambda dtype: None,
    "boolean": lambda dtype: hiding(B, N, T, S),
    "padding": lambda dtype: hiding(B, 1, 1, S),
    "one for all": lambda dtype: hiding(1, 1, T, S),
    "blind row": lambda dtype: hiding(B, 1, T, S, blind=True),
    "bias": lambda dtype: draws(B, N, T, S, seed=4, dtype=dtype),
    "bias for all": lambda dtype: draws(1, 1, T, S, seed=4, dtype=dtype),
    "bias of −∞": lambda dtype: torch.zeros(B, 1, T, S, dtype=dtype).masked_fill(
        ~hiding(B, 1, T, S), -torch.inf
    ),
}


def sides(dtype: torch.dtype, *, queries: int = T, values: int = K, heads: int = N) -> list[Tensor]:
    sizes = ((N, queries, K), (heads, S, K), (heads, S, values))
    return [draws(B, *size, seed=i, dtype=dtype) for i, size in enumerate(sizes)]


def gradients(output: Tensor, inputs: list[Tensor]) -> tuple[Tensor, ...]:
    return torch.autograd.grad(output, inputs, torch.ones_like(output).cumsum(-1))


def same(one: Tensor, other: Tensor) -> bool:
    return torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0)) and one.dtype == other.dtype


@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", MASKS)
def test_output_and_gradients_are_torchs_to_the_last_bit(
    kind: str, dtype: torch.dtype, trained: bool
) -> None:
    inputs, mask = [x.requires_grad_(trained) for x in sides(dtype)], MASKS[kind](dtype)
    for scale in (None, 0.7):
        expected = F.scaled_dot_product_attention(*inputs, attn_mask=mask, scale=scale)
        output, lse = sdpa_with_lse(*inputs, mask=mask, scale=scale)
        assert same(output, expected)
        assert lse is None or not lse.requires_grad
        if trained:
            pairs = zip(gradients(output, inputs), gradients(expected, inputs))
            assert all(same(one, other) for one, other in pairs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", MASKS)
def test_log_sum_exp_is_natural_and_of_the_scores_that_may_be_seen(
    kind: str, dtype: torch.dtype
) -> None:
    (q, k, v), mask = sides(dtype), MASKS[kind](dtype)
    boolean = mask is not None and mask.dtype == torch.bool
    view = View(q, k, 0.7, mask=mask if boolean else None, bias=None if boolean else mask)
    _, lse = sdpa_with_lse(q, k, v, mask=mask, scale=0.7)
    assert lse is not None
    expected = truth(view).lse
    seen = np.isfinite(expected)
    assert abs(lse.double().numpy()[seen] - expected[seen]).max() <= LSE_ERROR[dtype]


@pytest.mark.parametrize("dtype", DTYPES)
def test_being_causal_is_as_in_torch(dtype: torch.dtype) -> None:
    inputs = [x.requires_grad_() for x in sides(dtype, queries=S)]
    expected = F.scaled_dot_product_attention(*inputs, is_causal=True)
    output, lse = sdpa_with_lse(*inputs, causal=True)
    assert same(output, expected)
    assert all(same(a, b) for a, b in zip(gradients(output, inputs), gradients(expected, inputs)))
    assert lse is not None
    right = truth(View(inputs[0], inputs[1], K**-0.5, causal=True)).lse
    assert abs(lse.double().numpy() - right).max() <= LSE_ERROR[dtype]


def test_heads_that_share_keys_are_torchs_and_give_no_log_sum_exp() -> None:
    q, k, v = sides(torch.float32, heads=1)
    output, lse = sdpa_with_lse(q, k, v, grouped=True)
    assert torch.equal(output, F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
    assert lse is None


@pytest.mark.parametrize("causal", [False, True])
def test_none_is_given_where_torch_chooses_a_kernel_that_keeps_it(causal: bool) -> None:
    inputs = [x.requires_grad_() for x in sides(torch.float32, queries=S)]
    with sdpa_kernel(SDPBackend.MATH):
        output, lse = sdpa_with_lse(*inputs, causal=causal)
        expected = F.scaled_dot_product_attention(*inputs, is_causal=causal)
    assert lse is None
    assert torch.equal(output, expected)
    pairs = zip(gradients(output, inputs), gradients(expected, inputs))
    assert all(torch.equal(one, other) for one, other in pairs)


def test_values_of_another_width_are_torchs() -> None:
    inputs = sides(torch.float32, values=K + 3)
    output, lse = sdpa_with_lse(*inputs)
    assert torch.equal(output, F.scaled_dot_product_attention(*inputs))
    assert lse is None


def test_a_trained_bias_gets_torchs_gradient() -> None:
    inputs = sides(torch.float32)
    bias = draws(B, N, T, S, seed=4, dtype=torch.float32).requires_grad_()
    output, _ = sdpa_with_lse(*inputs, mask=bias)
    expected = F.scaled_dot_product_attention(*inputs, attn_mask=bias)
    assert torch.equal(output, expected)
    assert torch.equal(gradients(output, [bias])[0], gradients(expected, [bias])[0])


def test_torch_is_asked_and_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "_fused_sdp_choice", lambda *_, **__: SDPBackend.MATH.value)
    assert sdpa.sdpa_with_lse(*sides(torch.float32))[1] is None
