"""How often the right image is among the first found for a sentence, and the other way round."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.batching.rows import Rows
from saccade.models.joint.clip import Clip
from saccade.tasks.base import Progress, silent
from saccade.tasks.joint.batch import SightedTexts
from saccade.tasks.joint.retrieval import RANKS
from saccade.tasks.matching.losses import equally_right
from saccade.tasks.matching.same import numbered

READ = 64  # images at a time


class Vectors(NamedTuple):
    """Texts and images of a split as vectors, the image of each text, and what each says."""

    texts: Float[Tensor, "T J"]
    images: Float[Tensor, "I J"]
    of: Int[Tensor, " T"]
    said: Int[Tensor, " T"]


@torch.no_grad()
def vectors(
    model: Clip,
    data: SightedTexts,
    said: Sequence[Hashable],
    device: torch.device,
    *,
    most: int | None = None,
    progress: Progress = silent,
) -> Vectors:
    """Of all images of a split or the first so many, and of all texts about them."""
    count = len(data.sighted) if most is None else min(most, len(data.sighted))
    texts, images = list[Tensor](), list[Tensor]()
    for some in torch.arange(count).split(READ):
        numbers = torch.arange(int(data.first[some[0]]), int(data.first[some[-1] + 1]))
        images.append(model.images(data.sighted.images[some].to(device)))
        if len(numbers):
            taken = data.texts.take(numbers)
            texts.append(model.texts(Rows.of(taken.tokens, taken.lengths).to(device)))
        progress(int(some[-1]) + 1, count)
    own = data.image_of[: int(data.first[count])]
    same = numbered(said[: len(own)])
    return Vectors(torch.cat(texts), torch.cat(images), own.to(device), same.to(device))


def recalls(found: Vectors) -> dict[str, dict[int, float]]:
    """R@1, 5, 10 of images found by sentences, and of sentences found by images, among all.

    An image is found if it is the very one that the sentence was said of.
    """
    own = found.of[:, None] == torch.arange(len(found.images), device=found.of.device)
    return _both_ways(found, own)


def lenient_recalls(found: Vectors) -> dict[str, dict[int, float]]:
    """The same, where an image is right too if somebody said the same of it."""
    return _both_ways(found, equally_right(found.of, found.said, len(found.images)))


def shared(found: Vectors) -> int:
    """How many of the sentences were said of another image as well."""
    every = equally_right(found.of, found.said, len(found.images))
    return int((every.sum(dim=1) > 1).sum())


def _both_ways(found: Vectors, right: Bool[Tensor, "T I"]) -> dict[str, dict[int, float]]:
    alike = found.texts @ found.images.mT
    return {"image": _hits(alike, right), "sentence": _hits(alike.mT, right.mT)}


def _hits(
    alike: Float[Tensor, "asking asked"], right: Bool[Tensor, "asking asked"]
) -> dict[int, float]:
    first = alike.topk(min(max(RANKS), alike.shape[1]), dim=1).indices
    hits = right.gather(1, first)
    some = right.any(dim=1)  # an image may have no sentence
    return {k: float(hits[some, :k].any(dim=1).double().mean()) for k in RANKS}
