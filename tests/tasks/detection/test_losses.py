"""Losses of sets: what the formulas say, whatever the order, and with nothing there at all."""

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from saccade.models.detection.detr import Detections
from saccade.tasks.detection.losses import set_losses
from saccade.tasks.detection.matching import TrueObjects, Weights, match
from tests.marks import one_fast
from tests.tasks.detection.sets import detections, objects, permuted
from tests.tasks.detection.test_matching import generalised, sigmoid

seed = st.integers(0, 999)
CLASSES = 3
WAYS: dict[str, tuple[bool, bool]] = {
    "cross-entropy": (True, False),
    "focal": (False, False),
    "aligned": (False, True),
}
WEIGHTS = Weights(classes=1.5, box=4.0, overlap=3.0)


def losses(found: Detections, true: TrueObjects, way: str) -> dict[str, Tensor]:
    no_object, aligned = WAYS[way]
    matched = match(found, true, WEIGHTS, no_object=no_object)
    return set_losses(found, true, matched, WEIGHTS, no_object=no_object, aligned=aligned)


def drawn(way: str, counts: list[int], seed: int = 0) -> tuple[Detections, TrueObjects]:
    found = detections(2, len(counts), 5, CLASSES + WAYS[way][0], seed)
    return found, objects(counts, max(1, *counts), CLASSES, seed)


class Pairs(dict[tuple[int, int, int], int]):
    """The object of each query that has one: (pass, image, query) → object."""

    @classmethod
    def of(cls, found: Detections, true: TrueObjects, way: str) -> "Pairs":
        matched = match(found, true, WEIGHTS, no_object=WAYS[way][0])
        places = [(*place, number) for *place, number in matched.ge(0).nonzero().tolist()]
        return cls({(p, b, int(matched[p, b, n])): n for p, b, n in places})


def by_hand(found: Detections, true: TrueObjects, way: str) -> dict[str, float]:
    """Number by number."""
    pairs = Pairs.of(found, true, way)
    total = {"box": 0.0, "overlap": 0.0}
    for (place, image, query), number in pairs.items():
        box, target = found.boxes[place, image, query].tolist(), true.boxes[image, number].tolist()
        weight = found.weights[place]
        total["box"] += 4 * weight * sum(abs(a - b) for a, b in zip(box, target))
        total["overlap"] += 3 * weight * (1 - generalised(box, target))
    scored = {"cross-entropy": entropy_by_hand, "focal": focal_by_hand, "aligned": focal_by_hand}
    return {**total, "classes": 1.5 * scored[way](found, true, pairs, way)}


def entropy_by_hand(found: Detections, true: TrueObjects, pairs: Pairs, way: str) -> float:
    total, (passes, batch, queries, scores) = 0.0, found.scores.shape
    for place in range(passes):
        summed = counted = 0.0
        for image in range(batch):
            for query in range(queries):
                number = pairs.get((place, image, query))
                label = scores - 1 if number is None else int(true.labels[image, number])
                weight = 0.1 if number is None else 1.0
                z = found.scores[place, image, query].tolist()
                summed += weight * (math.log(sum(map(math.exp, z))) - z[label])
                counted += weight
        total += found.weights[place] * summed / counted
    return total * max(1, int(true.there.sum()))


class Judged(NamedTuple):
    """A score: its probability, what it should be, and how much that counts."""

    place: tuple[int, int, int, int]
    p: float
    target: float
    weight: float


def judged(found: Detections, true: TrueObjects, pairs: Pairs, way: str) -> Iterator[Judged]:
    passes, batch, queries, scores = map(range, found.scores.shape)
    for place, image, query, label in product(passes, batch, queries, scores):
        number = pairs.get((place, image, query))
        p = sigmoid(found.scores[place, image, query, label].item())
        hit = number is not None and int(true.labels[image, number]) == label
        target, weight = float(hit), 0.25 * (1 - p) ** 2 if hit else 0.75 * p**2
        if way == "aligned":
            weight = 1.0 if hit else p**2
            fit = shared(found, true, place, image, query, number)
            target = p**0.25 * fit**0.75 if hit else 0.0
        yield Judged((place, image, query, label), p, target, found.weights[place] * weight)


def focal_by_hand(found: Detections, true: TrueObjects, pairs: Pairs, way: str) -> float:
    return sum(
        -one.weight * (one.target * math.log(one.p) + (1 - one.target) * math.log(1 - one.p))
        for one in judged(found, true, pairs, way)
    )


def shared(
    found: Detections, true: TrueObjects, place: int, image: int, query: int, number: int | None
) -> float:
    """The IoU of a query's box and its object's."""
    if number is None:
        return 0.0
    (ax, ay, aw, ah), (bx, by, bw, bh) = (
        found.boxes[place, image, query].tolist(),
        true.boxes[image, number].tolist(),
    )
    across = min(ax + aw / 2, bx + bw / 2) - max(ax - aw / 2, bx - bw / 2)
    down = min(ay + ah / 2, by + bh / 2) - max(ay - ah / 2, by - bh / 2)
    common = max(0.0, across) * max(0.0, down)
    return max(common / (aw * ah + bw * bh - common), 1e-6)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("counts", [[2, 0, 4], [1], [0, 0], [7, 1]])
