"""COCO's figures against a slow and plain reckoning of them, and the laws they keep."""

import contextlib
import io
import json
import logging
import math
from statistics import fmean
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from saccade.data.objects import ObjectRows
from saccade.errors import ConfigError
from saccade.metrics import detection
from saccade.metrics.detection import DetectionScores, FoundObjects, detection_scores
from tests.metrics.boxes import (
    CLASSES,
    Numbers,
    Scene,
    found_of,
    objects_of,
    overlap_of,
    random_scene,
    rows_of,
    scenes,
)

OVERLAPS = [0.5 + 0.05 * n for n in range(10)]
EVERYTHING = (0.0, math.inf)
AREAS = {"small": (0.0, 32.0**2), "medium": (32.0**2, 96.0**2), "large": (96.0**2, math.inf)}
FIGURES = ("ap", "ap50", "ap75", "ap_small", "ap_medium", "ap_large", "ar1", "ar10", "ar100")
seeds = st.integers(0, 999)
a_cat = objects_of([([0.0, 0.0, 0.5, 0.5], 0, False)])
Area = tuple[float, float]


def measured(scene: Scene) -> DetectionScores:
    return detection_scores(*scene, CLASSES)


def in_pixels(box: Numbers, size: Numbers) -> Numbers:
    return [side * of for side, of in zip(box, [size[1], size[0]] * 2)]


def area(box: Numbers) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def judged(
    found: list[tuple[Numbers, float]],
    true: list[tuple[Numbers, bool]],
    least: float,
    within: Area,
) -> list[tuple[float, bool]]:
    """The score of each box of an image that counts, surest first, and whether it is right."""
    free, verdicts = [True] * len(true), list[tuple[float, bool]]()
    for box, score in sorted(found, key=lambda one: -one[1]):
        best: int | None = None
        for skipped in (False, True):  # those that count come first
            reached = least
            for at, (other, crowd) in enumerate(true):
                ignored = crowd or not within[0] <= area(other) <= within[1]
                if ignored != skipped or not (free[at] or crowd):
                    continue
                overlap = overlap_of(box, other, crowd=crowd)
                if overlap >= reached:
                    best, reached = at, overlap
            if best is not None:
                free[best] = False
                break
        if best is None and within[0] <= area(box) <= within[1]:
            verdicts.append((score, False))
        elif best is not None and not skipped:
            verdicts.append((score, True))
    return verdicts


def by_hand(
    scene: Scene, label: int, least: float, within: Area = EVERYTHING, limit: int = 100
) -> tuple[list[float], float] | None:
    """Precision at 101 recalls, and the highest recall, of one class at one overlap."""
    verdicts, there = list[tuple[float, bool]](), 0
    for found, truth, size in zip(*scene[:2], scene.sizes.tolist()):
        boxes = [(in_pixels(b, size), s) for b, kind, s in rows_of(found) if kind == label]
        boxes = sorted(boxes, key=lambda one: -one[1])[:limit]
        true = [(in_pixels(b, size), bool(c)) for b, kind, c in rows_of(truth) if kind == label]
        there += sum(not crowd and within[0] <= area(box) <= within[1] for box, crowd in true)
        verdicts += judged(boxes, true, least, within)
    if not there:
        return None
    verdicts.sort(key=lambda one: -one[0])
    rights = [sum(right for _, right in verdicts[: n + 1]) for n in range(len(verdicts))]
    reached = [(right / there, right / (n + 1)) for n, right in enumerate(rights)]
    curve = [
        max((precision for recall, precision in reached if recall >= n / 100 - 1e-12), default=0.0)
        for n in range(101)
    ]
    return curve, rights[-1] / there if rights else 0.0


def mean_ap(scene: Scene, overlaps: list[float], within: Area = EVERYTHING) -> float | None:
    curves = [by_hand(scene, label, x, within) for x in overlaps for label in range(len(CLASSES))]
    return fmean(fmean(one[0]) for one in curves if one) if any(curves) else None


