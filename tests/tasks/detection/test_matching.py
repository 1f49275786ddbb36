"""The assignment of least cost is that of trying all, and costs are what the formulas say."""

import math
from itertools import combinations, permutations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.errors import ConfigError
from saccade.tasks.detection import matching
from saccade.tasks.detection.matching import TrueObjects, Weights, assigned, costs, match
from tests.tasks.detection.sets import detections, objects, permuted

seed = st.integers(0, 999)


def least(cost: Tensor) -> float:
    """Of all ways to give as many objects as possible a query of their own, the cheapest."""
    rows, columns = cost.shape
    table = cost.tolist()
    if rows <= columns:
        ways = permutations(range(columns), rows)
        return min(sum(table[row][column] for row, column in enumerate(way)) for way in ways)
    return min(
        sum(table[row][column] for column, row in enumerate(way))
        for some in combinations(range(rows), columns)
        for way in permutations(some)
    )


@given(count=st.integers(0, 5), room=st.integers(1, 5), queries=st.integers(1, 5), seed=seed)
def test_no_other_assignment_costs_less(count: int, room: int, queries: int, seed: int) -> None:
    draws = torch.Generator().manual_seed(seed)
    cost = torch.randn(2, room, queries, generator=draws)
    there = torch.rand(2, room, generator=draws).argsort(dim=1) < min(count, room)  # with gaps
    found = assigned(cost, there)
    assert found.shape == there.shape
    assert found[~there].eq(-1).all()
    for matrix, chosen, real in zip(cost, found, there):
        pairs = [(row, int(query)) for row, query in enumerate(chosen) if query >= 0]
        assert len(pairs) == min(int(real.sum()), queries)
        assert len({query for _, query in pairs}) == len(pairs)
        total = sum(matrix[row, query].item() for row, query in pairs)
        expected = least(matrix[real]) if real.any() else 0.0
        assert total == pytest.approx(expected, abs=1e-5)


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def generalised(a: list[float], b: list[float]) -> float:
    """Of boxes by their centres, written out."""
    (ax, ay, aw, ah), (bx, by, bw, bh) = a, b
    edges = [(x - w / 2, x + w / 2) for x, w in ((ax, aw), (bx, bw), (ay, ah), (by, bh))]
    (al, ar), (bl, br), (at, ab), (bt, bb) = edges
    common = max(0.0, min(ar, br) - max(al, bl)) * max(0.0, min(ab, bb) - max(at, bt))
    union = aw * ah + bw * bh - common
    around = (max(ar, br) - min(al, bl)) * (max(ab, bb) - min(at, bt))
    return common / union - (around - union) / around


@given(seed=seed, no_object=st.booleans())
def test_costs_are_those_of_the_formulas(seed: int, no_object: bool) -> None:
    weights = Weights(classes=1.5, box=4.0, overlap=3.0)
    found, true = detections(2, 2, 3, 4, seed), objects([2, 1], 2, 3, seed)
    cost = costs(found, true, weights, no_object=no_object)
    for place in range(2):
        for image in range(2):
            for number in range(2):
                for query in range(3):
                    z = found.scores[place, image, query].tolist()
                    label = int(true.labels[image, number])
                    p = sigmoid(z[label])
                    unlikely = 0.25 * (1 - p) ** 2 * -math.log(p)
                    unlikely -= 0.75 * p**2 * -math.log(1 - p)
                    if no_object:
                        unlikely = -math.exp(z[label]) / sum(map(math.exp, z))
                    box = found.boxes[place, image, query].tolist()
                    target = true.boxes[image, number].tolist()
                    apart = sum(abs(a - b) for a, b in zip(box, target))
                    expected = 1.5 * unlikely + 4 * apart - 3 * generalised(box, target)
                    assert cost[place, image, number, query].item() == pytest.approx(
                        expected, abs=1e-4
                    )


@given(seed=seed, no_object=st.booleans())
def test_objects_in_another_order_have_the_same_queries(seed: int, no_object: bool) -> None:
    found, true = detections(2, 3, 5, 4, seed), objects([3, 0, 4], 4, 3, seed)
    other = permuted(true, seed)
    pairs = [
        pairs_of(match(found, one, Weights(), no_object=no_object), one) for one in (true, other)
    ]
    assert pairs[0] == pairs[1]


def pairs_of(matched: Tensor, true: TrueObjects) -> list[set[tuple[int, tuple[float, ...]]]]:
    """For every image of every pass, which query has which box."""
    return [
        {(int(query), tuple(box)) for query, box in zip(queries, boxes.tolist()) if query >= 0}
        for one in matched
        for queries, boxes in zip(one, true.boxes)
    ]


def test_passes_are_matched_each_by_itself() -> None:
    found, true = detections(4, 2, 6, 4), objects([3, 2], 3, 3)
    together = match(found, true, Weights(), no_object=True)
    for place in range(4):
        one = found._replace(scores=found.scores[place, None], boxes=found.boxes[place, None])
        assert torch.equal(match(one, true, Weights(), no_object=True)[0], together[place])


def test_what_is_no_number_is_matched_last_and_stops_nothing() -> None:
    found, true = detections(1, 1, 4, 4), objects([3], 3, 3)
    found.scores[0, 0, 1] = torch.nan
    matched = match(found, true, Weights(), no_object=True)
    assert sorted(matched.flatten().tolist()) == [0, 2, 3]
    found.boxes.fill_(torch.nan)
    assert sorted(set(match(found, true, Weights(), no_object=True).flatten().tolist()))


def test_nothing_is_matched_where_there_is_nothing() -> None:
    found, true = detections(2, 2, 3, 4), objects([0, 0], 2, 3)
    assert match(found, true, Weights(), no_object=False).eq(-1).all()


def test_a_weight_below_nought_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"box=-1\.0 must be 0 or more"):
        Weights(box=-1.0)


def test_without_scipy_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(matching, "import_module", missing)
    with pytest.raises(ConfigError, match=r"needs scipy .*: pip install 'saccade\[detect\]'"):
        assigned(torch.zeros(1, 1, 1), torch.ones(1, 1, dtype=torch.bool))
