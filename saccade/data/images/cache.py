"""Images of a data set, decoded and resized once, in a file that all processes map.

The cache is a folder named by what it was made from: the files' names, sizes and times, and the
settings. It is written shard by shard, so that a kill costs one of them, and has its name when it
is whole; one process makes it while others wait. Each image is checked against its checksum when it
is first read (2.5 GB a second, in the first epoch).
"""

import hashlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from saccade.data.files.journalled_files import (
    FileShard,
    Notes,
    ShardNote,
    whole_shards,
    write_shards,
)
from saccade.data.files.whole_folders import INDEX, sealed_index, whole_folder
from saccade.data.images.decode import ImageError, decode
from saccade.data.images.members import Member
from saccade.data.images.square import Fit, fit_square
from saccade.errors import ConfigError, DataError, WriteError

VERSION = 3  # of what is stored, and of how it is made
PIXELS, SUMS, BAD = "pixels", "sums", "bad"  # the files of a cache
SHARD = 64_000_000  # bytes of pixels
_AHEAD = 8  # images in work for each thread


def _cores() -> int:
    return len(os.sched_getaffinity(0))


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """How large images are kept, and how they are made square."""

    size: int = 256
    fit: Fit = "crop"
    threads: int = field(default_factory=_cores)  # of no influence on what is stored

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"size={self.size} is below 1; give the side of an image in pixels")
        if self.threads < 1:
            raise ConfigError(f"threads={self.threads} is below 1; one is needed to decode")


