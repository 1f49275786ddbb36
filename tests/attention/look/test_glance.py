"""What is kept of a look: how much, how looks join, and how exact a zoom is."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from saccade.attention.look.glance import PER_QUERY, Glance, Keep, half, joined, tile
from saccade.attention.look.observe import observe
from saccade.attention.look.view import View
from saccade.errors import ConfigError
from tests.attention.kernels import draws, truth, views

CLOSE = 0.002  # what half precision leaves of a weight


@given(size=st.integers(0, 100_000), side=st.integers(1, 300))
def test_a_cell_is_the_least_power_of_two_that_makes_a_map_small_enough(
    size: int, side: int
) -> None:
    cell = Keep(map_side=side).cell(size)
    assert cell.bit_count() == 1
    assert -(-size // cell) <= side
    assert cell == 1 or size > side * cell // 2


def test_without_a_map_a_cell_is_one() -> None:
    assert Keep(map_side=0).cell(10_000) == 1


@pytest.mark.parametrize("name", ["map_side", "top", "dense", "sink", "local"])
def test_less_than_nothing_cannot_be_kept(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}=-1 must be 0 \(keep none\) or more$"):
        Keep(**{name: -1})
    assert getattr(Keep(**{name: 0}), name) == 0


def reading(size: int, *, batch: int = 2, causal: bool = True) -> View:
    """Everything at once, as a model reads that has all words."""
    return View(draws(batch, 2, size, 4, seed=0), draws(batch, 2, size, 4, seed=1), 0.5, causal)


def step(view: View, start: int, stop: int) -> View:
    """Some queries, when only the words up to them are there."""
    return replace(view, q=view.q[:, :, start:stop], k=view.k[:, :, :stop])


def same(one: Glance, other: Glance, names: tuple[str, ...]) -> None:
    for name in names:
        a, b = getattr(one, name), getattr(other, name)
        assert isinstance(a, Tensor), name
        torch.testing.assert_close(a, b, atol=1e-12, rtol=0, msg=name)


@pytest.mark.parametrize("size", [0, 256])
@pytest.mark.parametrize("pieces", [[1] * 7, [4, 1, 2], [2, 5], [7]])
def test_joined_looks_are_one_look_at_everything(pieces: list[int], size: int) -> None:
    view, keep = reading(7), Keep(top=3, dense=size, zoom=True)
    ends = torch.tensor(pieces).cumsum(0).tolist()
    parts = [observe(step(view, end - n, end), keep) for n, end in zip(pieces, ends)]
    whole, together = observe(view, keep), joined(parts)
    names = PER_QUERY if size else PER_QUERY[:-1]
    same(together, whole, (*names, "received"))
    assert (together.keys, together.causal, together.cell) == (7, True, (1, 1))
    assert together.mean_map is together.max_map is together.zoom is None


def test_looks_at_fewer_and_fewer_keys_lose_nothing() -> None:
    wide, narrow = (observe(reading(n, causal=False), Keep(top=3)) for n in (5, 2))
    together = joined([wide, narrow])
    assert together.received is not None
    assert wide.received is not None
    assert narrow.received is not None
    assert together.keys == 5
    torch.testing.assert_close(together.received[:, :, 2:], wide.received[:, :, 2:])
    torch.testing.assert_close(
        together.received[:, :, :2], wide.received[:, :, :2] + narrow.received
    )
    assert together.weights is not None
    assert together.weights[:, :, 5:, 2:].eq(0).all()


def test_what_only_some_looks_kept_is_gone_when_they_join() -> None:
    view, keep = reading(6), Keep(dense=4)
    short, long = observe(step(view, 0, 4), keep), observe(step(view, 4, 6), keep)
    assert short.weights is not None
    assert joined([short, long]).weights is None
    bare = observe(step(view, 4, 6), replace(keep, top=0, received=False))
    together = joined([short, bare])
    assert together.top_weights is together.top_places is together.received is None
    assert together.entropy.shape == (2, 2, 6)


def test_narrowing_leaves_the_first_keys() -> None:
    glance = observe(reading(6), Keep())
    narrow = glance.narrowed(4)
    assert narrow.keys == 4
    assert narrow.received is not None
    assert narrow.weights is not None
    assert torch.equal(narrow.received, glance.received[:, :, :4])  # type: ignore[index]
    assert torch.equal(narrow.weights, glance.weights[..., :4])  # type: ignore[index]
    assert torch.equal(narrow.entropy, glance.entropy)
    bare = observe(reading(6), Keep(dense=0, received=False)).narrowed(4)
    assert bare.received is bare.weights is None


def some_bias(batch: int) -> Tensor:
    bias = draws(batch, 1, 6, 6, seed=5)
    bias[-1, :, 2] = -torch.inf
    return bias


@pytest.mark.parametrize("shared", [False, True])
def test_a_row_is_the_look_of_that_row_alone(shared: bool) -> None:
    batch = 1 if shared else 3
    mask = draws(batch, 1, 1, 6, seed=4) > -1
    view = replace(reading(6, batch=3), mask=mask, bias=some_bias(batch))
    glance = observe(view, Keep(zoom=True))
    for b in range(3):
        own = {
            "q": view.q[b : b + 1],
            "k": view.k[b : b + 1],
            "mask": mask if shared else mask[b : b + 1],
            "bias": view.bias if shared else view.bias[b : b + 1],  # type: ignore[index]
        }
        alone, row = observe(replace(view, **own), Keep(zoom=True)), glance.row(b)
        same(row, alone, (*PER_QUERY, "received", "mean_map", "max_map"))
        assert row.zoom is not None
        assert alone.zoom is not None
        expected = truth(replace(view, **own)).weights[0]
        for head in range(2):
            zoomed = tile(row.zoom, head, slice(None), slice(None))
            assert abs(zoomed.numpy() - expected[head]).max() <= CLOSE


def check_zoom(view: View) -> None:
    right, zoom = truth(view).weights, observe(view, Keep(dense=0, zoom=True)).zoom
    assert zoom is not None
    batch, heads, queries, keys = view.shape
    for b in range(batch):
        for n in range(heads):
            whole = tile(zoom, n, slice(0, queries), slice(0, keys), batch=b)
            assert abs(whole.double().numpy() - right[b, n]).max() <= CLOSE
            part = tile(zoom, n, slice(queries // 3, queries), slice(keys // 2, keys), batch=b)
            torch.testing.assert_close(part, whole[queries // 3 :, keys // 2 :])


@pytest.mark.slow
@settings(max_examples=100)
@given(view=views(longest=16, scales=(0.5, 1.0)))
def test_a_zoom_shows_the_exact_weights_of_any_tile(view: View) -> None:
    check_zoom(view)


@settings(max_examples=20)
@given(
    view=views(longest=8, scales=(1.0,)),
    powers=st.sampled_from([(6, 6), (6, -6), (-6, 6), (9, -9), (5, 0)]),
)
def test_huge_activations_do_not_overflow_a_zoom(view: View, powers: tuple[int, int]) -> None:
    of_q, of_k = (10.0**power for power in powers)
    q, k = view.q.float() * of_q, view.k.float() * of_k
    check_zoom(replace(view, q=q, k=k, scale=view.scale / of_q / of_k))


def test_half_keeps_what_half_precision_already_is() -> None:
    q, k = (6e4 * draws(1, 1, 5, 4, seed=i).clamp(-1, 1) for i in range(2))
    view = View(q.half(), k.half(), 1e-9)
    zoom = half(view)
    exact = view.q.double() @ view.k.double().mT * 1e-9
    torch.testing.assert_close(zoom.q.double() @ zoom.k.double().mT * zoom.scale, exact)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_zoom_of_large_queries_and_keys_sums_to_one_and_keeps_its_bound(
    dtype: torch.dtype,
) -> None:
    q, k = (9 * draws(1, 2, 150, 64, seed=i, dtype=torch.float32) for i in range(2))
    k[..., :3] *= 8  # some channels of trained models are far larger than the rest
    view = View(q.to(dtype), k.to(dtype), 0.02, causal=True)
    zoom = observe(view, Keep(dense=0, zoom=True)).zoom
    assert zoom is not None
    size = (
        view.q.double().abs() @ view.k.double().abs().mT * view.scale / 1024
    )  # of a score's error
    exact = torch.from_numpy(truth(view).weights)
    seen = torch.stack([tile(zoom, n, slice(None), slice(None)) for n in range(2)])[None].double()
    assert zoom.lse is not None
    rounding = 16 * float(zoom.lse.abs().max()) * torch.finfo(torch.float32).eps
    assert (seen.sum(dim=-1) - 1).abs().max() <= rounding
    worst = size.tril().amax(dim=-1, keepdim=True)
    bound = exact * (1 - exact) * torch.expm1(2 * worst)
    assert ((seen - exact).abs() <= bound + rounding).all()


@pytest.mark.parametrize("hides", ["mask", "bias", "causal", "reach"])
def test_what_is_hidden_is_zero_in_a_zoom_however_well_it_fits(hides: str) -> None:
    q, k = torch.ones(1, 1, 3, 1), torch.tensor([0.0, 1.0, 200.0]).view(1, 1, 3, 1)
    mask = torch.tensor([True, True, False]).view(1, 1, 1, 3)
    hiding = {
        "mask": {"mask": mask},
        "bias": {"bias": torch.zeros(1, 1, 1, 3).masked_fill(~mask, -torch.inf)},
        "causal": {"causal": True},
        "reach": {"reach": 0},
    }
    view = View(q, k, 1.0, **hiding[hides])  # type: ignore[arg-type]
    zoom = observe(view, Keep(zoom=True)).zoom
    assert zoom is not None
    weights = tile(zoom, 0, slice(0, 2), slice(None))
    assert weights[:, 2].eq(0).all()
    assert weights[0].sum() == pytest.approx(1, abs=CLOSE)


def test_a_blind_query_is_zero_in_a_zoom() -> None:
    mask = torch.tensor([True, False, True]).view(1, 1, 3, 1)
    view = replace(reading(3, batch=1), mask=mask, sink=draws(2, seed=3))
    zoom = observe(view, Keep(zoom=True)).zoom
    assert zoom is not None
    assert tile(zoom, 1, slice(1, 2), slice(None)).eq(0).all()


def test_main_memory_holds_the_same() -> None:
    glance = observe(replace(reading(5), mask=torch.ones(1, 1, 1, 5).bool()), Keep(zoom=True))
    moved = glance.cpu()
    assert moved.tensors().keys() == glance.tensors().keys()
    same(moved, glance, (*PER_QUERY, "received", "mean_map", "max_map"))
    assert moved.zoom is not None
    assert glance.zoom is not None
    assert torch.equal(moved.zoom.q, glance.zoom.q)
    assert moved.zoom.mask is not None


def test_tensors_are_all_that_is_kept_by_name() -> None:
    bare = observe(reading(5), Keep(received=False, map_side=0, top=0, dense=0, zoom=True))
    assert list(bare.tensors()) == ["lse", "entropy", "highest", "where", "sink", "local"]
    everything = {*PER_QUERY, "received", "mean_map", "max_map"}
    assert set(observe(reading(5), Keep()).tensors()) == everything
