"""Boxes in JSON Lines: an image with all its objects on each line. Numbers are pixels.

    {"image": "a.jpg", "objects": [{"label": "cat", "box": [left, top, right, bottom]}, …]}
    {"file_name": "a.jpg", "objects": {"bbox": [[left, top, width, height], …],
                                       "categories": ["cat", …]}}

The second is Hugging Face's; a `box` has corners and a `bbox` has sides in both. `width` and
`height` may be declared, and an object may be marked as `ignored`, `iscrowd` or `difficult`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from saccade.data.readers.images.boxes.checks import (
    CORNERS,
    SIDES,
    CheckedBox,
    Notation,
    Size,
    checked_box,
    four_numbers,
)
from saccade.data.readers.images.boxes.rows import (
    Found,
    boxed_image,
    image_rows,
    image_size,
    try_box,
)
from saccade.data.readers.images.coco import is_id
from saccade.data.readers.images.rows import ImageFinder, ImageRow
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.label_values import labels_of
from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.text.records import (
    fields_of,
    first_key,
    json_line,
    kind_of,
    text_under,
)

FILES = ("image", "file_name", "filename", "file", "path")
OBJECTS = ("objects", "annotations")
LABELS = ("label", "labels", "category", "categories", "class", "classes", "name", "category_id")
BOXES: dict[str, Notation] = {"box": CORNERS, "boxes": CORNERS, "bbox": SIDES, "bboxes": SIDES}
IGNORED = ("ignored", "iscrowd", "is_crowd", "difficult")
IDS = ("id", "image_id")


class SaidObject(NamedTuple):
    """An object as a line has it."""

    label: object
    key: str  # of its box
    numbers: object
    ignored: object


def line_rows(source: TableSource, finder: ImageFinder) -> Iterator[ImageRow | Problem]:
    """Those of a file with a line for each image."""
    name = source.file.name
    return image_rows(source.lines(), name, lambda raw, n: _image(raw, name, n, finder))


def _image(raw: bytes | None, name: str, number: int, finder: ImageFinder) -> Found:
    fields = fields_of(json_line(raw))
    file = text_under(fields, first_key(fields, FILES))
    said = _objects(fields[first_key(fields, OBJECTS)])
    image = finder.once(finder.find(file), number, said="boxes")
    size = image_size(image, height=fields.get("height"), width=fields.get("width"))
    boxes = [
        try_box(name, number, lambda one=one: _box(one, size), told=f"object {place}")
        for place, one in enumerate(said, start=1)
    ]
    ids = [fields[key] for key in IDS if is_id(fields.get(key))]
    known = {"id": ids[0]} if ids else {}
    return boxed_image(image, size, boxes, file=name, line=number, **known)


def _objects(value: object) -> list[SaidObject | BadRow]:
    if isinstance(value, list):
        return [_object(one) for one in cast(list[object], value)]
    if not isinstance(value, dict):
        raise BadRow(f"wrong type: 'objects' is {kind_of(value)}, not a list or an object of lists")
    columns = cast(dict[str, Any], value)
    label, box = first_key(columns, LABELS), first_key(columns, tuple(BOXES))
    marks = next((key for key in IGNORED if key in columns), None)
    every = {key: columns[key] for key in (label, box, marks) if key is not None}
    lists = {key: one for key, one in every.items() if isinstance(one, list)}
    for key in every.keys() - lists.keys():
        raise BadRow(f"wrong type: {key!r} is {kind_of(every[key])}, not a list")
    if len({len(one) for one in lists.values()}) > 1:
        counts = ", ".join(f"{len(one)} of {key!r}" for key, one in lists.items())
        raise BadRow(f"not as many: {counts}; give one of each for each object")
    flags: list[object] = lists[marks] if marks else [False] * len(lists[box])
    return [SaidObject(*one) for one in zip(lists[label], [box] * len(flags), lists[box], flags)]


def _object(value: object) -> SaidObject | BadRow:
    try:
        fields = fields_of(value)
        label, box = first_key(fields, LABELS), first_key(fields, tuple(BOXES))
    except BadRow as bad:
        return bad
    ignored = next((fields[key] for key in IGNORED if key in fields), False)
    return SaidObject(fields[label], box, fields[box], ignored)


def _box(said: SaidObject | BadRow, size: Size) -> CheckedBox:
    if isinstance(said, BadRow):
        raise said
    if isinstance(said.label, list | dict):
        raise BadRow(f"wrong type: the label is {kind_of(said.label)}, not a string or a number")
    (label,) = labels_of(said.label, "label")
    numbers = four_numbers(said.numbers, said.key)
    ignored = said.ignored in (1, "1")  # True is 1
    return checked_box(label, numbers, BOXES[said.key], size, ignored=ignored)
