"""The gated loop over ragged rows, softly and by single glances, against the loop written out."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.blocks.recurrent.attending_rnn import AttendedSteps, LoopWeights, attending_rnn
from saccade.blocks.recurrent.memory import AttentionMemory

GOING = [4, 3, 3, 1]
ROWS, PLACES, F, H, D = 4, 3, 5, 2, 6


def inputs(*, grad: bool = True) -> tuple[Tensor, ...]:
    rng = torch.Generator().manual_seed(0)
    shapes = [(sum(GOING), 4 * H), (ROWS, H), (ROWS, H), (ROWS, PLACES, F), (ROWS, PLACES, D)]
    shapes += [(4 * H, D), (F + 4 * H + 1, H), (F + 4 * H + 1,), (F,)]
    drawn = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
    return tuple(x.requires_grad_(grad) for x in drawn)


class Scripted:
    """Draws what it is told to, step by step."""

    def __init__(self) -> None:
        self.cells = torch.randint(3, (sum(GOING),), generator=torch.Generator().manual_seed(1))
        self.left = list(self.cells.split(GOING))

    def __call__(self, weights: Tensor) -> Tensor:
        return self.left.pop(0).view(*weights.shape[:2], 1)


def run(hard: float | None, *parts: Tensor, asks: Tensor | None = None) -> AttendedSteps:
    x, h, c, keys, values, *weights = parts
    how: dict[str, Any] = {"asks": asks}
    if hard is not None:
        how |= {"draw": Scripted(), "hard": torch.tensor(hard, dtype=torch.float64)}
    memory = AttentionMemory(keys, values)
    return attending_rnn("lstm", x, GOING, (h, c), memory, LoopWeights(*weights), **how)


def written_out(hard: float | None, *parts: Tensor) -> tuple[Tensor, ...]:
    """Row by row, with torch's own cell."""
    x, h, c, keys, values, context, state, bias, w = parts
    cells = Scripted().cells.split(GOING)
    steps = list(x.split(GOING))
    found = [[torch.empty(0)] * n for n in GOING], [[torch.empty(0)] * n for n in GOING]
    looked = [[torch.empty(0)] * n for n in GOING]
    unit = torch.eye(4 * H, dtype=torch.float64)
    zero = torch.zeros(4 * H, dtype=torch.float64)
    for row in range(ROWS):
        before, cell = h[row], c[row]
        for t in range(sum(n > row for n in GOING)):
            q, u, g = (state @ before + bias).split([F, 4 * H, 1])
            a = torch.stack([w @ (q + key).tanh() for key in keys[row]]).softmax(dim=0)
            used = a
            if hard is not None:
                used = (1 - hard) * a + hard * nn.functional.one_hot(cells[t][row], PLACES)
            read = sum(used[i] * values[row, i] for i in range(PLACES)) * g.sigmoid()
            into = steps[t][row] + context @ read
            # torch's cell with weights of one: it is given the products themselves.
            before, cell = _cell(into + u, before, cell, unit, zero)
            found[0][t][row], found[1][t][row], looked[t][row] = before, read, a
    flat = [torch.stack([x for step in part for x in step]) for part in (*found, looked)]
    return tuple(flat)


def _cell(x: Tensor, h: Tensor, c: Tensor, unit: Tensor, zero: Tensor) -> tuple[Tensor, Tensor]:
    state = torch.zeros_like(h)[None], c[None]
    nothing = torch.zeros(4 * H, H, dtype=torch.float64)
    after = torch.lstm_cell(x[None], state, unit, nothing, zero, zero)
    return after[0][0], after[1][0]


@pytest.mark.parametrize("hard", [None, 0.0, 1.0])
def test_agrees_with_the_loop_written_out(hard: float | None) -> None:
    parts = inputs()
    ours, theirs = run(hard, *parts), written_out(hard, *parts)
    for found, expected in zip(ours[:3], theirs):
        torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    rng = torch.Generator().manual_seed(2)
    slopes = [torch.randn(x.shape, generator=rng, dtype=torch.float64) for x in theirs]
    found = torch.autograd.grad(ours[:3], parts, slopes)
    expected = torch.autograd.grad(theirs, parts, slopes)
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, atol=1e-12, rtol=0)


@pytest.mark.parametrize("hard", [None, 0.0])
def test_the_gradient_is_that_of_finite_differences(hard: float | None) -> None:
    loop = lambda *parts: run(hard, *parts)[:3]  # noqa: E731
    assert torch.autograd.gradcheck(loop, inputs(), fast_mode=True)


def test_a_single_glance_reads_one_place_and_tells_which() -> None:
    parts = inputs(grad=False)
    found, values = run(1.0, *parts), parts[4]
    rows = torch.cat([torch.arange(n) for n in GOING])
    assert found.drawn is not None
    assert torch.equal(found.drawn[:, 0], Scripted().cells)
    one = values[rows, found.drawn[:, 0]]
    across = found.reads / one
    torch.testing.assert_close(across, across[:, :1].expand_as(across))  # all times the gate
    used = found.used(torch.tensor(1.0, dtype=torch.float64))
    assert torch.equal(used.argmax(dim=1), found.drawn[:, 0])
    assert torch.equal(used.sum(dim=1), torch.ones(len(used), dtype=torch.float64))


def test_keeps_the_precision_of_its_weights_under_autocast() -> None:
    parts = inputs(grad=False)
    expected = run(None, *parts).states
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(run(None, *parts).states, expected)


@pytest.mark.parametrize("hard", [None, 0.0, 1.0])
def test_what_words_ask_moves_the_keys_of_their_row(hard: float | None) -> None:
    x, h, c, keys, values, *weights = inputs()
    by_row = torch.randn(ROWS, keys.shape[2], dtype=torch.float64, requires_grad=True)
    asks = torch.cat([by_row[:n] for n in GOING])
    asked = run(hard, x, h, c, keys, values, *weights, asks=asks)
    moved = run(hard, x, h, c, keys + by_row[:, None], values, *weights)
    for ours, theirs in zip(asked[:3], moved[:3]):
        torch.testing.assert_close(ours, theirs)
    slopes = [torch.randn_like(one) for one in asked[:3]]
    found = torch.autograd.grad(asked[:3], (by_row, x, keys), slopes)
    expected = torch.autograd.grad(moved[:3], (by_row, x, keys), slopes)
    for ours, theirs in zip(found, expected):
        torch.testing.assert_close(ours, theirs)
