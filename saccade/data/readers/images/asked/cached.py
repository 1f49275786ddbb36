"""Images that rows are about, decoded once: all rows about a broken one count as bad."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

from saccade.data.batching.packed_rows import RowParts
from saccade.data.images.cache import CacheSettings, ImageCache, image_cache
from saccade.data.readers.images.asked.forms import Item
from saccade.data.readers.images.asked.read import AskedRead
from saccade.data.readers.report import Problem, collect


def cached_asked(
    read: AskedRead[Item],
    folder: Path,
    *,
    settings: CacheSettings,
    skip_bad: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[AskedRead[Item], ImageCache]:
    """The rows whose images can be decoded, and those images: `item.image` is a place in both.

    `skip_bad` bounds all bad rows together, those of the reading and those of the decoding.
    """
    members = RowParts(read.images, attrgetter("image"))
    cache = image_cache(members, folder, settings=settings, progress=progress)
    return _without(read, cache.bad, skip_bad=skip_bad), cache


def _without(read: AskedRead[Item], bad: Mapping[int, str], *, skip_bad: int) -> AskedRead[Item]:
    """The same without the bad images; those that stay close up, and all that is bad is told."""
    kept = [number for number in range(len(read.images)) if number not in bad]
    places = {number: place for place, number in enumerate(kept)}
    found: list[Item | Problem] = [*read.problems]
    for item in read.items:
        if item.image in bad:
            found.append(Problem(item.file, item.line, bad[item.image]))
        else:
            found.append(replace(item, image=places[item.image]))
    untold = Counter(read.skipped) - Counter(problem.kind for problem in read.problems)
    images = [read.images[number] for number in kept]
    regions = [read.regions[number] for number in kept]
    into = partial(AskedRead[Item], form=read.form, images=images, regions=regions)
    return collect(found, read.files, into, skip_bad=skip_bad, untold=untold)
