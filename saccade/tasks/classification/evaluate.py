"""Scoring a classifier on images that it was not trained on."""

import time
from typing import Any

import numpy as np
import torch

from saccade.data.shapes import mask
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder
from saccade.tasks.base import Progress, silent
from saccade.tasks.classification.classifier import ImageClassifier
from saccade.tasks.classification.data import ClassificationSettings, Labelled, read_split
from saccade.tasks.classification.maps import MapKind, class_maps, map_kinds, pointing
from saccade.tasks.classification.task import class_scores, held_out_figures
from saccade.tasks.guesses import one_class_report, several_classes_report

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
    return classifier_figures(tool, read, split, progress=progress, points=points)


def classifier_figures(
    tool: ImageClassifier,
    read: Labelled,
    split: str | None,
    *,
    progress: Progress = silent,
    points: Progress | None = None,
) -> dict[str, Any]:
    """The same of images that were read."""
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
    report = several_classes_report if tool.classes.several else one_class_report
    found |= report(tool.classes.names, scores, read.labels, unit="images")
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
