"""Matched boxes against a search without haste, at every threshold anew."""

import math
from collections import Counter
from statistics import fmean

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.metrics.box_matching import OperatingPoint, best_threshold, box_confusion
from saccade.metrics.detection import FoundObjects
from tests.metrics.boxes import (
    CLASSES,
    Scene,
    found_of,
    objects_of,
    overlap_of,
    random_scene,
    rows_of,
    scenes,
)

NOTHING = len(CLASSES)
thresholds = st.integers(0, 21).map(lambda n: n / 20)
Cells = Counter[tuple[int, int]]


def cells_by_hand(scene: Scene, threshold: float, *, own_class: bool) -> Cells:
    """What each object was said to be; with `own_class` boxes take only objects of theirs."""
    cells: Cells = Counter()
    for found, truth in zip(scene.found, scene.truth):
        left = [(box, label) for box, label, ignored in rows_of(truth) if not ignored]
        crowds = [(box, label) for box, label, ignored in rows_of(truth) if ignored]
        sure = [one for one in rows_of(found) if one[2] >= threshold]
        for box, said, _ in sorted(sure, key=lambda one: -one[2]):
            near = [
                (overlap_of(box, other), label == said, -at)
                for at, (other, label) in enumerate(left)
                if overlap_of(box, other) >= 0.5 and (label == said or not own_class)
            ]
            if near:
                cells[left.pop(-max(near)[2])[1], said] += 1
            elif not any(
                overlap_of(box, other, crowd=True) >= 0.5
                for other, label in crowds
                if label == said
            ):
                cells[NOTHING, said] += 1
        cells.update((label, NOTHING) for _, label in left)
    return cells


def f1_by_hand(scene: Scene, threshold: float) -> float:
    cells = cells_by_hand(scene, threshold, own_class=True)
    each: list[float] = []
    for label in range(len(CLASSES)):
        right, missed, wrong = cells[label, label], cells[label, NOTHING], cells[NOTHING, label]
        if right + missed:
            each.append(2 * right / (2 * right + missed + wrong))
    return fmean(each)


def as_cells(counts: torch.Tensor) -> Cells:
    found = {(int(row), int(column)): int(counts[row, column]) for row, column in counts.nonzero()}
    return Counter(found)


@given(scenes(), thresholds)
def test_confusion_is_what_a_plain_search_counts(scene: Scene, threshold: float) -> None:
    threshold = torch.tensor(threshold).item()  # as scores are rounded
    counts = box_confusion(scene.found, scene.truth, len(CLASSES), threshold=threshold)
    assert as_cells(counts) == cells_by_hand(scene, threshold, own_class=False)


@pytest.mark.slow
@given(st.integers(0, 999), st.floats(0, 1))
def test_confusion_is_what_a_plain_search_counts_where_much_is_right(
    seed: int, threshold: float
) -> None:
    scene = random_scene(seed)
    counts = box_confusion(scene.found, scene.truth, len(CLASSES), threshold=threshold)
    assert as_cells(counts) == cells_by_hand(scene, threshold, own_class=False)


@given(scenes(), thresholds)
def test_each_object_is_in_its_row_once(scene: Scene, threshold: float) -> None:
    counts = box_confusion(scene.found, scene.truth, len(CLASSES), threshold=threshold)
    there = torch.cat([one.learnt_from().labels for one in scene.truth])
    assert counts[:-1].sum(dim=1).equal(there.bincount(minlength=len(CLASSES)))
    assert counts[-1, -1] == 0


def check_best(scene: Scene) -> None:
    threshold, f1 = best_threshold(scene.found, scene.truth, len(CLASSES))
    tried = [f1_by_hand(scene, s) for one in scene.found for s in {*one.scores.tolist(), 2.0}]
    assert f1 == pytest.approx(max(tried, default=0.0))
    assert f1_by_hand(scene, threshold) == pytest.approx(f1)


@given(scenes())
def test_no_threshold_has_a_better_f1(scene: Scene) -> None:
    check_best(scene)


@given(st.integers(0, 999))
def test_no_threshold_has_a_better_f1_where_much_is_right(seed: int) -> None:
    check_best(random_scene(seed))


def test_the_best_threshold_lies_between_what_is_right_and_what_is_wrong() -> None:
    box = [0.0, 0.0, 0.5, 0.5]
    found = found_of([(box, 0, 0.75), ([0.5, 0.5, 1.0, 1.0], 0, 0.25)])
    truth = objects_of([(box, 0, False)])
    assert best_threshold([found], [truth], 1) == OperatingPoint(0.5, 1.0)
    assert best_threshold([_first(found)], [truth], 1) == OperatingPoint(0.375, 1.0)


def _first(found: FoundObjects) -> FoundObjects:
    return FoundObjects(*(part[:1] for part in found))


def test_where_nothing_is_right_the_threshold_is_a_half() -> None:
    truth = objects_of([([0.0, 0.0, 0.5, 0.5], 0, False)])
    wrong = found_of([([0.5, 0.5, 1.0, 1.0], 0, 0.9)])
    for found in (found_of([]), wrong):
        assert best_threshold([found], [truth], 1) == OperatingPoint(0.5, 0.0)
    assert best_threshold([wrong], [objects_of([])], 1) == OperatingPoint(0.5, 0.0)


def test_an_object_that_two_classes_claim_is_the_surer_one() -> None:
    box = [0.0, 0.0, 0.5, 0.5]
    found = found_of([(box, 0, 0.6), (box, 1, 0.8)])
    counts = box_confusion([found], [objects_of([(box, 0, False)])], 2, threshold=0.5)
    assert as_cells(counts) == Counter({(0, 1): 1, (2, 0): 1})


def test_of_objects_in_one_place_a_box_takes_that_of_its_class() -> None:
    box = [0.0, 0.0, 0.5, 0.5]
    truth = objects_of([(box, 0, False), (box, 1, False)])
    counts = box_confusion([found_of([(box, 1, 0.8)])], [truth], 2, threshold=0.5)
    assert as_cells(counts) == Counter({(1, 1): 1, (0, 2): 1})


def test_what_has_no_place_or_no_score_was_not_found() -> None:
    scene = random_scene(3)
    lost = found_of([([math.nan, 0.0, 1.0, 1.0], 0, 0.9), ([0.0, 0.0, 1.0, 1.0], 1, math.nan)])
    more = [FoundObjects(*map(torch.cat, zip(one, lost))) for one in scene.found]
    for count in (
        lambda f: box_confusion(f, scene.truth, 3, threshold=0.0).tolist(),
        lambda f: best_threshold(f, scene.truth, 3),
    ):
        assert count(more) == count(scene.found)
