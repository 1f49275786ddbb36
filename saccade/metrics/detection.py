"""How well objects are found: average precision and recall as COCO has them (Lin et al. 2014).

They are computed by faster-coco-eval, which comes with `saccade[detect]` and is imported when a
figure needs it. COCO's sizes are areas of masks; ours are those of boxes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data.objects import Objects
from saccade.errors import ConfigError

LIMITS = (1, 10, 100)  # so many found objects count, of each image and class, the surest first
CURVES = (0.5, 0.75)  # the overlaps (IoU) at which precision is kept over recall
AT_50, AT_75 = 0, 5  # their places among COCO's ten: 0.50, 0.55 … 0.95
ALL, SMALL, MEDIUM, LARGE = range(4)  # up to 32² pixels, up to 96², and above


class FoundObjects(NamedTuple):
    """What a detector found in one image; boxes are left, top, right, bottom, as shares."""

    boxes: Float[Tensor, "n 4"]
    labels: Int[Tensor, " n"]
    scores: Float[Tensor, " n"]

    def finite(self) -> "FoundObjects":
        """Those that have a place and a score: what has none was not found."""
        kept = self.boxes.isfinite().all(dim=1) & self.scores.isfinite()
        return FoundObjects(self.boxes[kept], self.labels[kept], self.scores[kept])


class ClassDetection(NamedTuple):
    """How well the objects of one class are found; None where there are none."""

    ap: float | None
    ap50: float | None
    objects: int


class PrecisionRecall(NamedTuple):
    """Precision at 101 recalls, at each overlap of `CURVES`; NaN for a class without objects.

        P(r) = max precision at any recall ≥ r

    The mean is over the classes that have objects.
    """

    recall: Float[Tensor, " points"]
    by_class: Float[Tensor, "overlaps C points"]
    mean: Float[Tensor, "overlaps points"]


@dataclass(frozen=True, kw_only=True)
class DetectionScores:
    """COCO's figures; `ap` is the mean over overlaps of 0.50, 0.55 … 0.95 and over classes.

    By size they are None where no object is so small or large. Neither ignored objects nor classes
    without objects count.
    """

    ap: float
    ap50: float
    ap75: float
    ap_small: float | None
    ap_medium: float | None
    ap_large: float | None
    ar1: float
    ar10: float
    ar100: float
    images: int
    objects: int
    by_class: dict[str, ClassDetection]
    curves: PrecisionRecall

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON: without NaN, and without the curves of classes of no objects."""
        plain = {name: value for name, value in vars(self).items() if name != "curves"}
        return {
            **plain,
            "by_class": {name: one._asdict() for name, one in self.by_class.items()},
            "precision_recall": {
                "recall": _rounded(self.curves.recall),
                **{f"{overlap:.2f}": self._curves_at(at) for at, overlap in enumerate(CURVES)},
            },
        }

    def _curves_at(self, at: int) -> dict[str, Any]:
        by_class = zip(self.by_class.items(), self.curves.by_class[at])
        return {
            "mean": _rounded(self.curves.mean[at]),
            "by_class": {name: _rounded(curve) for (name, one), curve in by_class if one.objects},
        }


def detection_scores(
    found: Sequence[FoundObjects],
    truth: Sequence[Objects],
    sizes: Int[Tensor, "images 2"],
    classes: Sequence[str],
) -> DetectionScores:
    """COCO's figures of what was found in some images; `sizes` are heights and widths in pixels.

    An ignored object is a crowd: what is found there of its class counts neither way.
    """
    if not truth or not len(found) == len(truth) == len(sizes):
        raise ConfigError(
            f"{len(found):,} findings and {len(sizes):,} sizes for {len(truth):,} images: there "
            "must be one for each, and at least one"
        )
    objects = torch.cat([one.learnt_from().labels for one in truth]).bincount(
        minlength=len(classes)
    )
    if not objects.any():
        raise ConfigError(
            f"no object in {len(truth):,} images, so nothing can be missed: measure on images "
            "that have some"
        )
    precision, recall = _evaluated([one.finite() for one in found], truth, sizes, classes)
    return _scores(precision, recall, objects, classes, images=len(truth))


