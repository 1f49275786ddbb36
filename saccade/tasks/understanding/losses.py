"""How far scores are from what is true, for each kind of label."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from saccade.data.readers.labelled_texts.rows import LabelKind


def _class_loss(scores: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return F.cross_entropy(scores, targets, reduction="none", label_smoothing=smoothing)


def _number_loss(scores: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    return (scores[:, 0] - targets).square()


def _labels_loss(scores: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    there = targets.to(scores) * (1 - smoothing) + smoothing / 2
    each = F.binary_cross_entropy_with_logits(scores, there, reduction="none")
    return each.mean(dim=1)


LOSSES: dict[LabelKind, Callable[[Tensor, Tensor, float], Tensor]] = {
    "classes": _class_loss,
    "tags": _class_loss,
    "number": _number_loss,
    "labels": _labels_loss,
}
