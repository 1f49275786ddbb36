"""Recurrent layers against their formulas, and ragged reading by its laws."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from saccade.blocks.recurrent.rnn import CellKind, Rnn, RnnState, SourceReader, reverse

CELL_KINDS: list[CellKind] = ["vanilla", "gru", "lstm"]
Step = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def randn(*shape: int, seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def vanilla(from_x: Tensor, from_h: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    return (from_x + from_h).tanh(), c


def gru(from_x: Tensor, from_h: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    (rx, zx, nx), (rh, zh, nh) = from_x.chunk(3, dim=-1), from_h.chunk(3, dim=-1)
    r, z = (rx + rh).sigmoid(), (zx + zh).sigmoid()
    n = (nx + r * nh).tanh()
    return (1 - z) * n + z * h, c


def lstm(from_x: Tensor, from_h: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    i, f, g, o = (from_x + from_h).chunk(4, dim=-1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


STEPS: dict[CellKind, Step] = {"vanilla": vanilla, "gru": gru, "lstm": lstm}


def by_hand(rnn: Rnn, step: Step, x: Tensor, state: RnnState) -> tuple[Tensor, Tensor, Tensor]:
    """One layer after another, one word after another."""
    hidden, cells = [], []
    for layer in range(rnn.depth):
        w, u, b, d = (
            getattr(rnn.layers[layer], f"{name}_l0")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        h = state.hidden[:, layer]
        c = torch.zeros_like(h) if state.cell is None else state.cell[:, layer]
        outputs = []
        for t in range(x.shape[1]):
            h, c = step(x[:, t] @ w.T + b, h @ u.T + d, h, c)
            outputs.append(h)
        x = torch.stack(outputs, dim=1)
        hidden.append(h)
        cells.append(c)
    return x, torch.stack(hidden, dim=1), torch.stack(cells, dim=1)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("cell", CELL_KINDS)
def test_equals_the_formula_word_by_word(cell: CellKind, depth: int) -> None:
    torch.manual_seed(0)
    rnn = Rnn(3, 4, cell=cell, depth=depth).double()
    x = randn(2, 5, 3, seed=0)
    state = RnnState(randn(2, depth, 4, seed=1), randn(2, depth, 4, seed=2))
    if cell != "lstm":
        state = RnnState(state.hidden, None)
    output, last = rnn(x, state)
    expected, hidden, cells = by_hand(rnn, STEPS[cell], x, state)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(last.hidden, hidden)
    if last.cell is not None:
        torch.testing.assert_close(last.cell, cells)


@pytest.mark.parametrize("cell", CELL_KINDS)
def test_starts_from_zero(cell: CellKind) -> None:
    rnn, x = Rnn(3, 4, cell=cell, depth=2).double(), randn(2, 5, 3, seed=0)
    start = rnn.start(x[:, 0])
    assert start.hidden.shape == (2, 2, 4)
    assert (start.cell is not None) == (cell == "lstm")
    torch.testing.assert_close(rnn(x, start), rnn(x))


@pytest.mark.parametrize("cell", CELL_KINDS)
def test_going_on_from_a_state_equals_reading_all_at_once(cell: CellKind) -> None:
    rnn, x = Rnn(3, 4, cell=cell, depth=2).double(), randn(2, 5, 3, seed=0)
    first, state = rnn(x[:, :2])
    second, _ = rnn(x[:, 2:], state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), rnn(x)[0])


@pytest.mark.parametrize("cell", CELL_KINDS)
def test_word_by_word_equals_all_at_once(cell: CellKind) -> None:
    rnn, x = Rnn(3, 4, cell=cell, depth=2).double(), randn(2, 5, 3, seed=0)
    expected, end = rnn(x)
    state, outputs = None, []
    for word in x.split(1, dim=1):
        output, state = rnn(word, state)
        outputs.append(output)
    assert state is not None
    torch.testing.assert_close(torch.cat(outputs, dim=1), expected)
    torch.testing.assert_close(both_states(state), both_states(end))


@pytest.mark.parametrize("cell", CELL_KINDS)
def test_selecting_rows_of_a_state_permutes_what_follows(cell: CellKind) -> None:
    rnn, x = Rnn(3, 4, cell=cell, depth=2).double(), randn(3, 5, 3, seed=0)
    _, state = rnn(x[:, :2])
    rows = torch.tensor([2, 0, 0])
    torch.testing.assert_close(
        rnn(x[rows, 2:], state.select(rows))[0], rnn(x[:, 2:], state)[0][rows]
    )


def reader(cell: CellKind, ways: int) -> SourceReader:
    torch.manual_seed(0)
    return SourceReader(3, 4, cell=cell, depth=2, ways=ways).double()  # type: ignore[arg-type]


def both_states(state: RnnState) -> list[Tensor]:
    return [state.hidden] if state.cell is None else [state.hidden, state.cell]


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("cell", CELL_KINDS)
def test_padding_cannot_leak(cell: CellKind, ways: int) -> None:
    encoder, x, lengths = reader(cell, ways), randn(3, 4, 3, seed=0), torch.tensor([4, 1, 3])
    states, last = encoder(x, lengths)
    longer, last_of_longer = encoder(torch.cat([x, randn(3, 2, 3, seed=1)], dim=1), lengths)
    torch.testing.assert_close(longer[:, :4], states)
    assert longer[:, 4:].eq(0).all()
    torch.testing.assert_close(both_states(last_of_longer), both_states(last))
    x[1, 1:] += 7
    assert torch.equal(encoder(x, lengths)[0], states)


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("cell", CELL_KINDS)
def test_a_batch_equals_its_rows_one_by_one(cell: CellKind, ways: int) -> None:
    encoder, x, lengths = reader(cell, ways), randn(3, 4, 3, seed=0), torch.tensor([2, 4, 3])
    states, last = encoder(x, lengths)
    for i, length in enumerate(lengths.tolist()):
        alone, end = encoder(x[i : i + 1, :length], lengths[i : i + 1])
        torch.testing.assert_close(states[i : i + 1, :length], alone)
        torch.testing.assert_close([s[i : i + 1] for s in both_states(last)], both_states(end))


def test_the_last_state_one_way_is_that_of_the_last_real_word() -> None:
    states, last = reader("gru", 1)(randn(2, 4, 3, seed=0), torch.tensor([4, 2]))
    torch.testing.assert_close(last.hidden[:, -1], states[[0, 1], [3, 1]])


def test_both_ways_stand_side_by_side_the_way_back_ending_at_the_first_word() -> None:
    states, last = reader("gru", 2)(randn(2, 4, 3, seed=0), torch.tensor([4, 2]))
    torch.testing.assert_close(last.hidden[:, -1, :2], states[[0, 1], [3, 1], :2])
    torch.testing.assert_close(last.hidden[:, -1, 2:], states[:, 0, 2:])


def test_reversing_turns_each_sequence_around_and_leaves_its_padding() -> None:
    tokens = torch.tensor([[4, 5, 6, 7], [8, 9, 0, 0]])
    turned = reverse(tokens, torch.tensor([4, 2]))
    assert turned.tolist() == [[7, 6, 5, 4], [9, 8, 0, 0]]
    assert torch.equal(reverse(turned, torch.tensor([4, 2])), tokens)


@pytest.mark.parametrize("ways", [1, 2])
@pytest.mark.parametrize("cell", CELL_KINDS)
def test_without_a_gradient_it_reads_the_same(cell: CellKind, ways: int) -> None:
    torch.manual_seed(0)
    reader = SourceReader(3, 4, cell=cell, depth=2, ways=ways).double()  # type: ignore[arg-type]
    x, lengths = torch.randn(4, 6, 3, dtype=torch.float64), torch.tensor([2, 5, 1, 5])
    with torch.no_grad():
        found, last = reader(x, lengths)
    expected, expected_last = reader(x, lengths)
    torch.testing.assert_close(found, expected.detach(), atol=1e-12, rtol=0)
    for one, other in zip(both_states(last), both_states(expected_last), strict=True):
        torch.testing.assert_close(one, other.detach(), atol=1e-12, rtol=0)
