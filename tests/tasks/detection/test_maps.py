"""Where a detector looked for its objects: the weights that it read by, no others."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from saccade.attention.multihead import MultiHeadAttention
from saccade.tasks.detection.maps import FEWEST, MOST, ObjectMaps, object_maps
from tests.app.look.detectors import CONFIGS, SIDE, detector

Patch = pytest.MonkeyPatch


def an_image(side: int = SIDE, *, seed: int = 0) -> Tensor:
    rng = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (3, side, side), generator=rng, dtype=torch.uint8)


def told_weights(kind: str, patch: Patch, side: int = SIDE) -> tuple[ObjectMaps, dict[str, Tensor]]:
    """The maps, and softmax(q kᵀ / √K + bias) of what each module was given."""
    tool, weights = detector(kind, side=side).tool, dict[str, Tensor]()
    names = {module: name for name, module in tool.model.named_modules()}  # type: ignore[attr-defined]
    real = MultiHeadAttention.read

    def read(
        site: Any, x: Tensor, y: Tensor, z: Any = None, *, bias: Any = None, **how: Any
    ) -> Any:
        def split(linear: Any, given: Tensor) -> Tensor:
            made = (given @ linear.weight.T + linear.bias).double()
            return made.unflatten(-1, (site.heads, -1)).transpose(1, 2)

        q, k = split(site.to_q, x), split(site.to_k, y)
        scores = q @ k.mT / q.shape[-1] ** 0.5 + (0 if bias is None else bias.double())
        weights[names[site].removesuffix("_attention")] = scores.softmax(dim=-1)[0].detach()
        return real(site, x, y, z, bias=bias, **how)

    patch.setattr(MultiHeadAttention, "read", read)
    return object_maps(tool, an_image(side)), weights


@pytest.mark.parametrize("kind", CONFIGS)
def test_maps_are_the_weights_that_the_model_read_by(kind: str, monkeypatch: Patch) -> None:
    maps, weights = told_weights(kind, monkeypatch)
    assert {*maps.across, *maps.among, *maps.inner} == set(weights)
    assert len(maps.across) == len(maps.among) == CONFIGS[kind].depth
    assert len(maps.inner) == CONFIGS[kind].encoder_depth
    for name, seen in maps.across.items():
        torch.testing.assert_close(
            seen.flatten(2).double(), weights[name][:, maps.queries], atol=1e-5, rtol=1e-4
        )
        assert seen.sum(dim=(2, 3)).flatten().tolist() == pytest.approx(
            [1.0] * seen[..., 0, 0].numel()
        )
    for name, seen in maps.among.items():
        expected = weights[name][:, maps.queries][..., maps.queries]
        torch.testing.assert_close(seen.double(), expected, atol=1e-5, rtol=1e-4)
    for name, seen in maps.inner.items():  # so few cells that each is a point
        torch.testing.assert_close(seen.flatten(2).double(), weights[name], atol=1e-5, rtol=1e-4)


def test_of_many_cells_some_are_points_and_look_where_they_do() -> None:
    tool = detector("plain", side=128).tool
    image = an_image(128)
    every, some = (object_maps(tool, image, points=count) for count in (10_000, 30))
    assert every.points == every.cells
    assert some.points.height * some.points.width <= 36
    for of, wanted in (
        (some.points.down, every.cells.down),
        (some.points.across, every.cells.across),
    ):
        assert np.isin(np.round(of, 9), np.round(wanted, 9)).all()
    rows = [
        list(np.round(every.cells.down, 9)).index(round(float(y), 9)) * every.cells.width
        + list(np.round(every.cells.across, 9)).index(round(float(x), 9))
        for y in some.points.down
        for x in some.points.across
    ]
    for name, seen in some.inner.items():
        torch.testing.assert_close(seen, every.inner[name][:, rows])


def test_what_is_found_is_what_the_detector_tells_and_looking_changes_nothing() -> None:
    tool, image = detector().tool, an_image()
    before = tool.detect(image[None], threshold=0.0)[0]
    maps = object_maps(tool, image)
    assert maps.found == before[: len(maps.found)]
    assert FEWEST <= len(maps.found) <= MOST
    assert tool.detect(image[None], threshold=0.0)[0] == before
    assert len(set(maps.queries)) == len(maps.queries)
    assert [maps.queries[maps.row(one)] for one in maps.found] == [one.query for one in maps.found]


def test_without_points_nothing_of_the_encoder_is_kept() -> None:
    maps = object_maps(detector().tool, an_image(), points=0)
    assert maps.inner == {}
    assert maps.across
