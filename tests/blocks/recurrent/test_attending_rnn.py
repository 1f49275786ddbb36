"""The lean loop against the plain one, and its gradient against differences."""

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.attend import attend
from saccade.blocks.recurrent.attending_rnn import AttendedSteps, LoopWeights, attending_rnn
from saccade.blocks.recurrent.gates import GATES
from saccade.blocks.recurrent.memory import AttentionMemory

T, B, S, D, F, H = 3, 2, 4, 3, 2, 2
WIDTHS = {"vanilla": H, "gru": 3 * H, "lstm": 4 * H}
MASK = torch.tensor([[True] * 4, [True, True, False, False]])[:, None]
every_cell = pytest.mark.parametrize("kind", WIDTHS)


def inputs(kind: str, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    g = WIDTHS[kind]
    shapes = {"x": (T, B, g), "h": (B, H), "keys": (B, S, F), "values": (B, S, D)}
    shapes |= {"context": (g, D), "hidden": (g, H), "hidden_bias": (g,), "query": (F, H)}
    shapes |= {"query_bias": (F,), "score": (F,)} | ({"c": (B, H)} if kind == "lstm" else {})
    rng = torch.Generator().manual_seed(0)
    return {
        name: torch.randn(shape, generator=rng).to(dtype).requires_grad_()
        for name, shape in shapes.items()
    }


def lean(kind: str, given: dict[str, Tensor], mask: Tensor | None = MASK) -> AttendedSteps:
    state, bias = (
        torch.cat([given[f"query{part}"], given[f"hidden{part}"]]) for part in ("", "_bias")
    )
    weights = LoopWeights(given["context"], state, bias, given["score"])
    memory = AttentionMemory.masked(given["keys"], given["values"], mask)
    start = given["h"], given.get("c")
    return attending_rnn(kind, given["x"].flatten(0, 1), [B] * T, start, memory, weights)


def differentiable(run: AttendedSteps) -> list[Tensor]:
    return [part for part in (run.states, run.reads, run.cell) if part is not None]


def plain(kind: str, given: dict[str, Tensor], mask: Tensor | None = MASK) -> list[Tensor]:
    """As the docstring says it, step by step, by way of `attend`."""
    h, c, w = given["h"], given.get("c"), given

    def score(q: Tensor, k: Tensor) -> Tensor:
        return (q.unsqueeze(-2) + k.unsqueeze(-3)).tanh() @ w["score"]

    states, contexts = [], []
    for x in w["x"]:
        q = h @ w["query"].T + w["query_bias"]
        read = attend(q[:, None], w["keys"], w["values"], mask=mask, score=score).output[:, 0]
        own = h @ w["hidden"].T + w["hidden_bias"]
        (h, c), _ = GATES[kind].step(x + read @ w["context"].T, own, (h, c))
        states.append(h)
        contexts.append(read)
    return [torch.cat(states), torch.cat(contexts)] + ([] if c is None else [c])


@pytest.mark.parametrize("mask", [MASK, None], ids=["ragged", "full"])
@every_cell
def test_equals_the_plain_loop_in_values_and_gradients(kind: str, mask: Any) -> None:
    given = inputs(kind)
    found = differentiable(lean(kind, given, mask))
    expected = plain(kind, given, mask)
    torch.testing.assert_close(found, expected)
    grads = [torch.randn_like(part) for part in expected]
    leaves = list(given.values())
    torch.testing.assert_close(
        torch.autograd.grad(found, leaves, grads), torch.autograd.grad(expected, leaves, grads)
    )


@pytest.mark.slow
@every_cell
def test_has_the_gradient_of_its_values(kind: str) -> None:
    given = inputs(kind)

    def run(*leaves: Tensor) -> tuple[Tensor, ...]:
        return tuple(differentiable(lean(kind, dict(zip(given, leaves)))))

    assert torch.autograd.gradcheck(run, list(given.values()))


@every_cell
def test_what_is_masked_cannot_leak(kind: str) -> None:
    given = inputs(kind)
    before = lean(kind, given)
    with torch.no_grad():
        given["keys"][1, 2:] += 7
        given["values"][1, 2:] -= 7
    after = lean(kind, given)
    assert torch.equal(after.states, before.states)
    after.states.sum().backward()
    for name in ("keys", "values"):
        grad = given[name].grad
        assert grad is not None
        assert grad[1, 2:].eq(0).all()


def test_computes_in_the_precision_of_its_weights_under_autocast() -> None:
    given = inputs("gru", torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        narrow = lean("gru", {**given, "keys": given["keys"].bfloat16()})
    assert narrow.states.dtype == torch.float32
    torch.testing.assert_close(narrow.states, lean("gru", given).states, atol=0.05, rtol=0)
    with torch.autocast("cpu", torch.bfloat16):  # the way back, too
        narrow.states.sum().backward()


@every_cell
def test_what_was_kept_for_the_gradient_is_let_go_without_a_search_for_cycles(kind: str) -> None:
    gc.disable()
    try:
        run = lean(kind, inputs(kind))
        held = weakref.ref(run.states.grad_fn)
        del run
        assert held() is None
    finally:
        gc.enable()
