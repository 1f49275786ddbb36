"""Scoring a detector on images that it was not trained on."""

import time
from typing import Any

from saccade.metrics.box_matching import best_threshold, box_confusion
from saccade.metrics.detection import detection_scores
from saccade.tasks.base import Progress, silent
from saccade.tasks.detection.data import DetectionSettings, read_split
from saccade.tasks.detection.detector import ObjectDetector
from saccade.tasks.detection.task import find_all


def evaluate_detector(
    tool: ObjectDetector,
    *,
    split: str | None,
    settings: DetectionSettings,
    reading: Progress = silent,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Figures of a split, as plain values; classes are confused at the best threshold there."""
    read = read_split(settings, split, reading, tool.classes)
    begun = time.perf_counter()
    found = list(find_all(tool.model, tool.vary, read, tool.device, progress))
    seconds = time.perf_counter() - begun
    scores = detection_scores(found, read.objects, read.sizes, tool.classes)
    count = len(tool.classes)
    point = best_threshold(found, read.objects, count)
    confusion = box_confusion(found, read.objects, count, threshold=point.threshold)
    return {
        "split": split or "all",
        "seconds": seconds,
        **scores.as_dict(),
        **point._asdict(),
        "confusion": confusion.tolist(),
    }
