"""Objects that were found, in the forms that others read: COCO's JSON and YOLO's lines.

What is found is in pixels of the upright image.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from saccade.data.readers.images.coco import Id
from saccade.errors import ConfigError


class FoundBox(NamedTuple):
    """An object that was found, with its score in 0 … 1."""

    label: str
    score: float
    left: float
    top: float
    right: float
    bottom: float


class FoundInImage(NamedTuple):
    """What was found in one image. Its `id` is that of the user's COCO file, where there is one."""

    file: str
    size: tuple[int, int]  # height, width
    boxes: Sequence[FoundBox]
    id: Id | None = None


def class_ids(names: Sequence[str], *, first: int = 1) -> dict[str, Id]:
    """Numbers for classes, where the data have none of their own; COCO begins with 1."""
    return {name: number for number, name in enumerate(names, start=first)}


def coco_results(images: Sequence[FoundInImage], ids: Mapping[str, Id]) -> list[dict[str, Any]]:
    """What COCO's evaluation reads: an entry for each box, by the ids of images and categories.

    Images without an id are numbered by their place, from 1.
    """
    return [
        {
            "image_id": _id(image, place),
            "category_id": _number(box.label, ids),
            "bbox": _sides(box),
            "score": box.score,
        }
        for place, image in enumerate(images, start=1)
        for box in image.boxes
    ]


def coco_dataset(images: Sequence[FoundInImage], ids: Mapping[str, Id]) -> dict[str, Any]:
    """A whole document, which says of itself which images and categories there are."""
    found = coco_results(images, ids)
    return {
        "images": [
            {
                "id": _id(image, place),
                "file_name": image.file,
                "height": image.size[0],
                "width": image.size[1],
            }
            for place, image in enumerate(images, start=1)
        ],
        "annotations": [
            {"id": place, **one, "area": one["bbox"][2] * one["bbox"][3], "iscrowd": 0}
            for place, one in enumerate(found, start=1)
        ],
        "categories": [{"id": number, "name": name} for name, number in ids.items()],
    }


def yolo_lines(found: FoundInImage, ids: Mapping[str, Id]) -> list[str]:
    """A line for each box: class cx cy width height score, in shares of the image's sides."""
    height, width = found.size
    lines: list[str] = []
    for box in found.boxes:
        left, top, wide, high = _sides(box)
        shares = (left + wide / 2) / width, (top + high / 2) / height, wide / width, high / height
        numbers = " ".join(f"{one:.8f}" for one in (*shares, box.score))
        lines.append(f"{_number(box.label, ids)} {numbers}")
    return lines


def _id(image: FoundInImage, place: int) -> Id:
    return place if image.id is None else image.id


def _number(label: str, ids: Mapping[str, Id]) -> Id:
    if label not in ids:
        raise ConfigError(
            f"{label!r} was found, and is none of the {len(ids):,} classes; give all of them"
        )
    return ids[label]


def _sides(box: FoundBox) -> list[float]:
    return [box.left, box.top, box.right - box.left, box.bottom - box.top]
