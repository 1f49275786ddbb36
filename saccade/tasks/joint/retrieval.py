"""Which of many images a sentence is about, and which sentence is about an image.

What both streams find by themselves is computed once for each; where the model compares these,
only the most alike meet, for every pair that meets costs a pass of its own.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.models.joint.vilbert import Streams, Vilbert
from saccade.tasks.base import Progress, silent
from saccade.tasks.joint.batch import SightedTexts, seen_regions

READ = 64  # images at a time
MET = 1024  # pairs at a time
RANKS = (1, 5, 10)


@torch.no_grad()
def alone_states(
    model: Vilbert, data: SightedTexts, images: Int[Tensor, " I"], device: torch.device
) -> tuple[Streams, Int[Tensor, " T"]]:
    """Of all texts and images, and which of these images each text is about."""
    parts, of = list[Streams](), list[Tensor]()
    for number, some in enumerate(images.split(READ)):
        texts = torch.cat([torch.arange(int(data.first[i]), int(data.first[i + 1])) for i in some])
        of.append(torch.searchsorted(some, data.image_of[texts]) + number * READ)
        any_text = texts if len(texts) else torch.zeros(1, dtype=torch.long)
        batch = data.batch(some, any_text, torch.zeros_like(any_text)).to(device)
        part = model.alone(batch.text, batch.types, seen_regions(model, batch.seen))
        if not len(texts):  # the images may be found all the same
            part = part._replace(words=part.words[:0], word_starts=part.word_starts[:1])
        parts.append(part)
    return _together(parts), torch.cat(of).to(device)


def _together(parts: list[Streams]) -> Streams:
    """Sequences of several batches, end to end."""
    starts = list[Tensor]()
    for name in ("word_starts", "region_starts"):
        before, found = 0, [torch.zeros(1, dtype=torch.int32, device=parts[0].words.device)]
        for part in parts:
            ends: Tensor = part._asdict()[name]
            found.append(ends[1:] + before)
            before += int(ends[-1])
        starts.append(torch.cat(found))
    longest = max(p.longest[0] for p in parts), max(p.longest[1] for p in parts)
    counts = {part.slots if part.equal else None for part in parts}
    slots = counts.pop() if len(counts) == 1 else None  # of all images
    return Streams(
        torch.cat([part.words for part in parts]),
        torch.cat([part.regions for part in parts]),
        starts[0],
        starts[1],
        longest,
        slots=slots,
        equal=slots is not None,
    )


@torch.no_grad()
def closer_look(
    model: Vilbert,
    alone: Streams,
    texts: Int[Tensor, " P"],
    images: Int[Tensor, " P"],
    progress: Progress = silent,
) -> Float[Tensor, " P"]:
    """How well each text fits each image, once they have met."""
    found = list[Tensor]()
    for some, others in zip(texts.split(MET), images.split(MET)):
        found.append(model.fits(model.joined(alone, others, some)).float())
        progress(sum(map(len, found)), len(texts))
    return torch.cat(found)


def recalls(
    model: Vilbert,
    data: SightedTexts,
    images: Int[Tensor, " I"],
    device: torch.device,
    *,
    shortlist: int,
    progress: Progress = silent,
) -> dict[str, dict[int, float]]:
    """R@1, 5, 10 of images found by sentences and of sentences found by images, both among all."""
    alone, of = alone_states(model, data, images, device)
    own = of[:, None] == torch.arange(len(images), device=device)  # (T, I)
    alike = None
    if shortlist and model.contrast is not None:
        with torch.no_grad():
            alike = model.compared(alone).float()
    return {
        "image": _ranked(model, alone, alike, own, shortlist, progress, by_text=True),
        "sentence": _ranked(model, alone, alike, own, shortlist, progress, by_text=False),
    }


def _ranked(
    model: Vilbert,
    alone: Streams,
    alike: Float[Tensor, "T I"] | None,
    own: Bool[Tensor, "T I"],
    shortlist: int,
    progress: Progress,
    *,
    by_text: bool,
) -> dict[int, float]:
    """By how likely they belong together: what seemed so at first, times what shows when they meet.

    log p(i | t) = z(t, i) + log σ(fit(t, i)) + constant
    """
    right = own if by_text else own.mT  # (asking, asked)
    asking, asked = right.shape
    if alike is None:
        few = torch.arange(asked, device=right.device).expand(asking, -1)
    else:
        few = (alike if by_text else alike.mT).topk(min(shortlist, asked), dim=1).indices
    mine = torch.arange(asking, device=right.device).repeat_interleave(few.shape[1])
    pair = (mine, few.flatten()) if by_text else (few.flatten(), mine)
    likely = F.logsigmoid(closer_look(model, alone, *pair, progress)).view(few.shape)
    if alike is not None:
        likely = likely + (alike if by_text else alike.mT).gather(1, few)
    order = few.gather(1, likely.argsort(dim=1, descending=True))
    hits = right.gather(1, order)
    some = right.any(dim=1)  # an image may have no sentence
    return {k: float(hits[some, :k].any(dim=1).double().mean()) for k in RANKS}