def mean_ar(scene: Scene, limit: int) -> float:
    ends = [by_hand(scene, c, x, limit=limit) for x in OVERLAPS for c in range(len(CLASSES))]
    return fmean(one[1] for one in ends if one)


def agrees(scene: Scene) -> None:
    scores = measured(scene)
    expected = {
        "ap": mean_ap(scene, OVERLAPS),
        "ap50": mean_ap(scene, [0.5]),
        "ap75": mean_ap(scene, [0.75]),
        **{f"ap_{name}": mean_ap(scene, OVERLAPS, area) for name, area in AREAS.items()},
        **{f"ar{limit}": mean_ar(scene, limit) for limit in (1, 10, 100)},
    }
    assert {name: vars(scores)[name] for name in FIGURES} == pytest.approx(expected, abs=1e-6)


@pytest.mark.slow
@given(scenes())
def test_figures_are_those_of_a_plain_reckoning(scene: Scene) -> None:
    agrees(scene)


@pytest.mark.slow
@given(seeds)
def test_figures_are_those_of_a_plain_reckoning_where_much_is_right(seed: int) -> None:
    agrees(random_scene(seed))


@pytest.mark.slow
@given(scenes())
def test_figures_and_curves_of_each_class_are_those_of_a_plain_reckoning(scene: Scene) -> None:
    scores = measured(scene)
    for label, (name, one) in enumerate(scores.by_class.items()):
        curves = [by_hand(scene, label, overlap) for overlap in OVERLAPS]
        if curves[0] is None:
            assert (name, *one) == (CLASSES[label], None, None, 0)
            assert scores.curves.by_class[:, label].isnan().all()
            continue
        means = [fmean(curve[0]) for curve in curves if curve]
        assert (one.ap, one.ap50) == pytest.approx((fmean(means), means[0]), abs=1e-6)
        for drawn, at in zip(scores.curves.by_class[:, label], (0, 5)):
            assert drawn.tolist() == pytest.approx((curves[at] or ([], 0.0))[0], abs=1e-6)
    assert scores.curves.mean.mean(dim=1).tolist() == pytest.approx([scores.ap50, scores.ap75])
    assert scores.curves.recall.tolist() == pytest.approx([n / 100 for n in range(101)])


@given(seeds)
def test_neither_the_order_of_images_nor_that_of_objects_matters(seed: int) -> None:
    scene, rng = random_scene(seed), torch.Generator().manual_seed(seed)

    def shuffled(one: Any) -> Any:
        order = torch.randperm(len(one.labels), generator=rng)
        return type(one)(*(part[order] for part in one))

    images = torch.randperm(len(scene.truth), generator=rng).tolist()
    other = Scene(
        [shuffled(scene.found[at]) for at in images],
        [shuffled(scene.truth[at]) for at in images],
        scene.sizes[images],
    )
    assert measured(other).as_dict() == measured(scene).as_dict()


@given(scenes())
def test_who_finds_all_just_so_gets_one(scene: Scene) -> None:
    found = [
        FoundObjects(one.boxes, one.labels, torch.linspace(0.5, 1, len(one.labels)))
        for one in (truth.learnt_from() for truth in scene.truth)
    ]
    scores = measured(scene._replace(found=found))
    assert {vars(scores)[name] for name in FIGURES if "ar1" not in name} <= {1.0, None}
    assert scores.ar100 == 1.0
    assert (scores.curves.mean == 1).all()


@given(scenes())
def test_who_finds_nothing_gets_zero(scene: Scene) -> None:
    scores = measured(scene._replace(found=[found_of([]) for _ in scene.truth]))
    assert {vars(scores)[name] for name in FIGURES} <= {0.0, None}
    assert (scores.curves.mean == 0).all()


def test_a_class_without_objects_does_not_count() -> None:
    found = found_of([([0.0, 0.0, 0.5, 0.5], 0, 0.9), ([0.5, 0.5, 1.0, 1.0], 1, 0.8)])
    scores = detection_scores([found], [a_cat], torch.tensor([[64, 64]]), CLASSES)
    assert scores.ap == 1.0
    assert scores.by_class["dog"] == (None, None, 0)


