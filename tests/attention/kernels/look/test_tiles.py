"""The kernels in Triton's interpreter, against the definitions in double precision."""

import os
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor

from saccade.attention.kernels.look import dense
from saccade.attention.look.glance import Glance, Keep
from saccade.attention.look.view import View
from saccade.errors import ConfigError
from tests.interpreter import ROOT, interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # the interpreter takes 40 seconds

HALVES = (torch.bfloat16, torch.float16)


@dataclass(frozen=True)
class Case:
    """A view to look at: sizes, what hides keys, and what to keep."""

    shape: tuple[int, int, int, int, int, int]  # batch, heads, key heads, queries, keys, width
    keep: Keep = field(default_factory=lambda: Keep(map_side=16, dense=0))
    dtype: torch.dtype = torch.float32
    settings: dict[str, Any] = field(default_factory=dict)
    mask: tuple[int, int, int, int] | None = None
    bias: tuple[int, int, int, int] | None = None
    sink: bool = False
    lse: bool = False
    strided: bool = False

    def view(self) -> View:
        batch, heads, shared, queries, keys, width = self.shape
        rng = torch.Generator().manual_seed(sum(self.shape))
        q = 1.5 * torch.randn(batch, heads, queries, width, generator=rng)
        k = torch.randn(batch, shared, keys, width, generator=rng)
        mask = self.mask and torch.rand(self.mask, generator=rng) < 0.4
        if self.mask and self.mask[2] > 1:
            assert isinstance(mask, Tensor)
            mask[:, :, :2] = False  # two blind rows
        bias = self.bias and torch.randn(self.bias, generator=rng)
        if isinstance(bias, Tensor):
            bias = torch.where(bias > 1, -torch.inf, bias)
        q, k = q.to(self.dtype), k.to(self.dtype)
        if self.strided:
            q, k = q.transpose(1, 2).contiguous().transpose(1, 2), k.mT.contiguous().mT
        sink = torch.randn(heads, generator=rng) if self.sink else None
        view = View(q, k, width**-0.5, mask=mask, bias=bias, sink=sink, **self.settings)
        if not self.lse:
            return view
        fine = in_full(view)
        return replace(view, lse=fine.normaliser(fine.scores()).float())


def in_full(view: View) -> View:
    """The same in double precision."""
    bias = None if view.bias is None else view.bias.double()
    return replace(view, q=view.q.double(), k=view.k.double(), bias=bias)


CAUSAL = {"causal": True}
CASES = {
    "everything seen": Case((1, 1, 1, 40, 150, 16)),
    "causal": Case((1, 1, 1, 70, 70, 16), settings=CAUSAL),
    "causal with a cache": Case((1, 1, 1, 66, 270, 16), settings=CAUSAL),
    "more queries than keys": Case((1, 1, 1, 20, 9, 16), settings=CAUSAL),
    "grouped heads": Case((2, 2, 1, 33, 40, 16), settings=CAUSAL),
    "odd width": Case((1, 1, 1, 30, 35, 20), Keep(map_side=4, dense=0)),
    "a window": Case((1, 1, 1, 140, 140, 8), settings={"reach": 5}),
    "a causal window": Case((1, 1, 1, 290, 290, 16), settings={"reach": 20, "causal": True}),
    "a mask for each query": Case((2, 1, 1, 40, 140, 16), mask=(2, 1, 40, 140)),
    "padding": Case((2, 1, 1, 20, 40, 16), mask=(2, 1, 1, 40), settings=CAUSAL),
    "a bias": Case((1, 2, 2, 30, 60, 16), bias=(1, 2, 30, 60)),
    "a bias for each key": Case((1, 2, 2, 30, 60, 16), bias=(1, 1, 1, 60)),
    "a cap": Case((1, 1, 1, 50, 60, 16), settings={"softcap": 2.0, "causal": True}),
    "a learnt sink": Case((1, 2, 2, 20, 60, 16), sink=True, mask=(1, 1, 20, 60)),
    "given sums": Case((1, 1, 1, 40, 70, 16), lse=True, mask=(1, 1, 40, 70)),
    "strides": Case((1, 2, 2, 70, 70, 16), strided=True, settings=CAUSAL),
    "one query": Case((1, 1, 1, 1, 200, 64), Keep(top=1, dense=0)),
    "few keys": Case((1, 1, 1, 70, 3, 16), Keep(top=5, sink=4, local=1, dense=0)),
    "rows only": Case((1, 1, 1, 70, 150, 16), Keep(received=False, map_side=0, top=0, dense=0)),
    "sixteen": Case((1, 1, 1, 30, 300, 16), Keep(top=16, received=False, map_side=0, dense=0)),
    "maps alone": Case((1, 1, 1, 35, 33, 16), Keep(top=0, received=False, map_side=16, dense=0)),
    "cells of one": Case((1, 1, 1, 33, 70, 16), Keep(top=3, map_side=128, sink=0, dense=0)),
    "large cells": Case((1, 1, 1, 130, 280, 16), Keep(map_side=2, top=0, local=0, dense=0)),
    "cells of tiles": Case((1, 1, 1, 300, 40, 8), Keep(map_side=1, top=0, dense=0)),
    **{f"{dtype}": Case((1, 1, 1, 40, 140, 16), dtype=dtype, settings=CAUSAL) for dtype in HALVES},
    "long rows": Case((1, 1, 1, 40, 700, 16), settings=CAUSAL),
    "long rows, keys on either side": Case(
        (1, 1, 1, 400, 400, 16), Keep(received=False, map_side=0, top=3, dense=0)
    ),
}
LONG = dict.fromkeys((name for name in CASES if name.startswith("long")), 256)  # two tiles at once


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Glance]:
    """What the kernels made of every case."""
    kept = interpreted(__file__, tmp_path_factory.mktemp("tiles"))
    return {name: Glance(**parts) for name, parts in kept.items()}