def _scores(
    precision: Float[Tensor, "overlaps points C areas limits"],
    recall: Float[Tensor, "overlaps C areas limits"],
    objects: Int[Tensor, " C"],
    classes: Sequence[str],
    *,
    images: int,
) -> DetectionScores:
    best = precision[..., -1]  # of as many found objects as ever count
    whole = best[..., ALL]  # (overlaps, points, C)
    by_class = {
        name: ClassDetection(_mean(whole[:, :, at]), _mean(whole[AT_50, :, at]), int(objects[at]))
        for at, name in enumerate(classes)
    }
    curves = whole[[AT_50, AT_75]].mT  # (2, C, points)
    return DetectionScores(
        ap=_mean(whole) or 0.0,
        ap50=_mean(whole[AT_50]) or 0.0,
        ap75=_mean(whole[AT_75]) or 0.0,
        ap_small=_mean(best[..., SMALL]),
        ap_medium=_mean(best[..., MEDIUM]),
        ap_large=_mean(best[..., LARGE]),
        **{f"ar{n}": _mean(recall[..., ALL, at]) or 0.0 for at, n in enumerate(LIMITS)},
        images=images,
        objects=int(objects.sum()),
        by_class=by_class,
        curves=PrecisionRecall(
            torch.linspace(0, 1, curves.shape[-1], dtype=curves.dtype),
            curves,
            curves.nanmean(dim=1),
        ),
    )


def _evaluated(
    found: Sequence[FoundObjects],
    truth: Sequence[Objects],
    sizes: Int[Tensor, "images 2"],
    classes: Sequence[str],
) -> tuple[Tensor, Tensor]:
    """Precision and recall in all their dimensions; NaN where there are no objects."""
    coco = _library("faster_coco_eval")
    described = {
        "images": [{"id": number + 1} for number in range(len(truth))],
        "categories": [{"id": number + 1, "name": name} for number, name in enumerate(classes)],
    }
    crowds = torch.cat([one.ignored for one in truth]).int().tolist()
    scores = torch.cat([one.scores for one in found]).tolist()
    sides = (_rows(truth, sizes, iscrowd=crowds), _rows(found, sizes, score=scores))
    indexed = [coco.COCO(), coco.COCO()]
    for one, rows in zip(indexed, sides):
        one.print_function = _silent
        one.dataset = {**described, "annotations": rows}
        one.createIndex()
    evaluation = coco.COCOeval_faster(*indexed, iouType="bbox", print_function=_silent)
    assert evaluation.params.maxDets == list(LIMITS)
    evaluation.evaluate()
    evaluation.accumulate()
    figures = (torch.as_tensor(evaluation.eval[name]).double() for name in ("precision", "recall"))
    precision, recall = (values.masked_fill(values < 0, torch.nan) for values in figures)
    return precision, recall


def _rows(
    objects: Sequence[Objects] | Sequence[FoundObjects],
    sizes: Int[Tensor, "images 2"],
    **more: list[Any],
) -> list[dict[str, Any]]:
    """As COCO writes objects: boxes are left, top, width and height in pixels.

    Numbers start at 1: to the library, 0 is an object that was not found.
    """
    counts = torch.tensor([len(one.labels) for one in objects])
    images = torch.arange(len(objects)).repeat_interleave(counts)
    pixels = sizes.cpu().double().flip(1).repeat(1, 2)[images]  # width, height, width, height
    boxes = torch.cat([one.boxes for one in objects]).cpu().double() * pixels
    boxes[:, 2:] -= boxes[:, :2]
    columns = {
        "id": range(1, len(images) + 1),
        "image_id": (images + 1).tolist(),
        "category_id": (torch.cat([one.labels for one in objects]) + 1).tolist(),
        "bbox": boxes.numpy().tolist(),  # several times faster than torch's own
        "area": boxes[:, 2:].prod(dim=1).tolist(),
        **more,
    }
    return [dict(zip(columns, row)) for row in zip(*columns.values())]


def _mean(values: Tensor) -> float | None:
    """Over what is there, if anything is."""
    there = values[~values.isnan()]
    return there.mean().item() if there.numel() else None


def _rounded(values: Float[Tensor, " n"]) -> list[float]:
    return [round(value, 6) for value in values.tolist()]


def _silent(*_: object) -> None:
    """What the library says of its progress."""


def _library(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(
            "average precision needs faster-coco-eval, which is not installed: "
            'pip install "saccade[detect]"'
        ) from None