def test_what_is_found_in_an_image_without_objects_counts_against_us() -> None:
    right = found_of([([0.0, 0.0, 0.5, 0.5], 0, 0.5)])
    wrong, nothing = found_of([([0.0, 0.0, 0.5, 0.5], 0, 0.9)]), objects_of([])
    sizes = torch.tensor([[64, 64], [64, 64]])
    assert detection_scores([right, wrong], [a_cat, nothing], sizes, CLASSES).ap == 0.5
    assert detection_scores([right, found_of([])], [a_cat, nothing], sizes, CLASSES).ap == 1.0


def test_objects_are_counted_without_those_that_are_ignored() -> None:
    crowd = objects_of([([0.0, 0.0, 0.5, 0.5], 0, False), ([0.0, 0.0, 1.0, 1.0], 1, True)])
    scores = detection_scores([found_of([])], [crowd], torch.tensor([[50, 50]]), CLASSES)
    assert (scores.images, scores.objects) == (1, 1)
    assert [one.objects for one in scores.by_class.values()] == [1, 0, 0]


def test_sizes_are_those_of_pixels() -> None:
    scores = [
        detection_scores([found_of([])], [a_cat], torch.tensor([[side, side]]), CLASSES)
        for side in (62, 66, 190, 194)
    ]
    assert [s.ap_small for s in scores] == [0.0, None, None, None]
    assert [s.ap_medium for s in scores] == [None, 0.0, 0.0, None]
    assert [s.ap_large for s in scores] == [None, None, None, 0.0]


@given(seeds)
def test_what_has_no_place_or_no_score_was_not_found(seed: int) -> None:
    scene = random_scene(seed)
    lost = found_of([([math.nan, 0.0, 1.0, 1.0], 0, 0.9), ([0.0, 0.0, 1.0, 1.0], 1, math.nan)])
    more = [FoundObjects(*map(torch.cat, zip(one, lost))) for one in scene.found]
    assert measured(scene._replace(found=more)).as_dict() == measured(scene).as_dict()


@given(scenes())
def test_all_of_it_is_plain_json(scene: Scene) -> None:
    scores = measured(scene)
    plain = scores.as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert {name: plain[name] for name in FIGURES} == {name: vars(scores)[name] for name in FIGURES}
    drawn = plain["precision_recall"]["0.75"]
    assert set(drawn["by_class"]) == {n for n, one in scores.by_class.items() if one.objects}
    assert fmean(drawn["mean"]) == pytest.approx(scores.ap75, abs=1e-6)


def test_the_library_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    said = io.StringIO()
    with (
        caplog.at_level(logging.DEBUG),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(said),
    ):
        measured(random_scene(0))
    assert (said.getvalue(), caplog.text) == ("", "")


def test_findings_must_be_as_many_as_images() -> None:
    scene = random_scene(0)
    with pytest.raises(
        ConfigError, match=r"5 findings and 6 sizes for 6 images: .* and at least one$"
    ):
        measured(scene._replace(found=scene.found[1:]))
    with pytest.raises(ConfigError, match="0 findings and 0 sizes for 0 images"):
        detection_scores([], [], torch.zeros(0, 2, dtype=torch.long), CLASSES)


def test_without_any_object_there_is_nothing_to_measure() -> None:
    crowd = objects_of([([0.0, 0.0, 0.5, 0.5], 0, True)])
    with pytest.raises(ConfigError, match=r"^no object in 1 images, .*: measure on images that"):
        detection_scores([found_of([])], [crowd], torch.tensor([[50, 50]]), CLASSES)
    packed = ObjectRows.of([(), ()], CLASSES)
    with pytest.raises(ConfigError, match=r"^no object in 2 images, .*: measure on images that"):
        detection_scores([found_of([])] * 2, packed, torch.tensor([[50, 50]] * 2), CLASSES)


def test_a_missing_library_is_named_with_its_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(detection, "import_module", missing)
    with pytest.raises(
        ConfigError,
        match=r"^average precision needs faster-coco-eval, which is not installed: "
        r'pip install "saccade\[detect\]"$',
    ):
        measured(random_scene(0))
