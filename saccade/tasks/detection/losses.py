"""How far a set of detections is from the objects that are there, once they are matched."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from saccade.data.boxes import generalised_iou, iou, to_corners
from saccade.data.images.constants import constant
from saccade.models.detection.detr import Detections
from saccade.tasks.detection.matching import BALANCE, FOCUS, TrueObjects, Weights

NOTHING = 0.1  # what a query without an object counts in the cross-entropy, as published
TRUST = 0.25  # how much of a query's target is its own score; the rest is how well its box fits


def set_losses(
    found: Detections,
    true: TrueObjects,
    matched: Int[Tensor, "passes B N"],
    weights: Weights,
    *,
    no_object: bool,
    aligned: bool,
) -> dict[str, Float[Tensor, ""]]:
    """Of classes, boxes and overlaps, each summed over objects and passes.

    box = Σ ‖b − t‖₁        overlap = Σ (1 − GIoU(b, t))        over the pairs
    """
    there = (matched >= 0) & true.there  # (passes, B, N)
    query = matched.clamp_min(0)
    boxes = found.boxes.gather(2, query[..., None].expand(-1, -1, -1, 4))  # of each object's query
    targets = true.boxes.expand_as(boxes)
    counts = there * constant(found.weights, found.boxes)[:, None, None]
    apart = (boxes - targets).abs().sum(dim=-1)
    fit = iou(to_corners(boxes.detach()), to_corners(targets))[0]
    shared = generalised_iou(to_corners(boxes), to_corners(targets))
    if no_object:
        classes = cross_entropy(found, true, query, there)
    else:
        classes = focal_loss(found, true, query, there, fit=fit if aligned else None)
    return {
        "classes": weights.classes * classes,
        "box": weights.box * (counts * apart).sum(),
        "overlap": weights.overlap * (counts * (1 - shared)).sum(),
    }


def cross_entropy(
    found: Detections, true: TrueObjects, query: Tensor, there: Tensor
) -> Float[Tensor, ""]:
    """The mean over queries, those without an object counting a tenth, times the objects.

    L = Σ_q w_q (−log softmax(z_q)_{c_q}) / Σ_q w_q · objects
    """
    nothing = found.scores.shape[-1] - 1
    labels = torch.full_like(found.scores[..., 0], nothing, dtype=torch.long)  # (passes, B, Q)
    labels = _put(labels, query, true.labels.expand_as(query), there)
    w = (labels != nothing).to(found.scores).clamp_min(NOTHING)
    each = F.cross_entropy(found.scores.flatten(0, 2), labels.flatten(), reduction="none")
    means = (w * each.view_as(w)).sum(dim=(1, 2)) / w.sum(dim=(1, 2))  # (passes,)
    objects = true.there.sum().clamp_min(1)
    return (means * constant(found.weights, means)).sum() * objects


def focal_loss(
    found: Detections,
    true: TrueObjects,
    query: Tensor,
    there: Tensor,
    *,
    fit: Float[Tensor, "passes B N"] | None,
) -> Float[Tensor, ""]:
    """Of each class by itself: what is known already counts little.

        plain:    α_t |t − p|^γ BCE(p, t)        t = 1 for an object's class, else 0
        aligned:  BCE(p, t) for an object's class, p^γ BCE(p, 0) else,  t = p^τ IoU^(1−τ)

    Aligned (Cai et al. 2023, arXiv:2304.07527), a score tells how well the box fits as well, so
    that of two boxes the better one is ranked first. Both take their weights and t as given, as the
    published focal loss does not: ∂L/∂z is the weight times p − t.
    """
    z = found.scores
    p, none = z.detach().sigmoid(), torch.zeros_like(z).flatten(2)
    flat = query * z.shape[-1] + true.labels.expand_as(query)  # (passes, B, N) places in Q · C
    hits = _put(none, flat, there, there).view_as(z)
    if fit is None:
        t, w = hits, torch.where(hits > 0, BALANCE * (1 - p) ** FOCUS, (1 - BALANCE) * p**FOCUS)
    else:
        fits = _put(none, flat, fit, there).view_as(z)
        t = hits * (p**TRUST * fits.clamp_min(1e-6) ** (1 - TRUST))
        w = torch.where(hits > 0, torch.ones_like(p), p**FOCUS)
    each = w * F.binary_cross_entropy_with_logits(z, t, reduction="none")
    return (each.sum(dim=(1, 2, 3)) * constant(found.weights, each)).sum()


def _put(into: Tensor, places: Tensor, values: Tensor, there: Tensor) -> Tensor:
    """Values at their places along the last axis; those that are not there go nowhere."""
    spare = torch.cat([into, into[..., :1]], dim=-1)  # one place more, to be thrown away
    places = torch.where(there, places, into.shape[-1])
    return spare.scatter(-1, places, values.to(into))[..., :-1]
