"""Each cell's step and gradient against torch's own cells."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.blocks.recurrent.gates import GATES

CELLS: dict[str, Any] = {"vanilla": nn.RNNCell, "gru": nn.GRUCell, "lstm": nn.LSTMCell}
every_cell = pytest.mark.parametrize("kind", CELLS)


def randn(*shape: int, seed: int) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=rng, dtype=torch.float64).requires_grad_()


def start(kind: str) -> tuple[Tensor, Tensor | None]:
    return randn(2, 3, seed=3), randn(2, 3, seed=4) if kind == "lstm" else None


@every_cell
def test_a_step_is_that_of_torchs_cell(kind: str) -> None:
    torch.manual_seed(0)
    cell, x, (h, c) = CELLS[kind](4, 3).double(), randn(2, 4, seed=1), start(kind)
    into = x @ cell.weight_ih.T + cell.bias_ih
    own = h @ cell.weight_hh.T + cell.bias_hh
    (after, memory), _ = GATES[kind].step(into, own, (h, c))
    if c is None:
        torch.testing.assert_close(after, cell(x, h))
        assert memory is None
    else:
        torch.testing.assert_close((after, memory), cell(x, (h, c)))


@every_cell
def test_the_gradient_by_hand_is_that_of_the_step(kind: str) -> None:
    gates = len(CELLS[kind](1, 1).weight_ih)
    x, u, (h, c) = randn(2, 3 * gates, seed=1), randn(2, 3 * gates, seed=2), start(kind)
    (after, memory), kept = GATES[kind].step(x, u, (h, c))
    dh, dc = randn(2, 3, seed=5).detach(), None if c is None else randn(2, 3, seed=6).detach()
    inputs = [x, u, h] if c is None else [x, u, h, c]
    outputs, grads = ([after], [dh]) if memory is None else ([after, memory], [dh, dc])
    expected = torch.autograd.grad(outputs, inputs, grads, materialize_grads=True)
    with torch.no_grad():
        found = GATES[kind].back(dh, dc, kept)
    torch.testing.assert_close(found[: len(inputs)], expected)
