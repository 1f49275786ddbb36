"""Rows and keys in one pass, in Triton's interpreter, against the definitions."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.attention.glance import Glance, Keep
from saccade.attention.view import View
from tests.attention.kernels.test_tiles import CAUSAL, Case, at_places, close, reference
from tests.interpreter import interpreted, mend_interpreter

pytestmark = pytest.mark.slow  # the interpreter takes 25 seconds

TWO = Keep(map_side=2, top=0, dense=0)
TOP = replace(TWO, top=3)
CASES = {
    "everything seen": Case((1, 1, 1, 100, 300, 16), TWO),
    "causal": Case((1, 1, 1, 200, 200, 16), TOP, settings=CAUSAL),
    "causal with a cache": Case((1, 1, 1, 70, 530, 16), replace(TWO, map_side=1), settings=CAUSAL),
    "grouped heads": Case((2, 2, 1, 130, 140, 16), TWO, settings=CAUSAL),
    "a window": Case((1, 1, 1, 290, 290, 8), TWO, settings={"reach": 5}),
    "a causal window": Case((1, 1, 1, 290, 290, 16), TWO, settings={"reach": 150, "causal": True}),
    "a mask for each query": Case((2, 1, 1, 90, 140, 16), TOP, mask=(2, 1, 90, 140)),
    "padding": Case((2, 1, 1, 70, 140, 16), TWO, mask=(2, 1, 1, 140), settings=CAUSAL),
    "a bias": Case((1, 2, 2, 70, 160, 16), TWO, bias=(1, 2, 70, 160)),
    "a cap": Case((1, 1, 1, 90, 160, 16), TWO, settings={"softcap": 2.0, "causal": True}),
    "a learnt sink": Case((1, 2, 2, 70, 60, 16), TWO, sink=True, mask=(1, 1, 70, 60)),
    "given sums": Case((1, 1, 1, 80, 170, 16), TWO, lse=True, mask=(1, 1, 80, 170)),
    "sixteen": Case((1, 1, 1, 70, 150, 16), replace(TWO, top=16)),
    "narrow cells": Case((1, 1, 1, 300, 50, 20), replace(TWO, map_side=4)),
    "bfloat16": Case((1, 1, 1, 100, 300, 16), TWO, dtype=torch.bfloat16, settings=CAUSAL),
    "long rows": Case((1, 1, 1, 70, 900, 16), TOP, settings=CAUSAL),
    "long rows in a window": Case((1, 1, 1, 70, 800, 16), TOP, settings={"reach": 380}),
    "long rows, keys on either side": Case((1, 1, 1, 520, 520, 8), replace(TOP, map_side=3)),
    "long rows, cells of one tile": Case((1, 1, 1, 200, 400, 16), replace(TOP, map_side=4)),
}
TOO_FINE = {
    "cells are lower than a tile": ((1, 1, 1, 60, 300, 16), TWO),
    "cells are narrower than a quad": ((1, 1, 1, 300, 10, 16), TWO),
    "nobody asks for keys": ((1, 1, 1, 300, 300, 16), replace(TWO, received=False)),
    "nobody asks for maps": ((1, 1, 1, 300, 300, 16), replace(TWO, map_side=0)),
}
Found = dict[str, dict[str, Any]]


def faint() -> View:
    """A learnt sink takes all but a billionth."""
    q, k = torch.zeros(1, 1, 128, 16), torch.zeros(1, 1, 140, 16)
    return View(q, k, 1.0, sink=torch.tensor([20.0]))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What the kernel made of every case, and where it is used."""
    return interpreted(__file__, tmp_path_factory.mktemp("once"))


@pytest.fixture
def glance(found: Found, name: str) -> Glance:
    return Glance(**found[name])


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_the_definitions(name: str, glance: Glance) -> None:
    expected, _ = reference(CASES[name])
    assert glance.tensors().keys() == expected.tensors().keys()
    for part in glance.tensors().keys() - {"where", "top_places"}:
        close(glance.tensors()[part], getattr(expected, part))
    assert glance.cell == expected.cell


@pytest.mark.parametrize("name", CASES)
def test_places_are_where_the_weights_are(name: str, glance: Glance) -> None:
    expected, weights = reference(CASES[name])
    close(glance.highest, at_places(weights, glance.where[..., None])[..., 0])
    assert ((glance.where < 0) == (expected.where < 0)).all()
    if glance.top_places is not None and glance.top_weights is not None:
        close(glance.top_weights, at_places(weights, glance.top_places))


@pytest.mark.parametrize("name", CASES)
def test_keys_and_maps_are_given_the_same_mass(name: str, glance: Glance) -> None:
    assert glance.received is not None
    assert glance.mean_map is not None
    (down, across), queries = glance.cell, glance.lse.shape[2]
    rows = (queries - torch.arange(0, queries, down)).clamp(max=down)
    by_map = (glance.mean_map.double() * rows[:, None]).sum(dim=2)
    ends = -glance.keys % across
    by_key = torch.nn.functional.pad(glance.received.double(), (0, ends))
    close(by_map, by_key.unflatten(2, (-1, across)).sum(dim=3))


def test_weights_of_a_billionth_are_counted(found: Found) -> None:
    weights = faint().weights().double()
    assert weights.max() < 1e-8
    torch.testing.assert_close(
        found["faint"]["received"].double(), weights.sum(dim=2), rtol=5e-4, atol=0.0
    )


def test_the_one_pass_is_taken_where_cells_are_large_enough(found: Found) -> None:
    assert all(found["suits"][name] for name in CASES)
    assert not any(found["suits"][name] for name in TOO_FINE)


def main(path: str) -> None:
    mend_interpreter()
    from saccade.attention.kernels import tiles

    tiles.ONCE = 0
    fine = {name: (Case(shape).view(), keep) for name, (shape, keep) in TOO_FINE.items()}
    views = {name: (case.view(), case.keep) for name, case in CASES.items()}
    suits = {name: tiles.suits_once(*asked) for name, asked in (fine | views).items()}
    kept: dict[str, Any] = {"suits": suits}
    usual = tiles.LONG
    for name, asked in (views | {"faint": (faint(), TWO)}).items():
        tiles.LONG = 256 if name.startswith("long") else usual  # two tiles at once
        glance = tiles.observe(*asked)
        rest = {part: getattr(glance, part) for part in ("cell", "keys", "causal", "reach")}
        kept[name] = glance.tensors() | rest
    torch.save(kept, Path(path))


if __name__ == "__main__":
    main(sys.argv[1])
