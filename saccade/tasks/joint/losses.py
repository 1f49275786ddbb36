"""What a joint model is trained by: hidden words, hidden regions, and whether a text fits.

Each is a mean; where nothing was hidden it is zero, not 0 / 0.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.boxes import iou
from saccade.models.joint.regions import RegionRows
from saccade.models.joint.vilbert import Streams, Vilbert
from saccade.tasks.cross_entropy import IGNORED, summed_cross_entropy

HIDDEN = 0.15  # share of the regions that are chosen
EMPTIED = 0.9  # of these; the others stay to be seen
SHOWN_TOO = 0.4  # a region that shares more of a hidden one is hidden with it


def hidden_words(
    model: Vilbert, found: Streams, at: Int[Tensor, " n"], labels: Int[Tensor, " n"]
) -> Float[Tensor, ""]:
    """−mean log p(word | the others, the image)."""
    features = model.transformed(found.words.index_select(0, at))
    total = summed_cross_entropy(features, model.output, labels)
    return total / (labels != IGNORED).sum().clamp_min(1)


def choose_regions(
    regions: RegionRows, *, overlap: bool
) -> tuple[Bool[Tensor, " n"], Bool[Tensor, " n"]]:
    """Which regions are to be told, and which are emptied: most of these, and where they `overlap`
    all that share much with one of them. The whole image is neither.
    """
    starts, device = regions.starts, regions.boxes.device
    places = torch.arange(len(regions.boxes), device=device)
    image = torch.bucketize(places, starts, right=True) - 1
    whole = places == starts[:-1].long()[image]
    draws = torch.rand(2, len(places), device=device)
    chosen = (draws[0] < HIDDEN) & ~whole
    emptied = chosen & (draws[1] < EMPTIED)
    if not overlap:
        return chosen, emptied
    each = starts[:-1].long()[image][:, None] + torch.arange(regions.longest, device=device)
    there = each < starts[1:][image][:, None]  # of the same image
    other = each.clamp(max=len(places) - 1)
    shared = iou(regions.boxes[:, None], regions.boxes[other])[0] > SHOWN_TOO
    near = (shared & there & emptied[other]).any(dim=1)
    return chosen, (emptied | near) & ~whole


def hidden_regions(
    model: Vilbert,
    found: Streams,
    regions: RegionRows,
    chosen: Bool[Tensor, " n"],
    true: Float[Tensor, "every C"],
    pairs: int,
) -> Float[Tensor, ""]:
    """KL to what the regions are known to be; else how far their features are told wrongly.

    mean over chosen regions of  Σ p (log p − log q)        p: what a detector says, or one class
                                 or mean (f − f̂)²

    Where all of p is zero nobody knows, and nothing is asked. Only the first so many `pairs` are.
    """
    assert found.beside is not None, "words and regions have not met"
    which, told = found.beside.which, model.told(found).float()
    asked = chosen[which] & (found.beside.pair < pairs)
    if model.config.region_classes:
        p = true[which].to(told)
        asked = asked & (p > 0).any(dim=1)
        each = F.kl_div(told.log_softmax(dim=1), p, reduction="none").sum(dim=1)
    else:
        seen = F.layer_norm(regions.features.detach().float(), regions.features.shape[-1:])
        each = (told - seen[which]).square().mean(dim=1)
    return (each * asked).sum() / asked.sum().clamp_min(1)


def contrast_loss(z: Float[Tensor, "T I"], of: Int[Tensor, " T"]) -> Float[Tensor, ""]:
    """Each text is to find its image among all, and each image its texts.

    −mean log softmaxᵢ z(t, i) − mean log softmaxₜ z(t, i),  halved
    """
    own = of[:, None]
    of_text = -z.log_softmax(dim=1).gather(1, own)
    of_image = -z.log_softmax(dim=0).gather(1, own)
    return (of_text + of_image).mean() / 2


@torch.no_grad()
def wrong_images(
    z: Float[Tensor, "T I"] | None, of: Int[Tensor, " T"], images: int
) -> Int[Tensor, " T"]:
    """Another image for each text: the likelier it seems to fit, the sooner it is drawn."""
    if z is None:
        away = torch.rand(len(of), device=of.device) * (images - 1)
        return (of + 1 + away.long()) % images
    noise = -torch.empty_like(z).exponential_().log()  # Gumbel
    own = torch.arange(images, device=of.device) == of[:, None]
    return (z + noise).masked_fill(own, -torch.inf).argmax(dim=1)


def fit_loss(right: Float[Tensor, " T"], wrong: Float[Tensor, " T"] | None) -> Float[Tensor, ""]:
    """−mean log p(fits) of texts with their images, and −mean log(1 − p) with others, halved."""
    if wrong is None:
        return F.softplus(-right).mean()
    return (F.softplus(-right).mean() + F.softplus(wrong).mean()) / 2
