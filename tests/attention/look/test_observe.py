"""One look, however it is computed: which way is taken, and what each gives."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.attention.kernels.look import blocks, dense
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.observe import observe
from saccade.attention.look.view import View
from tests.attention.kernels import (
    BLIND_SIGNS,
    DTYPES,
    check_lse,
    check_places,
    draws,
    errors,
    keeps,
    of_glance,
    statistics,
    truth,
    views,
    with_lse,
)

VIEW = View(draws(2, 2, 5, 4, seed=0).float(), draws(2, 2, 6, 4, seed=1).float(), 0.5)


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which kernels ran, in order."""
    ran: list[str] = []
    for kernel in (dense, blocks):
        name, run = kernel.__name__.split(".")[-1], kernel.observe

        def noted(*given: object, name: str = name, run: object = run, **more: object) -> object:
            ran.append(name)
            return run(*given, **more)  # type: ignore[operator]

        monkeypatch.setattr(kernel, "observe", noted)
    return ran


def test_short_inputs_keep_their_weights(ways: list[str]) -> None:
    glance = observe(VIEW, Keep(dense=6))
    assert ways == ["blocks"]
    torch.testing.assert_close(glance.weights, VIEW.weights())


@pytest.mark.parametrize("size", [0, 5])
def test_long_inputs_are_looked_at_in_blocks_and_keep_no_weights(
    ways: list[str], size: int
) -> None:
    glance = observe(VIEW, Keep(dense=size))
    assert ways == ["blocks"]
    assert glance.weights is None


@pytest.mark.parametrize(("queries", "keys"), [(0, 6), (5, 0)])
def test_emptiness_is_no_trouble(queries: int, keys: int) -> None:
    view = replace(VIEW, q=VIEW.q[:, :, :queries], k=VIEW.k[:, :, :keys])
    glance = observe(view, Keep(dense=0, zoom=True))
    assert glance.lse.shape == (2, 2, queries)


@pytest.mark.slow
@given(view=views(longest=20), keep=keeps, blind=st.sampled_from([None, *BLIND_SIGNS]))
def test_short_and_long_looks_are_the_definitions(
    view: View, keep: Keep, blind: float | None
) -> None:
    right = truth(view)
    if blind is not None:
        view = with_lse(view, right, blind)
    exact, tolerance = statistics(right.weights, keep), 2e-5
    for size in (0, 20):
        glance = observe(view, replace(keep, dense=size))
        assert max(errors(of_glance(glance), exact).values()) <= tolerance
        check_lse(glance, right, tolerance=tolerance)
        assert (glance.causal, glance.reach, glance.keys) == (
            view.causal, view.reach, view.shape[3],
        )  # fmt: skip
    check_places(observe(view, replace(keep, dense=0)), right, tolerance=tolerance)


@pytest.mark.parametrize("size", [0, 256])
@pytest.mark.parametrize("dtype", DTYPES)
def test_low_precision_is_looked_at_in_single(dtype: torch.dtype, size: int) -> None:
    mask = torch.arange(6) < 4
    view = replace(VIEW, q=VIEW.q.to(dtype), k=VIEW.k.to(dtype), mask=mask[None, None, None])
    glance, keep = observe(view, Keep(dense=size)), Keep()
    precision = torch.float64 if dtype == torch.float64 else torch.float32
    kinds = {x.dtype for x in glance.tensors().values() if x.is_floating_point()}
    assert kinds == {precision}
    exact = statistics(truth(view).weights, keep)
    assert max(errors(of_glance(glance), exact).values()) <= 2e-6


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_of_low_precision_are_summed_in_single(dtype: torch.dtype) -> None:
    weights = draws(1, 1, 300, 200, seed=0).softmax(dim=-1).to(dtype)
    glance = observe(weights, Keep())
    exact = statistics(weights.double().numpy(), Keep())
    assert max(errors(of_glance(glance), exact).values()) <= 1e-4


@pytest.mark.parametrize("size", [0, 256])
def test_no_graph_is_held(size: int) -> None:
    learnt = {
        "q": VIEW.q.clone(),
        "k": VIEW.k.clone(),
        "bias": torch.zeros(1, 2, 5, 6),
        "sink": torch.zeros(2),
    }
    view = replace(VIEW, **{name: side.requires_grad_() for name, side in learnt.items()})
    for seen in (view, view.weights()):
        glance = observe(seen, Keep(dense=size, zoom=True))
        zoom = glance.zoom
        parts = [] if zoom is None else [zoom.q, zoom.k, zoom.bias, zoom.sink, zoom.lse]
        assert (zoom is None) == isinstance(seen, torch.Tensor)
        held = [*glance.tensors().values(), *parts]
        assert not any(x is None or x.requires_grad for x in held)


@pytest.mark.parametrize("size", [0, 256])
def test_a_zoom_is_kept_only_when_asked_for(size: int) -> None:
    assert observe(VIEW, Keep(dense=size)).zoom is None
    glance = observe(VIEW, Keep(dense=size, zoom=True))
    assert isinstance(glance, Glance)
    assert glance.zoom is not None
    assert glance.zoom.q.dtype == glance.zoom.k.dtype == torch.float16
    torch.testing.assert_close(glance.zoom.lse, glance.lse, atol=2e-3, rtol=0)


def test_weights_that_are_shown_are_the_statistics_own() -> None:
    weights = VIEW.weights()
    glance = observe(weights, Keep())
    assert torch.equal(glance.weights, weights)  # type: ignore[arg-type]
    assert glance.lse is None  # nobody knows it
