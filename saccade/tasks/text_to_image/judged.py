"""Do drawn images show what their texts say? Of shapes a reader of images can tell."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import UInt8
from torch import Tensor

from saccade.data.shapes.seeing.judging import PromptAgreement, agreement
from saccade.errors import ConfigError
from saccade.tasks.base import Progress, silent
from saccade.tasks.captioning.data import Captioned
from saccade.tasks.text_to_image.drawer import Drawing, ImageDrawer

Similarity = Callable[[Tensor, str], Tensor]  # of each of some images to a text


def judge(prompts: Sequence[str], images: UInt8[Tensor, "n 3 H W"]) -> dict[str, float | None]:
    """The share of images that show all that their prompt says, of its objects (kind and colour),
    and of its relations; None where no prompt has any.
    """
    found = [agreement(prompt, image.numpy()) for prompt, image in zip(prompts, images)]
    return {
        "all": _mean([float(one.fits) for one in found]),
        "objects": _mean([one.object_share for one in found]),
        "relations": _mean([one.relation_share for one in found if _relates(one)]),
    }


def check_judged(read: Captioned, count: int) -> None:
    """Refuse what cannot be judged, before anything is drawn."""
    if not read.scenes:
        raise ConfigError("only images of the built-in shapes can be judged; leave --judged out")
    if not 1 <= count <= len(read.scenes):
        raise ConfigError(f"judged={count} must be from 1 to {len(read.scenes)} scenes")


def judged(
    drawer: ImageDrawer,
    read: Captioned,
    *,
    count: int,
    how: Drawing,
    best_of: int = 1,
    similarity: Similarity | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """Images drawn for the first text of each of `count` scenes; beside them the bounds.

    `real` are the scenes themselves, `again` what the discrete VAE leaves of them, and `shuffled`
    the drawn images, each with the prompt of the next. With a `similarity`, `best` is the likest of
    `best_of` images that are drawn for each prompt.
    """
    check_judged(read, count)
    prompts = [texts[0] for texts in read.captions[:count]]
    real = read.images[torch.arange(count)]
    again = torch.cat([drawer.dvae.reconstruct(x.to(drawer.device)).cpu() for x in real.split(64)])
    several = [prompt for prompt in prompts for _ in range(best_of)]
    every = drawer.images(drawer.draw(several, how, progress=progress)).unflatten(0, (count, -1))
    drawn, best = every[:, 0], dict[str, Any]()
    if similarity is not None:
        ranked = [similarity(some, prompt).argmax() for some, prompt in zip(every, prompts)]
        likest = every[torch.arange(count), torch.stack(ranked)]
        best = {"best_of": best_of, "best": judge(prompts, likest)}
    return {
        "prompts": count,
        "drawn": judge(prompts, drawn),
        **best,
        "real": judge(prompts, real),
        "again": judge(prompts, again),
        "shuffled": judge([*prompts[1:], prompts[0]], drawn),
    }


def _relates(one: PromptAgreement) -> bool:
    return one.claimed > 0


def _mean(some: Sequence[float]) -> float | None:
    return sum(some) / len(some) if some else None
