"""How far a kernel may be off: twice as far as the plain formula is in the same precision."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

DEVICE = "cuda"
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
HALVES = (torch.bfloat16, torch.float16)
ROUNDING = 1e-6  # of sums in float32, which no two kernels add up in the same order
IN_PARTS = 1e-5  # where torch multiplies float32 in three parts of less precision

Formula = Callable[..., Tensor | Sequence[Tensor]]


def draws(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Normal numbers, rounded once to the kernel's precision: all formulas get the same."""
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=rng).to(dtype).to(DEVICE)


def check(
    kernel: Formula,
    plain: Formula,
    inputs: Sequence[Tensor],
    *,
    learns: bool = True,
    rounding: float = ROUNDING,
) -> None:
    """Outputs, and if it `learns` the gradients to all inputs, of a kernel and a plain formula.

    The exact result is the plain formula's in float64.
    """
    outputs, leaves = _run(kernel, inputs, learns=learns)
    flows = [draws(*y.shape, seed=90 + i, dtype=y.dtype) for i, y in enumerate(outputs)]
    found = _with_gradients(outputs, leaves, flows)
    exact, usual = (
        _with_gradients(*_run(plain, some, learns=learns), flows)
        for some in ([x.double() for x in inputs], inputs)
    )
    check_errors(found, usual, exact, rounding=rounding)


def check_errors(
    found: Sequence[Tensor],
    plain: Sequence[Tensor],
    exact: Sequence[Tensor],
    *,
    rounding: float = ROUNDING,
) -> None:
    """max|found − exact| ≤ 2 max|plain − exact| + what storing and adding up costs anyone."""
    for i, (ours, theirs, right) in enumerate(zip(found, plain, exact, strict=True)):
        assert ours.shape == right.shape, f"result {i}"
        assert ours.isfinite().all(), f"result {i}"
        error, usual = ((x.double() - right).abs().max().item() for x in (ours, theirs))
        scale = right.abs().max().item()
        stored = torch.finfo(ours.dtype).eps / 2 * scale
        bound = 2 * usual + stored + rounding * max(1.0, scale)
        assert error <= bound, f"result {i} is off by {error:.2e}; the plain one by {usual:.2e}"


def _run(
    formula: Formula, inputs: Sequence[Tensor], *, learns: bool
) -> tuple[list[Tensor], list[Tensor]]:
    leaves = [x.detach().clone().requires_grad_(learns) for x in inputs]
    outputs = formula(*leaves)
    return [outputs] if isinstance(outputs, Tensor) else list(outputs), leaves if learns else []


def _with_gradients(
    outputs: list[Tensor], leaves: list[Tensor], flows: list[Tensor]
) -> list[Tensor]:
    if not leaves:
        return outputs
    slopes = [flow.to(y.dtype) for y, flow in zip(outputs, flows)]
    gradients = torch.autograd.grad(outputs, leaves, slopes)
    return [*(y.detach() for y in outputs), *gradients]
