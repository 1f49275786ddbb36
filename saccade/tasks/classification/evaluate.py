"""Scoring a classifier on images that it was not trained on."""

import time
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from saccade.data.shapes import mask
from saccade.errors import ConfigError
from saccade.metrics.classification import (
    average_precision,
    by_class,
    calibration_error,
    confusion,
)
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.tasks.base import Progress, silent
from saccade.tasks.classification.classifier import THERE, ImageClassifier
from saccade.tasks.classification.data import ClassificationSettings, Labelled, read_split
from saccade.tasks.classification.maps import MapKind, class_maps, map_kinds, pointing
from saccade.tasks.classification.task import class_scores, held_out_figures

CONFUSIONS = 10  # pairs of classes that are told of
POINTED = 50  # images whose maps are made together


def evaluate_classifier(
    tool: ImageClassifier,
    *,
    split: str | None,
    settings: ClassificationSettings,
    reading: Progress = silent,
    progress: Progress = silent,
    points: Progress | None = None,
) -> dict[str, Any]:
    """Figures of a split, as plain values; whoever wants to know how maps point gives `points`."""
    read = read_split(settings, split, reading, tool.classes)
    begun = time.perf_counter()
    with torch.inference_mode():
        scores = class_scores(tool.model, tool.vary, read, tool.device, progress)
    seconds = time.perf_counter() - begun
    found: dict[str, Any] = {
        "split": split or "all",
        "images": len(read),
        "classes": len(tool.classes.names),
        "seconds": seconds,
        **held_out_figures(scores, read.labels),
    }
    found |= (_of_several if tool.classes.several else _of_one)(tool, scores, read)
    return found if points is None else {**found, "pointing": map_pointing(tool, read, points)}


def map_pointing(
    tool: ImageClassifier, read: Labelled, progress: Progress = silent
) -> dict[str, dict[str, float]]:
    """How often each kind of map of the true class points at the object that decides it.

    Only where that is known: in scenes of shapes, where it is the largest.
    """
    if not read.scenes:
        raise ConfigError(
            "where on your images a class lies is not known, so nothing says whether maps point "
            "there; leave --pointing out"
        )
    model = tool.model
    assert isinstance(model, ImageEncoder)
    kinds: list[MapKind] = [kind for kind in map_kinds(model) if kind != "attention"]
    sums: dict[str, dict[str, float]] = {}
    for rows in torch.arange(len(read)).split(POINTED):
        scenes = [read.scenes[row] for row in rows.tolist()]
        inside = torch.from_numpy(
            np.stack(
                [mask(one, one.objects.index(one.main), tool.settings.image) for one in scenes]
            )
        )
        images = tool.shown(read.images[rows])
        found = class_maps(model, images, read.labels[rows].to(tool.device), kinds=kinds)
        for kind, drawn in found.maps.items():
            sums.setdefault(kind, {})
            for name, share in vars(pointing(drawn, inside)).items():
                sums[kind][name] = sums[kind].get(name, 0.0) + share * len(rows)
        progress(int(rows[-1]) + 1, len(read))
    return {k: {n: total / len(read) for n, total in one.items()} for k, one in sums.items()}


def _of_one(tool: ImageClassifier, scores: Tensor, read: Labelled) -> dict[str, Any]:
    counts = confusion(scores.argmax(dim=1), read.labels, scores.shape[1])
    probabilities = tool.as_probabilities(scores.double())
    precision, recall, images = (column.tolist() for column in by_class(counts))
    names = tool.classes.names
    return {
        "calibration_error": calibration_error(probabilities, read.labels),
        "by_class": {
            name: {"precision": p, "recall": r, "images": n}
            for name, p, r, n in zip(names, precision, recall, images)
        },
        "confused": _most_confused(counts, names),
        "confusion": counts.tolist(),
    }


def _most_confused(counts: Int[Tensor, "C C"], names: tuple[str, ...]) -> list[dict[str, Any]]:
    """The pairs of classes that are taken for one another most often."""
    wrong = counts - torch.diag(counts.diagonal())
    order = wrong.flatten().argsort(descending=True, stable=True)[:CONFUSIONS]
    pairs = [divmod(place, len(names)) for place in order.tolist() if wrong.flatten()[place]]
    return [
        {"label": names[true], "taken_for": names[said], "images": int(wrong[true, said])}
        for true, said in pairs
    ]


def _of_several(tool: ImageClassifier, scores: Tensor, read: Labelled) -> dict[str, Any]:
    there, said = read.labels.bool(), tool.as_probabilities(scores) >= THERE
    right = (said & there).sum(dim=0).double()
    columns = (
        average_precision(scores, there),
        right / said.sum(dim=0),
        right / there.sum(dim=0),
        there.sum(dim=0),
    )
    rows = zip(tool.classes.names, *(column.tolist() for column in columns))
    return {
        "by_class": {
            name: {"average_precision": a, "precision": p, "recall": r, "images": n}
            for name, a, p, r, n in rows
        }
    }
