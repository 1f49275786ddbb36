"""Images as a program gives them, one or a list, so many at a time."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from saccade.data.images.given import AnyImage, an_image, image_name
from saccade.tasks.base import Progress


class NamedImage(NamedTuple):
    """An image as it was given, by its file or its number, and made to fit."""

    name: str
    image: AnyImage
    prepared: Any


def in_batches(
    given: Any, size: int, prepare: Callable[..., Any], progress: Progress
) -> Iterator[list[NamedImage]]:
    """All of them; `progress` is told how many the caller is done with."""
    images: list[AnyImage] = list(map(an_image, given if isinstance(given, list) else [given]))
    for first in range(0, len(images), size):
        some = images[first : first + size]
        named = [(image_name(one, number), one) for number, one in enumerate(some, start=first)]
        yield [NamedImage(name, one, prepare(one, name=name)) for name, one in named]
        progress(first + len(some), len(images))
