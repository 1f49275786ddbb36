"""What every kernel must find: the definitions once more, with numpy and in any precision."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import View

Array = np.ndarray[Any, Any]
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
BLIND_SIGNS = (0.0, torch.inf, -torch.inf, torch.nan, torch.finfo(torch.float32).min)


class Truth(NamedTuple):
    """Every weight, the log-sum-exp of its query's scores, and whether it may be looked at."""

    weights: Array
    lse: Array
    seen: Array


def numbers(x: Tensor, precision: Any = np.float64) -> Array:
    return x.detach().double().numpy().astype(precision)


def may_look(view: View) -> Array:
    batch, heads, queries, keys = view.shape
    seen = np.ones((batch, heads, queries, keys), dtype=bool)
    behind = np.subtract.outer(
        np.arange(keys - queries, keys), np.arange(keys)
    )  # the last are last
    if view.causal:
        seen &= behind >= 0
    if view.reach is not None:
        seen &= abs(behind) <= view.reach
    if view.mask is not None:
        seen &= view.mask.numpy()
    if view.bias is not None:
        seen &= numbers(view.bias) > -1e30
    return seen


def truth(view: View, precision: Any = np.float64) -> Truth:
    """softmax(cap(scale · q kᵀ) + bias), a sink's score in the sum, and all of it at once."""
    q, k = numbers(view.q, precision), numbers(view.k, precision)
    group = q.shape[1] // k.shape[1]
    heads = [q[:, n] @ k[:, n // group].transpose(0, 2, 1) for n in range(q.shape[1])]
    scores = np.stack(heads, axis=1) * precision(view.scale)  # (B, N, T, S)
    if view.softcap is not None:
        scores = precision(view.softcap) * np.tanh(scores / precision(view.softcap))
    seen = may_look(view)
    if view.bias is not None:
        scores = scores + np.where(numbers(view.bias) > -1e30, numbers(view.bias, precision), 0)
    scores = np.where(seen, scores, precision(-np.inf))
    if view.sink is not None:
        sink = numbers(view.sink, precision)[None, :, None, None]
        sink = np.broadcast_to(sink, (*q.shape[:3], 1))
        scores = np.concatenate([scores, sink], axis=-1)
    peak = scores.max(axis=-1, keepdims=True, initial=-1e30)
    mass = np.exp(scores - peak).sum(axis=-1, keepdims=True)
    blind = ~seen.any(axis=-1)
    safe = np.where(mass > 0, mass, 1)
    weights = np.exp(scores - peak)[..., : seen.shape[-1]] / safe
    lse = np.where(blind, -np.inf, (peak + np.log(safe))[..., 0]).astype(precision)
    return Truth(np.where(seen, weights, 0).astype(precision), lse, seen)


def cell(size: int, side: int) -> int:
    return next(2**power for power in range(64) if size <= side * 2**power)


def statistics(weights: Array, keep: Keep) -> dict[str, Array]:
    """Each of them as `Glance` defines it."""
    queries, keys = weights.shape[2:]
    t, s = np.arange(keys - queries, keys)[:, None], np.arange(keys)[None]
    logs = np.log(np.where(weights > 0, weights, 1))
    found = {
        "entropy": -(weights * logs).sum(axis=-1),
        "highest": weights.max(axis=-1, initial=0),
        "sink": weights[..., : keep.sink].sum(axis=-1),
        "local": np.where(abs(t - s) <= keep.local, weights, 0).sum(axis=-1),
    }
    if keep.received:
        found["received"] = weights.sum(axis=2)
    if keep.map_side:
        down = np.arange(0, queries, cell(queries, keep.map_side))
        across = np.arange(0, keys, cell(keys, keep.map_side))
        sums = np.add.reduceat(np.add.reduceat(weights, down, axis=2), across, axis=3)
        rows = np.diff(down, append=queries)[:, None].astype(weights.dtype)
        found["mean_map"] = sums / rows
        peaks = np.maximum.reduceat(weights, down, axis=2)
        found["max_map"] = np.maximum.reduceat(peaks, across, axis=3)
    if keep.top:
        found["top_weights"] = -np.sort(-weights, axis=-1)[..., : keep.top]
    return found


def errors(found: dict[str, Array], expected: dict[str, Array]) -> dict[str, float]:
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert values.shape == expected[name].shape, name
        assert np.isfinite(values).all(), name
    return {n: float(abs(found[n] - expected[n]).max(initial=0)) for n in found}


def of_glance(glance: Glance) -> dict[str, Array]:
    """What `statistics` gives, by the same names."""
    places = ("lse", "where", "top_places", "weights")
    return {n: numbers(x) for n, x in glance.tensors().items() if n not in places}


def check_places(glance: Glance, right: Truth, *, tolerance: float) -> None:
    """Wherever a place is named, the weight said to be there is there; −1 where there is none."""
    where, blind = glance.where.numpy(), ~right.seen.any(axis=-1)
    assert ((where == -1) == blind).all()
    there = np.take_along_axis(right.weights, where.clip(min=0)[..., None], axis=-1)[..., 0]
    assert abs(np.where(blind, 0, there) - numbers(glance.highest)).max(initial=0) <= tolerance
    if glance.top_places is None or glance.top_weights is None:
        return
    places = glance.top_places.numpy()
    count = right.seen.sum(axis=-1, keepdims=True)
    assert ((places == -1) == (np.arange(places.shape[-1]) >= count)).all()
    there = np.take_along_axis(right.weights, places.clip(min=0), axis=-1)
    gap = np.where(places < 0, 0, there) - numbers(glance.top_weights)
    assert abs(gap).max(initial=0) <= tolerance
    ordered = np.sort(places, axis=-1)
    assert ((np.diff(ordered, axis=-1) > 0) | (ordered[..., 1:] == -1)).all()  # none twice


def check_lse(glance: Glance, right: Truth, *, tolerance: float) -> None:
    lse, blind = numbers(glance.lse), np.isinf(right.lse)
    assert (lse[blind] == -np.inf).all()
    assert abs(lse[~blind] - right.lse[~blind]).max(initial=0) <= tolerance


def draws(*shape: int, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    numbers = torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return numbers.to(dtype)


@st.composite
def views(draw: st.DrawFn, *, longest: int = 40, scales: tuple[float, ...] = (0.3, 1, 4)) -> View:
    """Any view: every kind of hiding, of broadcasting and of score, each present or not."""
    seed, dtype = draw(st.integers(0, 9999)), draw(st.sampled_from(DTYPES))
    batch, serving, group = (
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 3)),
    )
    queries, keys = draw(st.integers(1, longest)), draw(st.integers(1, longest))
    if draw(st.booleans()):
        queries = keys
    width, heads = draw(st.integers(1, 8)), serving * group
    full = (batch, heads, queries, keys)
    sizes = st.tuples(*(st.sampled_from([1, size]) for size in full))
    mask = draws(*draw(sizes), seed=seed) > draw(st.sampled_from([-1.0, 0.5]))
    bias = draws(*draw(sizes), seed=seed + 1, dtype=dtype)
    lowest = draw(st.sampled_from([None, -torch.inf, torch.finfo(dtype).min]))
    if lowest is not None:
        bias = bias.masked_fill(draws(*bias.shape, seed=seed + 2) > 0.3, lowest)
    return View(
        draws(batch, heads, queries, width, seed=seed + 3, dtype=dtype),
        draws(batch, serving, keys, width, seed=seed + 4, dtype=dtype),
        draw(st.sampled_from(scales)) * width**-0.5,
        causal=draw(st.booleans()),
        reach=draw(st.sampled_from([None, 0, 2, 7, longest])),
        mask=draw(st.sampled_from([None, mask])),
        bias=draw(st.sampled_from([None, bias])),
        softcap=draw(st.sampled_from([None, 2.0])),
        sink=draw(st.sampled_from([None, draws(heads, seed=seed + 5)])),
    )


def with_lse(view: View, right: Truth, blind: float) -> View:
    """As if a fused kernel had given its log-sum-exp away; of blind rows it may say anything."""
    precision = torch.promote_types(view.q.dtype, torch.float32)
    lse = torch.from_numpy(right.lse).to(precision)
    return replace(view, lse=lse.masked_fill(lse == -torch.inf, blind))


keeps = st.builds(
    Keep,
    received=st.booleans(),
    map_side=st.sampled_from([0, 1, 2, 3, 5, 8, 256]),
    top=st.sampled_from([0, 1, 3, 8, 50]),
    sink=st.sampled_from([0, 1, 4, 100]),
    local=st.sampled_from([0, 1, 8]),
)
