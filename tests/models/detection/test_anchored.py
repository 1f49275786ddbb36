"""Queries that are boxes: what they score cells by, and which cells propose the first."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from saccade.models.detection.anchored import BoxBias, BoxPlaces, Proposals, to_logits

seed = st.integers(0, 999)


def draws(*shape: int, seed: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def seeded(module: nn.Module) -> nn.Module:
    torch.manual_seed(5)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


def logarithmic(apart: float) -> float:
    """sign(Δ) log₂(8 |Δ| + 1) / log₂ 8"""
    return math.copysign(math.log2(abs(apart) * 8 + 1) / math.log2(8), apart)


@given(seed=seed, height=st.integers(1, 4), width=st.integers(1, 4))
@torch.no_grad()
def test_cells_are_scored_by_where_they_lie_to_the_edges(
    seed: int, height: int, width: int
) -> None:
    module = seeded(BoxBias(3))
    assert isinstance(module, BoxBias)
    boxes, down, across = (
        draws(2, 3, 4, seed=seed),
        draws(2, height, seed=seed + 1),
        draws(2, width, seed=seed + 2),
    )
    found = module(boxes, down, across).view(2, 3, 3, height, width)
    for image in range(2):
        for query in range(3):
            cx, cy, w, h = boxes[image, query].tolist()
            for i in range(height):
                for j in range(width):
                    y, x = down[image, i].item(), across[image, j].item()
                    edges = [logarithmic(y - (cy - h / 2)), logarithmic(y - (cy + h / 2))]
                    sides = [logarithmic(x - (cx - w / 2)), logarithmic(x - (cx + w / 2))]
                    expected = module.of_rows(boxes.new_tensor(edges)) + module.of_columns(
                        boxes.new_tensor(sides)
                    )
                    torch.testing.assert_close(found[image, :, query, i, j], expected)


@given(seed=seed)
def test_logits_are_the_inverse_of_shares(seed: int) -> None:
    shares = draws(5, 4, seed=seed).clamp(0.01, 0.99)
    torch.testing.assert_close(to_logits(shares).sigmoid(), shares)


def test_shares_of_nought_and_one_have_finite_logits() -> None:
    assert to_logits(torch.tensor([0.0, 1.0, 0.5, 2.0])).isfinite().all()


@torch.no_grad()
def test_a_place_is_told_by_sines_of_its_four_numbers() -> None:
    module = seeded(BoxPlaces(8))
    assert isinstance(module, BoxPlaces)
    box = torch.tensor([0.3, 0.6, 0.2, 0.4], dtype=torch.float64)
    sines = [
        wave(2 * math.pi * value * 10000 ** (-2 * k / 4))
        for value in box.tolist()
        for k in range(2)
        for wave in (math.sin, math.cos)
    ]
    torch.testing.assert_close(module(box[None, None])[0, 0], module.mlp(box.new_tensor(sines)))


def proposals() -> Proposals:
    module = seeded(Proposals(8, 3))
    assert isinstance(module, Proposals)
    return module


def cells(height: int, width: int) -> tuple[Tensor, Tensor]:
    middles = [(torch.arange(n, dtype=torch.float64)[None] + 0.5) / n for n in (height, width)]
    return middles[0], middles[1]


@given(seed=seed, queries=st.integers(1, 6))
@torch.no_grad()
def test_the_likeliest_cells_are_proposed_and_none_beside_the_image(
    seed: int, queries: int
) -> None:
    module, memory = proposals(), draws(2, 12, 8, seed=seed)
    within = torch.ones(2, 12, dtype=torch.bool)
    within[1, 6:] = False
    down, across = cells(3, 4)
    found = module(memory, within, down, across, queries)
    scores = module.to_scores(module.norm(module.project(memory)))
    likely = scores.amax(dim=-1).masked_fill(~within, -torch.inf)
    for image in range(2):
        order = likely[image].argsort(descending=True)[:queries]
        torch.testing.assert_close(found.scores[image], scores[image, order])
        assert within[image, order].all()


@torch.no_grad()
def test_a_box_begins_around_its_cell() -> None:
    module = proposals()
    for parameter in module.to_boxes.parameters():
        nn.init.zeros_(parameter)
    down, across = cells(2, 3)
    found = module(draws(1, 6, 8, seed=1), None, down, across, 6).boxes[0]
    expected = {(x, y, 0.1, 0.1) for y in (0.25, 0.75) for x in (1 / 6, 0.5, 5 / 6)}
    rounded = {tuple(round(value, 6) for value in box) for box in found.tolist()}
    assert rounded == {tuple(round(value, 6) for value in box) for box in expected}


@pytest.mark.parametrize("queries", [7, 12])
@torch.no_grad()
def test_where_there_are_fewer_cells_they_take_turns(queries: int) -> None:
    down, across = cells(1, 3)
    found = proposals()(draws(2, 3, 8, seed=1), None, down, across, queries)
    assert found.boxes.shape == (2, queries, 4)
    for query in range(queries):
        torch.testing.assert_close(found.boxes[:, query], found.boxes[:, query % 3])
