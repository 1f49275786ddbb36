"""Texts about images to look at: the user's, or those of a split, where the truth is known."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from saccade.app.look.images import ShownImage, evenly
from saccade.data.images.given import AnyImage
from saccade.data.images.square import fit_square
from saccade.tasks.joint.data import Sighted
from saccade.tasks.joint.pairs import PairImage, PairTool, RegionBoxes, one_text
from saccade.tasks.joint.task import TextsOfImages


@dataclass(frozen=True)
class PairTruth:
    """What is known of a pair: what people answered, which sentence is right, or where that lies
    which a phrase means, by its corners on the square image; and whether the text fits.
    """

    answers: tuple[str, ...] = ()
    sentence: str | None = None
    box: Float[Tensor, " 4"] | None = None
    fits: bool | None = None


@dataclass(frozen=True)
class PairSubject:
    """An image for people, how a model is given the same, and a text about it: of sentences to
    choose from there are tabs between them.
    """

    shown: ShownImage
    text: str
    sight: Callable[[PairTool], PairImage]
    truth: PairTruth = PairTruth()

    @classmethod
    def of(
        cls, tool: PairTool, image: AnyImage, text: str, regions: RegionBoxes | None, name: str = ""
    ) -> "PairSubject":
        """The user's. People see what the model does: all of it, or the square cut from it."""
        whole = tool.settings.fit == "squeeze"
        shown = (
            ShownImage.in_full(image, name=name) if whole else ShownImage.of(image, tool, name=name)
        )
        return cls(shown, text, lambda who: who.sight(image, regions, name=shown.name))


def split_subjects(
    read: TextsOfImages, rows: int, split: str, truth_of: Callable[[Any], PairTruth]
) -> list[PairSubject]:
    """Some texts of a split, spread evenly over it, each with its image. Sentences to choose from
    are one text.
    """
    image_of = [image for image, some in enumerate(read.texts) for _ in some]
    every = [text for some in read.texts for text in some]
    sizes = read.sizes or [1] * len(every)
    first = [end - size for end, size in zip(accumulate(sizes), sizes)]
    return [
        PairSubject(
            _shown(read.sighted, image_of[text], f"{split} {image_of[text]}"),
            one_text(every[text : text + size]),
            _sighter(read.sighted, image_of[text], f"{split} {image_of[text]}"),
            truth_of(read.truth[text]),
        )
        for text, size in ((first[row], sizes[row]) for row in evenly(len(sizes), rows))
    ]


def _shown(sighted: Sighted, image: int, name: str) -> ShownImage:
    if sighted.scenes:
        return replace(ShownImage.of_scene(sighted.scenes[image], name), boxes=(), references=())
    pixels = sighted.images[torch.tensor([image])][0]
    return ShownImage(name, pixels, lambda tool: fit_square(pixels, tool.settings.image, "squeeze"))


def _sighter(sighted: Sighted, image: int, name: str) -> Callable[[PairTool], PairImage]:
    boxes = sighted.boxes[image, : int(sighted.counts[image])]
    labels = sighted.labels(image)

    def sight(tool: PairTool) -> PairImage:
        pixels = sighted.images[torch.tensor([image])][0]
        fitting = fit_square(pixels, tool.settings.image, "squeeze")
        return PairImage.square(name, fitting, boxes, labels)

    return sight