def reference(case: Case) -> tuple[Glance, Tensor]:
    view = in_full(case.view())
    weights, lse = view.weights(), view.normaliser(view.scores())
    known = {"causal": view.causal, "reach": view.reach}
    return dense.observe(weights, case.keep, lse=lse, **known), weights


def at_places(weights: Tensor, places: Tensor) -> Tensor:
    """The weights at places; 0 at −1."""
    padded = torch.nn.functional.pad(weights, (0, 1))
    return padded.gather(-1, torch.where(places < 0, weights.shape[-1], places))


def close(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_definitions(name: str, seen: dict[str, Glance]) -> None:
    expected, _ = reference(CASES[name])
    found = seen[name].tensors()
    assert found.keys() == expected.tensors().keys()
    for part in found.keys() - {"where", "top_places"}:
        close(found[part], getattr(expected, part))
    for part in ("cell", "keys", "causal", "reach"):
        assert getattr(seen[name], part) == getattr(expected, part)


@pytest.mark.parametrize("name", CASES)
def test_places_are_where_the_weights_are(name: str, seen: dict[str, Glance]) -> None:
    expected, weights = reference(CASES[name])
    found = seen[name]
    close(found.highest, at_places(weights, found.where[..., None])[..., 0])
    assert ((found.where < 0) == (expected.where < 0)).all()
    if found.top_places is None or found.top_weights is None or expected.top_places is None:
        return
    close(found.top_weights, at_places(weights, found.top_places))
    assert ((found.top_places < 0) == (expected.top_places < 0)).all()
    ordered = found.top_places.sort(dim=-1).values
    assert not ((ordered.diff(dim=-1) == 0) & (ordered[..., 1:] >= 0)).any()


def test_the_blind_see_nothing(seen: dict[str, Glance]) -> None:
    glance = seen["a mask for each query"]
    assert (glance.lse[:, :, :2] == -torch.inf).all()
    assert (glance.where[:, :, :2] == -1).all()
    for part in (glance.entropy, glance.highest, glance.sink, glance.local):
        assert (part[:, :, :2] == 0).all()


def test_more_than_the_networks_hold_is_refused() -> None:
    pytest.importorskip("triton")
    code = (
        "import torch\n"
        "from saccade.attention.look.glance import Keep\n"
        "from saccade.attention.kernels.look.tiles import observe\n"
        "from saccade.attention.look.view import View\n"
        "x = torch.zeros(1, 1, 4, 4)\n"
        "observe(View(x, x, 1.0), Keep(top=17))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code], check=False, env=environment, capture_output=True, text=True
    )
    assert ConfigError.__name__ in ran.stderr
    assert "top=17 is more than the 16" in ran.stderr


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention.kernels.look import tiles

    kept: dict[str, dict[str, Any]] = {}
    usual = tiles.LONG
    for name, case in CASES.items():
        tiles.LONG = LONG.get(name, usual)
        glance = tiles.observe(case.view(), case.keep)
        rest = {part: getattr(glance, part) for part in ("cell", "keys", "causal", "reach")}
        kept[name] = glance.tensors() | rest
    torch.save(kept, path)


if __name__ == "__main__":
    main(sys.argv[1])
