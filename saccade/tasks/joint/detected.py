"""The regions that a trained detector finds in images, and what it says that each is."""

import json
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from saccade.data.batching.kept_rows import KeptRows, Rows, kept_rows
from saccade.data.boxes import to_corners
from saccade.data.images.cache import CacheSettings, decoded, fingerprint
from saccade.data.images.decode import ImageError
from saccade.data.images.members import Member
from saccade.data.images.square import Fit
from saccade.data.readers.images.boxes.rows import header_size
from saccade.data.readers.images.region_files import LEAST, MOST
from saccade.errors import ConfigError, DataError, WriteError
from saccade.models.weights_digest import weights_digest
from saccade.printable import printable
from saccade.tasks.base import OtherRun, Progress
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.detection.detector import ObjectDetector
from saccade.tasks.detection.task import ASSET, class_chances, read_names_asset
from saccade.tasks.images import cache_folder
from saccade.tasks.joint.data import square_boxes

VERSION = 1  # of what is kept


class FoundRegions(NamedTuple):
    """The regions of an image by their corners, as shares of its sides, the likeliest first; and
    of each how likely it is of each class, without "no object", so that they sum to one.
    """

    boxes: Float[Tensor, "R 4"]
    chances: Float[Tensor, "R C"]


def find_regions(
    detector: ObjectDetector, images: UInt8[Tensor, "B 3 side side"]
) -> list[FoundRegions]:
    """Those of each image whose likeliest class is likely enough, and no more than `MOST`."""
    found = detector.found(detector.shown(images))
    chances = class_chances(found, classes=len(detector.classes)).cpu()
    boxes = to_corners(found.boxes[-1].float()).clamp(0, 1).cpu()
    scores = chances.amax(dim=-1)  # (B, Q)
    best = scores.topk(min(MOST, scores.shape[1]), dim=1)
    made = list[FoundRegions]()
    for image, (values, queries) in enumerate(zip(*best)):
        kept = queries[values >= LEAST]
        some = chances[image, kept]
        made.append(FoundRegions(boxes[image, kept], some / some.sum(dim=-1, keepdim=True)))
    return made


def opened_detector(run: OtherRun, option: str) -> ObjectDetector:
    """A run that finds objects, ready to do so; any other is refused."""
    if not isinstance(run.task, DetectionSettings):
        raise ConfigError(
            f"{option}: {printable(run.folder)} finds no objects; name a run that does, such as "
            "DETR's"
        )
    try:
        classes = read_names_asset((run.folder / ASSET).read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{option}: {printable(run.folder)} does not name its classes ({printable(error)}); "
            "copy the run again as a whole"
        ) from None
    return ObjectDetector(run.network, classes, run.task)


def detected(
    detector: ObjectDetector, files: list[Member], fit: Fit, progress: Progress
) -> KeptRows:
    """`counts` of the regions of all images, and end to end their `boxes` on the square image and
    `chances`: found once, and kept beside the decoded images.

    The files themselves count, not the small squares that a joint model sees of them.
    """
    seen = CacheSettings(size=detector.settings.image, fit="squeeze")
    found_by = [VERSION, found_by_what(detector), fit]
    key = json.dumps([fingerprint(files, seen), *found_by])
    folder = cache_folder()

    def compute() -> Iterator[Rows]:
        return _found_parts(detector, files, seen, fit, progress)

    try:
        return kept_rows(folder, "objects", key, compute)
    except OSError as error:
        raise WriteError(
            f"cannot keep what a detector finds in {folder}: {error.strerror}; make room, or name "
            "another place by --cache"
        ) from error


def found_by_what(detector: ObjectDetector) -> str:
    """What regions depend on beside the images."""
    assert isinstance(detector.model, torch.nn.Module)
    how = [weights_digest(detector.model), detector.settings.image, LEAST, MOST, detector.classes]
    return json.dumps(how)


def _found_parts(
    detector: ObjectDetector,
    files: list[Member],
    seen: CacheSettings,
    fit: Fit,
    progress: Progress,
) -> Iterator[Rows]:
    images = decoded(files, seen)
    for first in range(0, len(files), detector.batch):
        some = files[first : first + detector.batch]
        pixels = [_good(image, one) for image, one in zip(islice(images, len(some)), some)]
        found = find_regions(detector, torch.stack(pixels))
        boxes = [square_boxes(one.boxes, header_size(file), fit) for one, file in zip(found, some)]
        yield {
            "counts": torch.tensor([len(one) for one in boxes]),
            "boxes": torch.cat(boxes),
            "chances": torch.cat([one.chances for one in found]),
        }
        progress(first + len(some), len(files))


def _good(image: Tensor | ImageError, file: Member) -> UInt8[Tensor, "3 side side"]:
    if isinstance(image, ImageError):
        raise DataError(f"{file.name}: {image.reason}; leave the data alone while it is in use")
    return image
