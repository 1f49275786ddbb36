"""How well texts are understood: which figure decides, and all of them for some scores."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.data.glue import GlueTask, glue_task
from saccade.metrics.classification import average_precision
from saccade.metrics.understanding import LOWER_IS_BETTER, figures_of, measure_labels
from saccade.tasks.base import Deciding
from saccade.tasks.guesses import said_classes
from saccade.tasks.understanding.labels import Labels, as_tensor
from saccade.tasks.understanding.losses import LOSSES

PRECISION = Deciding("mAP", label="mean average precision", higher=True)
TITLES = {
    "accuracy": "accuracy",
    "f1": "F1",
    "span_f1": "F1 of spans",
    "matthews": "Matthews correlation",
    "pearson": "Pearson correlation",
    "spearman": "Spearman correlation",
    "mean_squared_error": "mean squared error",
    "mAP": PRECISION.label,
}


def deciding_of(labels: Labels) -> Deciding:
    """The leaderboard's figure of a task of GLUE; of others the usual one of its kind."""
    if labels.several:
        return PRECISION
    name = figures_of(labels.kind, task_of(labels))[0]
    return Deciding(name, label=TITLES[name], higher=name not in LOWER_IS_BETTER)


def task_of(labels: Labels) -> GlueTask | None:
    return glue_task(labels.task) if labels.task else None


def predicted_labels(labels: Labels, scores: Sequence[Float[Tensor, "... C"]]) -> list[Any]:
    """What is said of each text, as the data spell it."""
    return [_said(labels, one) for one in scores]


def _said(labels: Labels, scores: Float[Tensor, "... C"]) -> Any:
    if labels.kind == "number":
        return labels.as_number(float(scores[0]))
    if labels.kind == "tags":
        return said_tags(labels, scores)
    if labels.several:
        return tuple(said_classes(labels.spelt, scores.sigmoid(), several=True))
    return labels.spelt[int(scores.argmax())]


def said_tags(labels: Labels, scores: Float[Tensor, "words C"]) -> tuple[str, ...]:
    """A tag for each word; none of those that nothing was read of."""
    unread = scores.isnan().any(dim=1).tolist()
    best = scores.nan_to_num().argmax(dim=1).tolist() if len(scores) else []
    nothing = "O" if "O" in labels.names else ""
    return tuple(nothing if not_read else labels.names[one] for one, not_read in zip(best, unread))


def held_out_figures(
    labels: Labels, scores: Sequence[Float[Tensor, "... C"]], targets: list[Any]
) -> dict[str, float]:
    """Every figure, the one that decides first, and the loss."""
    truth = [_true(labels, one) for one in targets]
    predicted = predicted_labels(labels, scores)
    found = measure_labels(predicted, truth, labels.kind, task_of(labels))
    if labels.several:
        there = as_tensor("labels", targets)
        found = {
            "mAP": average_precision(torch.stack(list(scores)), there).nanmean().item(),
            **found,
        }
    return {**found, "loss": _mean_loss(labels, scores, targets)}


def _true(labels: Labels, target: Any) -> Any:
    """The inverse of `Labels.targets`."""
    if labels.kind == "number":
        return labels.as_number(target)
    if labels.kind == "tags":
        return tuple(labels.names[one] for one in target)
    if labels.several:
        return tuple(name for name, there in zip(labels.spelt, target) if there)
    return labels.spelt[target]


def _mean_loss(
    labels: Labels, scores: Sequence[Float[Tensor, "... C"]], targets: list[Any]
) -> float:
    every = torch.cat(list(scores)) if labels.kind == "tags" else torch.stack(list(scores))
    truth = as_tensor(labels.kind, targets)
    read = ~every.isnan().any(dim=1)
    return LOSSES[labels.kind](every[read], truth[read], 0.0).mean().item()
