"""A CPU that learns in 16 bits attends by products of matrices: the formula, forth and back."""

from collections.abc import Callable
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from saccade.attention import masks
from saccade.attention.attend import attend, fused
from saccade.attention.kernels.train import dense

B, N, T, S, K = 2, 3, 5, 5, 8
WHAT: dict[str, Callable[[], dict[str, Tensor | bool]]] = {
    "everything": dict,
    "causal": lambda: {"causal": True},
    "window": lambda: {"mask": masks.window(T, S, reach=1)},
    "blind queries": lambda: {"mask": torch.arange(T)[:, None].expand(T, S).gt(1)[None, None]},
    "padding, causal": lambda: {
        "mask": masks.padding(torch.tensor([S, 2]), S),
        "causal": True,
    },
    "bias": lambda: {"bias": torch.linspace(-2, 2, N * T * S).view(1, N, T, S)},
    "bias, blind queries": lambda: {
        "bias": torch.linspace(-2, 2, N * T * S).view(1, N, T, S),
        "mask": torch.arange(T)[:, None].expand(T, S).gt(1)[None, None],
    },
}


def inputs(dtype: torch.dtype) -> list[Tensor]:
    rng = torch.Generator().manual_seed(0)
    drawn = [torch.randn(B, N, T, K, generator=rng, dtype=torch.float64) for _ in range(3)]
    halves = [x.bfloat16() for x in drawn]
    return [x.to(dtype).requires_grad_() for x in halves]


def formula(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
) -> Tensor:
    allowed = masks.both(mask, masks.causal(T, S)) if causal else mask

    def score(q: Tensor, k: Tensor) -> Tensor:
        scores = 0.7 * q @ k.mT
        return scores if bias is None else scores + bias.to(q)

    return attend(q, k, v, mask=allowed, score=score).output


def with_gradients(output: Tensor, learnt: list[Tensor]) -> list[Tensor]:
    rng = torch.Generator().manual_seed(1)
    toward = torch.randn(output.shape, generator=rng, dtype=torch.float64).to(output)
    return [output.detach(), *torch.autograd.grad(output, learnt, toward)]


@pytest.mark.parametrize("what", WHAT)
def test_no_further_from_the_truth_than_twice_the_formula_in_that_precision(what: str) -> None:
    halves, plain, exact = (inputs(one) for one in (torch.bfloat16, torch.bfloat16, torch.float64))
    how = WHAT[what]()
    with patch.object(dense, "by_products", wraps=dense.by_products) as taken:
        found = with_gradients(fused(*halves, **how, scale=0.7), halves)  # type: ignore[arg-type]
    assert taken.called
    other = with_gradients(formula(*plain, **how), plain)  # type: ignore[arg-type]
    truth = with_gradients(formula(*exact, **how), exact)  # type: ignore[arg-type]
    for ours, theirs, right in zip(found, other, truth, strict=True):
        assert ours.dtype == torch.bfloat16
        assert (ours - right).norm() <= 2 * (theirs - right).norm() + 1e-3 * right.norm()
    if "blind" in what:
        assert found[0][:, :, :2].eq(0).all()


@pytest.mark.parametrize("what", WHAT)
def test_whoever_looks_changes_no_bit(what: str) -> None:
    q, k, v = inputs(torch.bfloat16)
    how = WHAT[what]()
    seen = fused(q, k, v, **how, watcher=lambda view: None)  # type: ignore[arg-type]
    assert seen.equal(fused(q, k, v, **how))  # type: ignore[arg-type]


@pytest.mark.parametrize(("dtype", "learns"), [(torch.float32, True), (torch.bfloat16, False)])
def test_else_torchs_kernel_serves(dtype: torch.dtype, learns: bool) -> None:
    parts = [x.detach().requires_grad_(learns) for x in inputs(dtype)]
    with patch.object(dense, "by_products") as taken:
        fused(*parts)
    assert not taken.called
