"""The blockwise additive score against its formula, whatever the blocks."""

import pytest
import torch
from torch import Tensor

from saccade.attention.kernels.train import additive
from saccade.attention.kernels.train.additive import additive_score

SIZES = {"rows of one block": (5, 3, 4, 2), "a query each": (2, 7, 3, 4), "one": (1, 1, 1, 1)}
every_size = pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
blocks_of = pytest.mark.parametrize("cached", [1, 24, 50, 1 << 18])


def inputs(size: tuple[int, int, int, int], dtype: torch.dtype = torch.float64) -> list[Tensor]:
    b, t, s, f = size
    rng = torch.Generator().manual_seed(0)
    shapes = (b, t, f), (b, s, f), (f,)
    return [torch.randn(shape, generator=rng, dtype=dtype).requires_grad_() for shape in shapes]


def formula(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return torch.einsum("btsf,f->bts", torch.tanh(q[:, :, None] + k[:, None]), w)


@blocks_of
@every_size
def test_agrees_with_the_formula_in_blocks_of_any_size(
    size: tuple[int, int, int, int], cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(additive, "CACHED", cached)
    q, k, w = inputs(size)
    score, expected = additive_score(q, k, w), formula(q, k, w)
    torch.testing.assert_close(score, expected)
    grad = torch.randn(score.shape, generator=torch.Generator().manual_seed(1)).double()
    ours = torch.autograd.grad(score, (q, k, w), grad)
    torch.testing.assert_close(ours, torch.autograd.grad(expected, (q, k, w), grad))


def test_has_the_gradient_of_the_formula() -> None:
    assert torch.autograd.gradcheck(additive_score, inputs((2, 3, 4, 2)))


def test_far_out_it_saturates_and_its_gradient_stays_finite() -> None:
    q = torch.tensor([[[1e4, -1e4, 60.0]]], requires_grad=True)
    k, w = torch.tensor([[[1e4, -1e4, -59.0]]]), torch.tensor([1.0, 10.0, 100.0])
    score = additive_score(q, k, w)
    torch.testing.assert_close(score, formula(q, k, w))
    score.sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()


def test_in_single_precision_it_is_as_exact_as_the_formula() -> None:
    size = (3, 20, 30, 64)
    truth = formula(*inputs(size))
    narrow = [x.detach().float() for x in inputs(size)]
    error = (additive_score(*narrow) - truth).abs().max()
    assert error < 2 * (formula(*narrow) - truth).abs().max()


def test_in_half_precision_the_formula_is_used() -> None:
    q, k, w = (x.detach() for x in inputs((2, 3, 4, 8), torch.bfloat16))
    expected = (q[:, :, None] + k[:, None]).tanh() @ w
    assert torch.equal(additive_score(q, k, w), expected)


@pytest.mark.parametrize("size", [(0, 3, 4, 2), (2, 0, 4, 2), (2, 3, 0, 2)])
def test_nothing_scores_nothing(size: tuple[int, int, int, int]) -> None:
    q, k, w = inputs(size)
    score = additive_score(q, k, w)
    assert score.shape == size[:3]
    score.sum().backward()
    assert k.grad is not None
    assert k.grad.eq(0).all()
