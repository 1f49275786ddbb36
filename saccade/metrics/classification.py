"""How well images are told apart: by the best guesses, by class, and how far to trust them."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

BINS = 15  # of confidence


def top_share(scores: Float[Tensor, "R C"], labels: Int[Tensor, " R"], guesses: int) -> float:
    """The share of images whose class is among so many best guesses; a tie counts against us.

    Σ [fewer than k classes score at least as high as the true one] / R
    """
    true = scores.gather(1, labels[:, None])
    above = (scores >= true).sum(dim=1)  # the true class itself included
    return (above <= guesses).double().mean().item()


def confusion(
    predicted: Int[Tensor, " R"], labels: Int[Tensor, " R"], classes: int
) -> Int[Tensor, "C C"]:
    """How many images of each class (rows) were taken for which (columns)."""
    return (labels * classes + predicted).bincount(minlength=classes**2).view(classes, classes)


class ClassFigures(NamedTuple):
    """Of each class: of those taken for it how many were, of those that were how many were found.

    Where there is nothing to divide by it is NaN.
    """

    precision: Float[Tensor, " C"]
    recall: Float[Tensor, " C"]
    images: Int[Tensor, " C"]


def by_class(counts: Int[Tensor, "C C"]) -> ClassFigures:
    """From a confusion matrix."""
    right = counts.diagonal().double()
    return ClassFigures(right / counts.sum(dim=0), right / counts.sum(dim=1), counts.sum(dim=1))


def calibration_error(probabilities: Float[Tensor, "R C"], labels: Int[Tensor, " R"]) -> float:
    """How far confidence and accuracy lie apart (Guo et al. 2017, arXiv:1706.04599).

        Σ_b |B_b| / R · |accuracy(B_b) − confidence(B_b)|

    over bins of the best guess's probability, equally wide.
    """
    confidence, guess = probabilities.double().max(dim=1)
    bins = (confidence * BINS).ceil().long().sub(1).clamp(0, BINS - 1)
    gap = (guess == labels).double() - confidence
    sums = gap.new_zeros(BINS).index_add_(0, bins, gap)
    return (sums.abs().sum() / len(labels)).item()


def average_precision(
    scores: Float[Tensor, "R C"], there: Bool[Tensor, "R C"]
) -> Float[Tensor, " C"]:
    """Of each class the area under precision over recall; NaN where no image has it.

        Σₙ (Rₙ − Rₙ₋₁) Pₙ

    n goes down the scores; images of one score count together.
    """
    found = torch.full((scores.shape[1],), torch.nan, dtype=torch.float64)
    for number, (score, true) in enumerate(zip(scores.unbind(1), there.unbind(1))):
        total = int(true.sum())
        if not total:
            continue
        order = score.argsort(descending=True)
        ranked, hits = score[order], true[order].double().cumsum(0)
        ends = torch.cat([ranked.diff() != 0, torch.tensor([True])]).nonzero()[:, 0]
        recall = hits[ends] / total
        precision = hits[ends] / (ends + 1)
        found[number] = (recall.diff(prepend=recall.new_zeros(1)) * precision).sum()
    return found
