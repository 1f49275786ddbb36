"""Classes by how probable they are: the best guesses, what is said, and how each class fares."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.metrics.classification import average_precision, by_class, calibration_error, confusion

THERE = 0.5  # probability from which on one of several classes is said to be there
CONFUSIONS = 10  # pairs of classes that are told of


class Guess(NamedTuple):
    """A class and its probability."""

    label: str
    probability: float


def probabilities(scores: Float[Tensor, "B C"], *, several: bool) -> Float[Tensor, "B C"]:
    """Of each class; of several each is a matter of its own."""
    return scores.sigmoid() if several else scores.softmax(dim=1)


def best_guesses(names: tuple[str, ...], chances: Float[Tensor, " C"], most: int) -> list[Guess]:
    """The best classes, the likeliest first."""
    found = chances.topk(min(most, len(names)))
    return [
        Guess(names[number], probability)
        for probability, number in zip(found.values.tolist(), found.indices.tolist())
    ]


def said_classes(
    names: tuple[str, ...], chances: Float[Tensor, " C"], *, several: bool
) -> list[str]:
    """The class, or all those of several that are likely there."""
    if not several:
        return [names[int(chances.argmax())]]
    return [names[number] for number in (chances >= THERE).nonzero()[:, 0].tolist()]


def one_class_report(
    names: tuple[str, ...], scores: Float[Tensor, "R C"], labels: Int[Tensor, " R"], *, unit: str
) -> dict[str, Any]:
    """Where each has one class; `unit` is what is counted."""
    counts = confusion(scores.argmax(dim=1), labels, scores.shape[1])
    precision, recall, there = (column.tolist() for column in by_class(counts))
    return {
        "calibration_error": calibration_error(scores.double().softmax(dim=1), labels),
        "by_class": {
            name: {"precision": p, "recall": r, unit: n}
            for name, p, r, n in zip(names, precision, recall, there)
        },
        "confused": _most_confused(counts, names, unit),
        "confusion": counts.tolist(),
    }


def _most_confused(
    counts: Int[Tensor, "C C"], names: tuple[str, ...], unit: str
) -> list[dict[str, Any]]:
    """The pairs of classes that are taken for one another most often."""
    wrong = counts - torch.diag(counts.diagonal())
    order = wrong.flatten().argsort(descending=True, stable=True)[:CONFUSIONS]
    pairs = [divmod(place, len(names)) for place in order.tolist() if wrong.flatten()[place]]
    return [
        {"label": names[true], "taken_for": names[said], unit: int(wrong[true, said])}
        for true, said in pairs
    ]


def several_classes_report(
    names: tuple[str, ...], scores: Float[Tensor, "R C"], there: Bool[Tensor, "R C"], *, unit: str
) -> dict[str, Any]:
    """Where each may have several, or none."""
    said = scores.sigmoid() >= THERE
    right = (said & there).sum(dim=0).double()
    columns = (
        average_precision(scores, there),
        right / said.sum(dim=0),
        right / there.sum(dim=0),
        there.sum(dim=0),
    )
    rows = zip(names, *(column.tolist() for column in columns))
    return {
        "by_class": {
            name: {"average_precision": a, "precision": p, "recall": r, unit: n}
            for name, a, p, r, n in rows
        }
    }