def test_losses_are_those_of_the_formulas(way: str, counts: list[int]) -> None:
    found, true = drawn(way, counts)
    expected = by_hand(found, true, way)
    assert {name: x.item() for name, x in losses(found, true, way).items()} == {
        name: pytest.approx(value, rel=1e-9) for name, value in expected.items()
    }


@pytest.mark.parametrize("way", one_fast(WAYS))
@given(seed=seed)
def test_the_order_of_the_objects_changes_nothing(way: str, seed: int) -> None:
    found, true = drawn(way, [2, 0, 4], seed)
    before, after = losses(found, true, way), losses(found, permuted(true, seed), way)
    for name, loss in before.items():
        torch.testing.assert_close(after[name], loss)


@pytest.mark.parametrize("way", one_fast(WAYS))
@given(seed=seed)
def test_the_order_of_the_queries_changes_nothing(way: str, seed: int) -> None:
    found, true = drawn(way, [2, 0, 4], seed)
    order = torch.randperm(5, generator=torch.Generator().manual_seed(seed))
    other = found._replace(scores=found.scores[:, :, order], boxes=found.boxes[:, :, order])
    for name, loss in losses(found, true, way).items():
        torch.testing.assert_close(losses(other, true, way)[name], loss)


@pytest.mark.parametrize("way", WAYS)
def test_empty_places_change_nothing(way: str) -> None:
    found, true = drawn(way, [2, 0, 4])
    more = TrueObjects(
        torch.cat([true.boxes, torch.zeros_like(true.boxes)], dim=1),
        torch.cat([true.labels, torch.zeros_like(true.labels)], dim=1),
        torch.cat([true.there, torch.zeros_like(true.there)], dim=1),
    )
    for name, loss in losses(found, true, way).items():
        torch.testing.assert_close(losses(found, more, way)[name], loss)


@pytest.mark.parametrize("counts", [[0, 2], [0, 0]])
@pytest.mark.parametrize("way", WAYS)
def test_images_without_objects_teach_that_nothing_is_there(way: str, counts: list[int]) -> None:
    found, true = drawn(way, counts)
    for tensor in found[:2]:
        tensor.requires_grad_()
    told = losses(found, true, way)
    torch.stack([*told.values()]).sum().backward()
    scores, boxes = found.scores.grad, found.boxes.grad
    assert scores is not None
    assert boxes is not None
    assert scores.isfinite().all()
    assert boxes.isfinite().all()
    assert scores[:, 0].abs().max() > 0
    assert not boxes[:, 0].any()
    if not any(counts):
        assert told["box"] == told["overlap"] == 0


def test_all_is_learnt_by_the_slope_of_the_loss() -> None:
    found, true = drawn("cross-entropy", [2, 0, 4])
    matched = match(found, true, WEIGHTS, no_object=True)

    def total(scores: Tensor, boxes: Tensor) -> Tensor:
        given = found._replace(scores=scores, boxes=boxes)
        told = set_losses(given, true, matched, WEIGHTS, no_object=True, aligned=False)
        return torch.stack([*told.values()]).sum()

    boxes, scores = found.boxes.clone().requires_grad_(), found.scores.clone().requires_grad_()
    assert torch.autograd.gradcheck(total, (scores, boxes))


@pytest.mark.parametrize("way", ["focal", "aligned"])
def test_what_weighs_a_score_is_taken_as_given(way: str) -> None:
    found, true = drawn(way, [2, 0, 4])
    expected = torch.zeros_like(found.scores)
    for one in judged(found, true, Pairs.of(found, true, way), way):
        expected[one.place] = 1.5 * one.weight * (one.p - one.target)
    found.scores.requires_grad_()
    (gradient,) = torch.autograd.grad(losses(found, true, way)["classes"], found.scores)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("way", WAYS)
def test_a_gpu_need_not_wait_for_the_cpu(way: str) -> None:
    """An update is captured whole; torch's own product asks on its way back whether one is zero."""
    found, true = drawn(way, [2, 1])
    matched = match(found, true, WEIGHTS, no_object=WAYS[way][0])
    learnt = found._replace(
        scores=found.scores.requires_grad_(), boxes=found.boxes.requires_grad_()
    )
    with profile(activities=[ProfilerActivity.CPU]) as watched:
        parts = set_losses(
            learnt, true, matched, WEIGHTS, no_object=WAYS[way][0], aligned=WAYS[way][1]
        )
        torch.stack(list(parts.values())).sum().backward()
    asked = {event.key for event in watched.key_averages()}
    assert "aten::maximum" in asked
    assert not asked & {"aten::item", "aten::nonzero"}