class ImageCache:
    """Square images by their place among the good ones; `bad` says why a number is not there.

    `digest` changes with any pixel, and with nothing else. It may be sent to other processes: they
    map the same file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        index = sealed_index(folder)
        notes = [ShardNote(*note) for note in index["shards"]]
        if len(whole_shards(folder, notes, only=(SUMS, BAD))) < len(notes):
            raise ValueError(f"{folder} is not what was written there")
        shape: tuple[int, ...] = tuple(index["shape"])
        self._images = np.memmap(folder / PIXELS, np.uint8, "r", shape=shape)
        self._sums = np.fromfile(folder / SUMS, np.uint32, shape[0])
        told = map(json.loads, (folder / BAD).read_bytes().splitlines())
        self.bad: dict[int, str] = dict(map(tuple, told))
        self.digest: str = index["digest"]
        self._checked = np.zeros(len(self._images), bool)
        self._good = np.setdiff1d(np.arange(len(self._images)), np.fromiter(self.bad, np.int64))

    def __len__(self) -> int:
        return len(self._good)

    def __getitem__(self, numbers: Int[Tensor, " B"]) -> UInt8[Tensor, "B 3 H W"]:
        """A copy of these images, in this order."""
        places = self._good[numbers.numpy()]
        images = self._images[places]
        for place, image in zip(places.tolist(), images):
            if not self._checked[place] and zlib.crc32(image) != self._sums[place]:
                raise DataError(self._given_up(place))
        self._checked[places] = True
        return torch.from_numpy(images)

    def _given_up(self, place: int) -> str:
        told = f"image {place} in {self.folder} is not what was written there: it is damaged"
        try:
            (self.folder / INDEX).unlink()
        except OSError as error:
            return f"{told}, and cannot be given up ({error.strerror}); remove that folder"
        return f"{told} and given up; run the same again, and the images are decoded anew"

    def __reduce__(self) -> tuple[type["ImageCache"], tuple[Path]]:
        return ImageCache, (self.folder,)


def image_cache(
    members: Sequence[Member],
    folder: Path,
    *,
    settings: CacheSettings,
    progress: Callable[[int, int], None] | None = None,
) -> ImageCache:
    """The cache of these images below `folder`, made if it is not there.

    `progress` is told how many are done, and of how many. An image that cannot be decoded is noted
    in `bad` and stops nothing: `readers.images_cached` decides.
    """
    if not members:
        raise ConfigError("there are no images to cache: give at least one")
    home = folder / f"images-{fingerprint(members, settings)[:32]}"

    shape = (len(members), 3, settings.size, settings.size)

    def fill(folder: Path) -> dict[str, Any]:
        digest = hashlib.sha256(str(shape).encode())

        def shards(before: Notes) -> Iterator[FileShard]:
            done = before[-1] if before else ShardNote(0, {PIXELS: 0}, {})
            _add_bytes(digest, folder / PIXELS, done.ends[PIXELS])
            for shard in _decoded_shards(members, done.rows, settings, progress):
                digest.update(shard.files[PIXELS])
                yield shard

        notes, _ = write_shards(folder, shards)
        return {"shards": notes, "shape": shape, "digest": digest.hexdigest()}

    try:
        return whole_folder(home, ImageCache, fill, goes_on=True)
    except OSError as error:
        need = len(members) * 3 * settings.size**2
        raise WriteError(_why(error, folder, need)) from error


def fingerprint(images: Iterable[Member], settings: CacheSettings) -> str:
    """What the content of a cache depends on, as a number in hexadecimal."""
    made_by = {"version": VERSION, "pillow": PIL.__version__, **asdict(settings), "threads": 0}
    digest = hashlib.sha256(json.dumps(made_by, sort_keys=True).encode())
    for image in images:
        place = [image.name, image.size, image.stamp, image.offset]
        digest.update(json.dumps(place).encode())
    return digest.hexdigest()


def _decoded_shards(
    members: Sequence[Member],
    first: int,
    settings: CacheSettings,
    progress: Callable[[int, int], None] | None,
) -> Iterator[FileShard]:
    """Images from number `first` on: their pixels, the sum of each, which are bad and why."""
    blank, each = bytes(3 * settings.size**2), max(1, SHARD // (3 * settings.size**2))
    pixels, sums, bad = bytearray(), list[int](), bytearray()
    for number, image in enumerate(decoded(islice(members, first, None), settings), start=first):
        if isinstance(image, ImageError):
            bad += json.dumps([number, image.reason]).encode() + b"\n"
        raw = blank if isinstance(image, ImageError) else image.numpy().tobytes()
        pixels += raw
        sums.append(zlib.crc32(raw))
        if progress is not None:
            progress(number + 1, len(members))
        if len(sums) == each or number + 1 == len(members):
            every_sum = np.array(sums, np.uint32).tobytes()
            yield FileShard(len(sums), {PIXELS: pixels, SUMS: every_sum, BAD: bad})
            pixels, sums, bad = bytearray(), list[int](), bytearray()


def _add_bytes(digest: Any, path: Path, end: int) -> None:
    """Those that are there already, as far as `end`."""
    if not end:
        return
    with path.open("rb") as file:
        for start in range(0, end, SHARD):
            digest.update(file.read(min(SHARD, end - start)))


def decoded(
    members: Iterable[Member], settings: CacheSettings
) -> Iterator[UInt8[Tensor, "3 H W"] | ImageError]:
    """Each image in order. Pillow decodes without holding the interpreter, so threads suffice."""

    def work(member: Member) -> UInt8[Tensor, "3 H W"] | ImageError:
        try:
            return fit_square(decode(member, short=2 * settings.size), settings.size, settings.fit)
        except ImageError as error:
            return error

    with ThreadPoolExecutor(settings.threads) as pool:
        waiting: list[Future[UInt8[Tensor, "3 H W"] | ImageError]] = []
        rest = iter(members)
        while True:
            room = settings.threads * _AHEAD - len(waiting)
            waiting += [pool.submit(work, member) for member in islice(rest, room)]
            if not waiting:
                return
            yield waiting.pop(0).result()


def _why(error: OSError, folder: Path, need: int) -> str:
    try:
        free = f", {shutil.disk_usage(folder).free:,} free"
    except OSError:
        free = ""
    return (
        f"cannot keep images in {folder}: {error.strerror} ({need:,} bytes needed{free}); make "
        "room there, or name another place by --cache"
    )
