"""Images that were read, decoded once: one that is broken counts as a bad row does."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from saccade.data.images.cache import CacheSettings, ImageCache, image_cache
from saccade.data.readers.images.rows import ImageRow, ImagesRead
from saccade.data.readers.report import Problem, collect


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
    members = [row.image for row in read.rows]
    cache = image_cache(members, folder, settings=settings, progress=progress)
    return without(read, cache.bad, skip_bad=skip_bad), cache


def without(read: ImagesRead, bad: Mapping[int, str], *, skip_bad: int) -> ImagesRead:
    """The same without the rows whose images turned out bad; all that is bad is told at once."""
    if not bad and sum(read.skipped.values()) <= skip_bad:
        return read
    found: list[ImageRow | Problem] = [*read.problems]
    for index, row in enumerate(read.rows):
        found.append(Problem(row.file, row.line, bad[index]) if index in bad else row)
    untold = Counter(read.skipped) - Counter(problem.kind for problem in read.problems)
    return collect(found, read.files, ImagesRead, skip_bad=skip_bad, untold=untold)
