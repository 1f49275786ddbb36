"""Images that were read, decoded once: one that is broken counts as a bad row does."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from operator import attrgetter
from pathlib import Path

from saccade.data.batching.packed_rows import RowParts
from saccade.data.images.cache import CacheSettings, ImageCache, image_cache
from saccade.data.readers.images.rows import ImageRow, ImagesRead, collect_images
from saccade.data.readers.report import Problem


def cached_images(
    read: ImagesRead,
    folder: Path,
    *,
    settings: CacheSettings,
    skip_bad: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ImagesRead, ImageCache]:
    """The rows whose images can be decoded, and those images: row i goes with image i.

    `skip_bad` bounds all bad rows together, those of the reading and those of the decoding.
    """
    members = RowParts(read.rows, attrgetter("image"))
    cache = image_cache(members, folder, settings=settings, progress=progress)
    return without(read, cache.bad, skip_bad=skip_bad), cache


def without(read: ImagesRead, bad: Mapping[int, str], *, skip_bad: int) -> ImagesRead:
    """The same without the rows whose images turned out bad; all that is bad is told at once."""
    if not bad and sum(read.skipped.values()) <= skip_bad:
        return read
    found = (
        Problem(row.file, row.line, bad[index]) if index in bad else row
        for index, row in enumerate(read.rows)
    )
    untold = Counter(read.skipped) - Counter(problem.kind for problem in read.problems)
    every = chain[ImageRow | Problem](read.problems, found)
    return collect_images(every, read.files, skip_bad=skip_bad, untold=untold)
