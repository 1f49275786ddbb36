"""Figures of classification against their definitions, worked out slowly."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saccade.metrics.classification import (
    BINS,
    average_precision,
    by_class,
    calibration_error,
    confusion,
    top_share,
)

ROWS, CLASSES = 40, 5
SEEDS = st.integers(0, 1000)


def drawn(seed: int, *, coarse: bool = False) -> tuple[Tensor, Tensor]:
    """Scores and labels; coarse scores have ties."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(ROWS, CLASSES, generator=generator)
    scores = scores.round() if coarse else scores
    return scores, torch.randint(CLASSES, (ROWS,), generator=generator)


@given(SEEDS, st.integers(1, CLASSES))
def test_a_guess_is_right_if_the_class_is_among_the_best(seed: int, guesses: int) -> None:
    scores, labels = drawn(seed)
    right = [
        label in sorted(range(CLASSES), key=lambda c: -row[c])[:guesses]
        for row, label in zip(scores.tolist(), labels.tolist())
    ]
    assert top_share(scores, labels, guesses) == pytest.approx(sum(right) / ROWS)


def test_who_scores_all_alike_knows_nothing() -> None:
    assert top_share(torch.zeros(3, 4), torch.tensor([0, 1, 2]), 1) == 0.0


@given(SEEDS)
def test_confusion_counts_every_image_once(seed: int) -> None:
    scores, labels = drawn(seed)
    predicted = scores.argmax(dim=1)
    counts = confusion(predicted, labels, CLASSES)
    pairs = list(zip(labels.tolist(), predicted.tolist()))
    assert counts.tolist() == [
        [pairs.count((t, p)) for p in range(CLASSES)] for t in range(CLASSES)
    ]
    figures = by_class(counts)
    for number in range(CLASSES):
        taken = [true for true, guess in pairs if guess == number]
        were = [guess for true, guess in pairs if true == number]
        expected = (
            taken.count(number) / len(taken) if taken else math.nan,
            were.count(number) / len(were) if were else math.nan,
        )
        found = figures.precision[number].item(), figures.recall[number].item()
        assert found == pytest.approx(expected, nan_ok=True)


@given(SEEDS)
def test_calibration_is_the_gap_of_each_bin_by_its_images(seed: int) -> None:
    scores, labels = drawn(seed)
    chances = scores.softmax(dim=1)
    total = 0.0
    for low in range(BINS):
        inside = [
            (row.max().item(), row.argmax().item() == label)
            for row, label in zip(chances.double(), labels.tolist())
            if low / BINS < row.max().item() <= (low + 1) / BINS
        ]
        total += abs(sum(right - sure for sure, right in inside))
    assert calibration_error(chances, labels) == pytest.approx(total / ROWS)


def test_who_is_always_right_and_always_sure_is_calibrated() -> None:
    assert calibration_error(torch.eye(3), torch.arange(3)) == 0.0
    assert calibration_error(torch.eye(3), torch.tensor([1, 2, 0])) == 1.0


@given(SEEDS, st.booleans())
def test_average_precision_is_the_area_over_all_thresholds(seed: int, coarse: bool) -> None:
    scores, _ = drawn(seed, coarse=coarse)
    there = torch.rand(ROWS, CLASSES, generator=torch.Generator().manual_seed(seed + 1)) < 0.2
    found = average_precision(scores, there)
    for number in range(CLASSES):
        pairs = list(zip(scores[:, number].tolist(), there[:, number].tolist()))
        total, before, area = sum(true for _, true in pairs), 0.0, 0.0
        for threshold in sorted({score for score, _ in pairs}, reverse=True):
            above = [true for score, true in pairs if score >= threshold]
            recall = sum(above) / total if total else math.nan
            area += (recall - before) * sum(above) / len(above)
            before = recall
        assert found[number].item() == pytest.approx(area, nan_ok=True)
