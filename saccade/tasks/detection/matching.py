"""Which query stands for which object: the assignment of least cost, one to one.

Nothing is learnt from the choice itself, only from what it pairs.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.blocks.kernels import runs_kernels
from saccade.data.boxes import generalised_iou, to_corners
from saccade.errors import ConfigError
from saccade.models.detection.detr import Detections

FOCUS, BALANCE = 2.0, 0.25  # γ and α of the focal loss (Lin et al. 2017, arXiv:1708.02002)
WORST = 1e6  # the cost of what is no number: such a loss is skipped, and nobody can match it


class TrueObjects(NamedTuple):
    """The objects of a batch, filled up to as many for each image; boxes are cx, cy, w, h."""

    boxes: Float[Tensor, "B N 4"]
    labels: Int[Tensor, "B N"]
    there: Bool[Tensor, "B N"]  # others only fill up


@dataclass(frozen=True, kw_only=True)
class Weights:
    """How much each part counts, in the cost of a pair and in the loss.

    Args:
        classes: how unlikely the object's class is.
        box: how far the four numbers of two boxes are apart.
        overlap: how much of two boxes is not shared.
    """

    classes: float = 1.0
    box: float = 5.0
    overlap: float = 2.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise ConfigError(f"{name}={value} must be 0 or more")


@torch.no_grad()
def costs(
    found: Detections, true: TrueObjects, weights: Weights, *, no_object: bool
) -> Float[Tensor, "passes B N Q"]:
    """What each query costs for each object.

        cost = w_c · c(z) + w_b · ‖b − t‖₁ − w_o · GIoU(b, t)

    c is −p of the object's class, p the softmax; where each class is scored by itself it is what
    the focal loss would change: α (1 − p)^γ (−log p) − (1 − α) p^γ (−log(1 − p)).
    """
    labels = true.labels[None, :, None].expand(len(found.scores), -1, found.scores.shape[2], -1)
    scores = found.scores.float()
    if no_object:
        unlikely = -scores.softmax(dim=-1).gather(3, labels)
    else:
        z = scores.gather(3, labels)
        p, if_there, if_not = z.sigmoid(), F.softplus(-z), F.softplus(z)  # −log p, −log(1 − p)
        unlikely = BALANCE * (1 - p) ** FOCUS * if_there - (1 - BALANCE) * p**FOCUS * if_not
    boxes, targets = found.boxes.float()[:, :, :, None], true.boxes[None, :, None].float()
    apart = (boxes - targets).abs().sum(dim=-1)  # (passes, B, Q, N)
    shared = generalised_iou(to_corners(boxes), to_corners(targets))
    cost = weights.classes * unlikely + weights.box * apart - weights.overlap * shared
    return cost.transpose(2, 3)


def assigned(
    cost: Float[Tensor, "*problems N Q"], there: Bool[Tensor, "*problems N"]
) -> Int[Tensor, "*problems N"]:
    """The query of each object, all of them together at the least cost; −1 where there is none.

    Where there are more objects than queries, those that would cost most have none.
    """
    cost = cost.nan_to_num(nan=WORST, posinf=WORST, neginf=WORST)
    if runs_kernels(cost) and there.shape[-1] <= cost.shape[-1]:
        from saccade.tasks.detection.assignment_kernel import assigned_on_gpu

        return assigned_on_gpu(cost, there)
    solve, real = _solver(), there.flatten(0, -2).cpu().numpy()
    found = np.full(real.shape, -1)
    for mine, matrix, rows in zip(found, cost.flatten(0, -3).cpu().numpy(), real):
        (objects,) = rows.nonzero()
        chosen, queries = solve(matrix[objects])
        mine[objects[chosen]] = queries
    return torch.from_numpy(found).view(there.shape).to(cost.device)


def match(
    found: Detections, true: TrueObjects, weights: Weights, *, no_object: bool
) -> Int[Tensor, "passes B N"]:
    """For every pass by itself, the query of each object."""
    cost = costs(found, true, weights, no_object=no_object)
    return assigned(cost, true.there.expand(len(cost), -1, -1))


def _solver() -> Any:
    """scipy's, which comes with `saccade[detect]`."""
    try:
        return import_module("scipy.optimize").linear_sum_assignment
    except ImportError as error:
        raise ConfigError(
            f"matching objects needs scipy ({error}): pip install 'saccade[detect]'"
        ) from error
