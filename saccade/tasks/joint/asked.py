"""The user's questions, phrases or choices about images, with the regions that the data give."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch

from saccade.data.images.cache import CacheSettings
from saccade.data.readers.images.asked.cached import cached_asked
from saccade.data.readers.images.asked.forms import AskedForm
from saccade.data.readers.images.asked.read import asked_splits, read_asked
from saccade.data.readers.images.boxes.rows import header_size
from saccade.errors import DataError
from saccade.tasks.base import Progress
from saccade.tasks.images import SomeImages, cache_folder
from saccade.tasks.joint.data import UNKNOWN, JointSettings, Sighted, square_boxes
from saccade.tasks.joint.task import TextsOfImages

HELD_OUT = 20  # every so-many-th image is for validation, where the user gave no such split


class SaidOfImage(NamedTuple):
    """What a row says, and how large its image is: height and width."""

    item: Any
    size: tuple[int, int]


def read_about_images(
    settings: JointSettings, split: str | None, form: AskedForm[Any], progress: Progress
) -> TextsOfImages:
    """A split; what is true of a text is `SaidOfImage`. None is all of data without splits."""
    data = Path(settings.data)
    if split in ("train", "valid") and "valid" not in asked_splits(data, form):
        return _read(settings, "train", form, progress, held_out=split == "valid")
    return _read(settings, split or "train", form, progress)


def _read(
    settings: JointSettings,
    split: str,
    form: AskedForm[Any],
    progress: Progress,
    *,
    held_out: bool | None = None,
) -> TextsOfImages:
    # Whatever is bad is told once, when the images have been decoded, too.
    read = read_asked(Path(settings.data), split, form, skip_bad=sys.maxsize)
    good, cache = cached_asked(
        read,
        cache_folder(),
        settings=CacheSettings(size=settings.image, fit=settings.fit),
        skip_bad=settings.skip_bad,
        progress=progress,
    )
    kept = [
        number
        for number in range(len(good.images))
        if held_out is None or (number % HELD_OUT == HELD_OUT - 1) == held_out
    ]
    if not kept:
        raise DataError(f"{good.summary()}: too few images to hold some out; add a valid split")
    sizes = {number: header_size(good.images[number].image) for number in kept}
    boxes = [
        square_boxes(good.regions[number] or (), sizes[number], settings.fit) for number in kept
    ]
    kinds = [torch.full((len(some),), UNKNOWN) for some in boxes]
    images = SomeImages(cache, torch.tensor(kept))
    sighted = Sighted.of(images, boxes, kinds, (), good.summary())
    sighted = replace(sighted, files=[good.images[number].image for number in kept])
    of_image = dict[int, list[Any]]()
    for item in good.items:
        of_image.setdefault(item.image, []).append(item)
    asked = [of_image.get(number, []) for number in kept]
    texts = [tuple(text for item in some for text in item.said) for some in asked]
    every = [SaidOfImage(item, sizes[item.image]) for some in asked for item in some]
    return TextsOfImages(sighted, texts, [one for one in every for _ in one.item.said])
