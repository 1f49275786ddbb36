"""A look that waits to be asked is the look of the moment in which the model ran."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from saccade.attention.look import later
from saccade.attention.look import looking as tracing
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.later import Look
from saccade.attention.look.looking import looking
from saccade.attention.look.observe import observe
from saccade.attention.look.view import View
from tests.attention.kernels import draws

ROOM = 1 << 20


def view(queries: int = 6, keys: int = 6) -> View:
    """With everything that a model might write into."""
    return View(
        draws(2, 2, queries, 4, seed=0).float(),
        draws(2, 2, keys, 4, seed=1).float(),
        0.5,
        mask=draws(2, 1, 1, keys, seed=2) > -1,
        bias=draws(1, 2, 1, keys, seed=3).float(),
        sink=draws(2, seed=4).float(),
    )


def look(seen: View | Tensor, room: int = ROOM, keep: Keep | None = None) -> Look:
    return Look(seen, keep or Keep(), queries=None, keys=None, room=room)


def same(found: Glance, expected: Glance) -> bool:
    pairs = zip(found.tensors().values(), expected.tensors().values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every time that something is computed."""
    calls: list[Any] = []

    def observing(*given: Any, **more: Any) -> Glance:
        calls.append(given)
        return observe(*given, **more)

    monkeypatch.setattr(later, "observe", observing)
    return calls


def test_what_a_model_writes_into_its_tensors_afterwards_is_not_seen(asked: list[Any]) -> None:
    seen = view()
    expected, waiting = observe(seen, Keep()), look(seen)
    for side in (seen.q, seen.k, seen.bias, seen.sink):
        assert side is not None
        side.fill_(7.0)
    assert seen.mask is not None
    seen.mask.logical_not_()
    assert asked == []
    assert same(waiting.glance(), expected)


def test_it_is_computed_once(asked: list[Any]) -> None:
    waiting = look(view())
    assert waiting.glance() is waiting.glance()
    assert len(asked) == 1


@pytest.mark.parametrize(
    "seen",
    [view(queries=1, keys=40), replace(view(), bias=draws(2, 2, 6, 6, seed=0)), view().weights()],
    ids=["the past of a new word", "a bias for each pair", "weights"],
)
def test_what_is_larger_than_its_queries_does_not_wait(seen: View, asked: list[Any]) -> None:
    assert look(seen).waiting == 0
    assert len(asked) == 1


def test_what_waits_is_bounded(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    held = 2 * 4 * 5 * 8 + 4 * 2 * 5  # queries, keys and the log-sum-exp of one pass
    monkeypatch.setattr(tracing, "WAITING", 2 * held)
    with torch.no_grad(), looking(attention) as trace:
        for _ in range(4):
            attention(*[draws(1, 5, 8, seed=0).float()] * 3, need_weights=False)
    assert len(asked) == 2
    (site,) = trace
    first, *others = trace.calls(site)
    assert all(same(other, first) for other in others)


@pytest.mark.parametrize(
    "surrounding",
    [torch.inference_mode, lambda: torch.autocast("cpu", dtype=torch.bfloat16)],
    ids=["inference mode", "autocast"],
)
def test_it_does_not_matter_where_it_is_made_or_asked(surrounding: Callable[[], Any]) -> None:
    seen, keep = view(), Keep(zoom=True)
    expected = observe(seen, keep)
    with surrounding():
        made = look(seen, keep=keep)
        assert same(look(seen, keep=keep).glance(), expected)
    assert same(made.glance(), expected)
    outside = look(seen, keep=keep)
    with surrounding():
        assert same(outside.glance(), expected)


def test_the_graph_is_not_held() -> None:
    seen = view()
    q = seen.q.clone().requires_grad_()
    assert not look(replace(seen, q=q * 2)).glance().entropy.requires_grad
