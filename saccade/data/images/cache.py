"""Images of a data set, decoded and resized once, in one file that all processes map.

The cache is a folder named by what it was made from: the files' names, sizes and times, and the
settings. It appears at once and whole, or not at all; one process makes it while others wait. Each
image is checked against its checksum when it is first read (2.5 GB a second, in the first epoch).
"""

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import PIL
import torch
from jaxtyping import Int, UInt8
from numpy.lib import format as npy
from torch import Tensor

from saccade.data.images.decode import ImageError, decode
from saccade.data.images.members import Member
from saccade.data.images.square import Fit, fit_square
from saccade.data.whole_folders import INDEX, sealed_index, sync, whole_folder
from saccade.errors import ConfigError, DataError, WriteError

VERSION = 2  # of what is stored, and of how it is made
IMAGES = "images.npy"
_AHEAD = 8  # images in work for each thread


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """How large images are kept, and how they are made square."""

    size: int = 256
    fit: Fit = "crop"
    threads: int = 2  # of no influence on what is stored

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
        self.bad: dict[int, str] = {int(number): why for number, why in index["bad"].items()}
        self._images: np.ndarray[Any, np.dtype[np.uint8]] = np.load(folder / IMAGES, mmap_mode="r")
        self.digest: str = index["digest"]
        count: int = index["count"]
        if self._images.dtype != np.uint8 or self._images.shape[:2] != (count, 3):
            raise ValueError(f"{folder} does not hold what its index says")
        self._sums: list[int] = index["sums"]
        self._checked = np.zeros(count, bool)
        self._good = np.setdiff1d(np.arange(count), np.fromiter(self.bad, np.int64))

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
    images: Iterable[Member],
    folder: Path,
    *,
    settings: CacheSettings,
    progress: Callable[[int, int], None] | None = None,
) -> ImageCache:
    """The cache of these images below `folder`, made if it is not there.

    `progress` is told how many are done, and of how many. An image that cannot be decoded is noted
    in `bad` and stops nothing: `readers.images_cached` decides.
    """
    members = list(images)
    if not members:
        raise ConfigError("there are no images to cache: give at least one")
    home = folder / f"images-{fingerprint(members, settings)[:32]}"

    def fill(empty: Path) -> dict[str, Any]:
        with (empty / IMAGES).open("wb") as file:
            index = _write_images(file, members, settings, progress)
            sync(file)
        return index

    try:
        return whole_folder(home, ImageCache, fill)
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


def _write_images(
    file: BinaryIO,
    members: list[Member],
    settings: CacheSettings,
    progress: Callable[[int, int], None] | None,
) -> dict[str, Any]:
    """The index: how many there are, which are bad and why, the sum of each, the digest of all.

    Written and not mapped: on a full disk a write fails, and a mapped page kills the process.
    """
    shape = (len(members), 3, settings.size, settings.size)
    npy.write_array_header_1_0(
        file, {"shape": shape, "fortran_order": False, "descr": npy.dtype_to_descr(np.dtype("u1"))}
    )
    bad, sums = dict[int, str](), list[int]()
    digest, blank = hashlib.sha256(str(shape).encode()), np.zeros(shape[1:], np.uint8)
    for number, image in enumerate(decoded(members, settings)):
        if isinstance(image, ImageError):
            bad[number] = image.reason
        pixels = (blank if isinstance(image, ImageError) else image.numpy()).tobytes()
        file.write(pixels)
        digest.update(pixels)
        sums.append(zlib.crc32(pixels))
        if progress is not None:
            progress(number + 1, len(members))
    return {"count": len(members), "bad": bad, "sums": sums, "digest": digest.hexdigest()}


def decoded(
    members: list[Member], settings: CacheSettings
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
    return f"cannot keep images in {folder}: {error.strerror} ({need:,} bytes needed{free})"
