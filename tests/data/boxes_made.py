"""Small data sets of images with boxes, written in the forms of others."""

import io
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

from tests.data.images_made import rows

WIDTH, HEIGHT = 40, 20
CLASSES = ("dog", "cat", "a: b")  # in no natural order; the last is never used


class Said(NamedTuple):
    """An object as its maker knows it: corners in pixels."""

    label: str
    left: float
    top: float
    right: float
    bottom: float
    ignored: bool = False


Scenes = Mapping[str, Sequence[Said]]

TRAIN: Scenes = {
    "a.png": [Said("cat", 4, 2, 20, 10), Said("dog", 0, 0, 40, 20)],
    "b.png": [],
    "c.png": [Said("dog", 10, 5, 12, 6)],
}
VALID: Scenes = {"d.png": [Said("cat", 1, 2, 3, 4)]}


def blank(
    width: int = WIDTH, height: int = HEIGHT, *, form: str = "PNG", orientation: int = 0
) -> bytes:
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    sink = io.BytesIO()
    Image.fromarray(np.zeros((height, width, 3), np.uint8)).save(sink, form, exif=exif)
    return sink.getvalue()


def coco(scenes: Scenes, *, sizes: bool = True, **changed: object) -> bytes:
    size = {"width": WIDTH, "height": HEIGHT} if sizes else {}
    every = [(n, one) for n, found in enumerate(scenes.values()) for one in found]
    document = {
        "images": [{"id": 5 + n, "file_name": name, **size} for n, name in enumerate(scenes)],
        "annotations": [
            {
                "id": place,
                "image_id": 5 + n,
                "category_id": 7 * CLASSES.index(one.label),
                "bbox": [one.left, one.top, one.right - one.left, one.bottom - one.top],
                "iscrowd": int(one.ignored),
            }
            for place, (n, one) in enumerate(every)
        ],
        "categories": [{"id": 7 * n, "name": name} for n, name in enumerate(CLASSES)],
    }
    return json.dumps({**document, **changed}).encode()


def xml(
    name: str, found: Sequence[Said], *, size: tuple[int, int] | None = (WIDTH, HEIGHT)
) -> bytes:
    sides = f"<size><width>{size[0]}</width><height>{size[1]}</height></size>" if size else ""
    objects = "".join(
        f"<object><name>{one.label}</name><difficult>{int(one.ignored)}</difficult>"
        f"<part><bndbox><xmin>0</xmin></bndbox></part><bndbox><xmin>{one.left}</xmin>"
        f"<ymin>{one.top}</ymin><xmax>{one.right}</xmax><ymax>{one.bottom}</ymax></bndbox></object>"
        for one in found
    )
    return f"<annotation><filename>{name}</filename>{sides}{objects}</annotation>".encode()


def xmls(scenes: Scenes) -> dict[str, bytes]:
    return {f"{name[:-4]}.xml": xml(name, found) for name, found in scenes.items()}


def yolo(scenes: Scenes) -> dict[str, bytes]:
    """A text for each image that has objects."""
    return {
        f"{name[:-4]}.txt": "".join(map(yolo_line, found)).encode()
        for name, found in scenes.items()
        if found
    }


def yolo_line(one: Said) -> str:
    across, down = (one.left + one.right) / 2 / WIDTH, (one.top + one.bottom) / 2 / HEIGHT
    width, height = (one.right - one.left) / WIDTH, (one.bottom - one.top) / HEIGHT
    return f"{CLASSES.index(one.label)} {across!r} {down!r} {width!r} {height!r}\n"


def corners(scenes: Scenes) -> bytes:
    return rows(
        *(
            {
                "image": name,
                "objects": [
                    {"label": one.label, "box": [*one[1:5]], "ignored": one.ignored}
                    for one in found
                ],
            }
            for name, found in scenes.items()
        )
    )


def hugging_face(scenes: Scenes, key: str = "categories") -> bytes:
    return rows(
        *(
            {
                "file_name": name,
                "width": WIDTH,
                "height": HEIGHT,
                "objects": {
                    "bbox": [
                        [one.left, one.top, one.right - one.left, one.bottom - one.top]
                        for one in found
                    ],
                    key: [one.label for one in found],
                    "iscrowd": [int(one.ignored) for one in found],
                },
            }
            for name, found in scenes.items()
        )
    )


def pictures(scenes: Scenes) -> dict[str, bytes]:
    return {name: blank() for name in scenes}
