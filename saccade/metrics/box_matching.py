"""Which found box is which object: classes that are confused, and from which confidence to tell.

The surest found box chooses first; each takes the free object that it overlaps most, by at least
half (IoU). An ignored object is a crowd: what was found in it, of its class, counts neither way.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.objects import Objects
from saccade.metrics.detection import FoundObjects

OVERLAP = 0.5
UNKNOWN = 0.5  # the threshold where nothing that was found is right


class Taken(NamedTuple):
    """The object that each found box takes, or −1, and whether it lies in one that is ignored."""

    objects: Int[Tensor, " found"]
    excused: Bool[Tensor, " found"]


def taken_objects(found: FoundObjects, truth: Objects) -> Taken:
    """Of one image, of whichever class; what a box takes does not depend on any less sure one."""
    anything = (~truth.ignored).expand(len(found.labels), -1)
    objects = _matched(found, truth, anything)
    return Taken(objects, _excused(found, truth) & (objects < 0))


class OperatingPoint(NamedTuple):
    """From which confidence on found objects are told, and the mean over classes of F1 there."""

    threshold: float
    f1: float


def box_confusion(
    found: Sequence[FoundObjects], truth: Sequence[Objects], classes: int, *, threshold: float
) -> Int[Tensor, "C1 C1"]:
    """How many objects of each class (rows) were said to be which (columns); last is "nothing".

    The last row counts boxes where no object is, the last column objects that nobody found. A box
    takes an object of whichever class.
    """
    cells: list[Tensor] = []
    for one, objects in zip(found, truth, strict=True):
        sure = _from(one, threshold)
        taken, excused = taken_objects(sure, objects)
        missed = ~objects.ignored
        missed[taken[taken >= 0]] = False
        nothing = objects.labels.new_tensor([classes])
        true = torch.cat([objects.labels, nothing])[taken[~excused]]  # −1 is nothing
        cells += [true * (classes + 1) + sure.labels[~excused]]
        cells += [objects.labels[missed] * (classes + 1) + classes]
    counts = torch.cat(cells).bincount(minlength=(classes + 1) ** 2)
    return counts.view(classes + 1, classes + 1)


def best_threshold(
    found: Sequence[FoundObjects], truth: Sequence[Objects], classes: int
) -> OperatingPoint:
    """The confidence that gives the best F1, as the mean over the classes that have objects.

        F1 = 2 · right / (found + objects)

    It lies half-way to the surest of what is left out.
    """
    labels, scores, right = _ranked(found, truth)
    there = torch.cat([one.learnt_from().labels for one in truth]).bincount(minlength=classes)
    if not right.any():
        return OperatingPoint(UNKNOWN, 0.0)
    gains = torch.zeros_like(scores)  # of one more found object, whose class alone it changes
    for label in there.nonzero()[:, 0].tolist():
        at = (labels == label).nonzero()[:, 0]
        count = torch.arange(1, len(at) + 1, dtype=scores.dtype)
        f1 = 2 * right[at].cumsum(0) / (count + there[label])
        gains[at] = f1.diff(prepend=f1.new_zeros(1))
    mean = (gains.cumsum(0) / there.count_nonzero()).round(decimals=12)
    below = torch.cat([scores[1:], scores.new_zeros(1)])
    mean[:-1].masked_fill_(below[:-1] == scores[:-1], -1.0)  # those of one score go together
    best = int(mean.argmax())
    return OperatingPoint(((scores + below) / 2)[best].item(), mean[best].item())


def _ranked(
    found: Sequence[FoundObjects], truth: Sequence[Objects]
) -> tuple[Int[Tensor, " n"], Float[Tensor, " n"], Bool[Tensor, " n"]]:
    """Labels and scores of all that was found, the surest first, and whether it is right.

    What is right stays so whatever else is left out below it: so all thresholds are in one list.
    """
    parts: list[tuple[Tensor, ...]] = []
    for one, objects in zip(found, truth, strict=True):
        every, there = _from(one, -torch.inf), objects.learnt_from()
        right = _matched(every, there, every.labels[:, None] == there.labels) >= 0
        kept = right | ~_excused(every, objects)
        parts.append((every.labels[kept], every.scores[kept].double(), right[kept]))
    labels, scores, right = (torch.cat(column) for column in zip(*parts))
    order = scores.argsort(descending=True, stable=True)
    return labels[order], scores[order], right[order]


def _from(found: FoundObjects, threshold: float) -> FoundObjects:
    """What is at least so sure, on the CPU, where loops are fast."""
    found = FoundObjects(*(part.cpu() for part in found)).finite()
    kept = found.scores.double() >= threshold
    return FoundObjects(*(part[kept] for part in found))


def _matched(
    found: FoundObjects, objects: Objects, eligible: Bool[Tensor, "found objects"]
) -> Int[Tensor, " found"]:
    """The object that each found box takes, or −1."""
    shared = _shared(found.boxes, objects.boxes)
    overlaps = shared / (_area(found.boxes)[:, None] + _area(objects.boxes) - shared)
    pairs = ((overlaps >= OVERLAP) & eligible).nonzero()
    rows, columns = pairs.unbind(1)
    ranked = zip(
        (-found.scores[rows]).tolist(),
        rows.tolist(),
        (-overlaps[rows, columns]).tolist(),
        (found.labels[rows] != objects.labels[columns]).tolist(),  # its own class, if they tie
        columns.tolist(),
    )
    taken, free = [-1] * len(found.labels), [True] * len(objects.labels)
    for _, row, _, _, column in sorted(ranked):
        if taken[row] < 0 and free[column]:
            taken[row], free[column] = column, False
    return torch.tensor(taken, dtype=torch.long)


def _excused(found: FoundObjects, objects: Objects) -> Bool[Tensor, " found"]:
    """Whether at least half of a found box lies in an ignored object of its class."""
    inside = _shared(found.boxes, objects.boxes) / _area(found.boxes)[:, None]
    same = found.labels[:, None] == objects.labels
    return ((inside >= OVERLAP) & same & objects.ignored).any(dim=1)


def _shared(some: Float[Tensor, "n 4"], others: Float[Tensor, "m 4"]) -> Float[Tensor, "n m"]:
    """The area that is in both boxes of each pair."""
    one, other = some.double()[:, None], others.double()
    sides = torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(
        one[..., :2], other[..., :2]
    )
    return sides.clamp(min=0).prod(dim=-1)


def _area(boxes: Float[Tensor, "n 4"]) -> Float[Tensor, " n"]:
    return (boxes[:, 2:].double() - boxes[:, :2].double()).prod(dim=1)
