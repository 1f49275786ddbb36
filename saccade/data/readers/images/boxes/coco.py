"""COCO's instances as boxes.

    {"images": [{"id", "file_name", "height", "width"}],
     "annotations": [{"image_id", "category_id", "bbox": [left, top, width, height], "iscrowd"}],
     "categories": [{"id", "name"}]}

Numbers are pixels. A crowd is to be ignored. The "line" of a bad row is its place in the list,
from 1.
"""

from collections.abc import Iterator
from typing import Any, cast

from saccade.data.readers.images.boxes.checks import (
    SIDES,
    CheckedBox,
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
from saccade.data.readers.images.classes.instances import instances_document, read_categories
from saccade.data.readers.images.coco import Id, is_id, json_id, new_id
from saccade.data.readers.images.rows import ImageFinder, ImageRow
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.records import fields_of, shown_keys, text_under

Annotations = dict[Id, list[tuple[int, dict[str, Any]]]]  # by image, with their places in the list


def coco_rows(source: TableSource, finder: ImageFinder) -> Iterator[ImageRow | Problem]:
    """Those of a JSON file."""
    name = source.file.name
    return _rows(instances_document(source.document(), name), name, finder)


def _rows(document: dict[str, Any], name: str, finder: ImageFinder) -> Iterator[ImageRow | Problem]:
    names: dict[Id, str] = {}
    yield from read_categories(document["categories"], f"{name}#categories", names)
    mine: Annotations = {}
    for image in document["images"]:
        if isinstance(image, dict) and is_id(cast(dict[str, Any], image).get("id")):
            mine[image["id"]] = []
    yield from _by_image(document["annotations"], f"{name}#annotations", mine)
    classes = {label: key for key, label in names.items()}
    taken: dict[Id, int] = {}

    def parse(value: object, number: int) -> Found:
        fields = fields_of(value)
        key = new_id(fields, taken, number, "image")
        found = finder.find(text_under(fields, "file_name"))
        image = finder.once(found, number, said="boxes")
        size = image_size(image, height=fields.get("height"), width=fields.get("width"))
        boxes = [
            try_box(f"{name}#annotations", place, lambda said=said: _box(said, names, size))
            for place, said in mine[key]
        ]
        file = f"{name}#images"
        return boxed_image(image, size, boxes, file=file, line=number, classes=classes, id=key)

    yield from image_rows(document["images"], f"{name}#images", parse)


def _by_image(annotations: list[object], name: str, into: Annotations) -> Iterator[Problem]:
    """Put each annotation with its image; what has none is a bad row."""
    taken: dict[Id, int] = {}

    def parse(value: object, number: int) -> None:
        fields = fields_of(value)
        if "id" in fields:
            new_id(fields, taken, number, "annotation")
        image = json_id(fields, "image_id")
        if image not in into:
            raise BadRow(f"no such image: no image has the id {image!r:.60}")
        into[image].append((number, fields))

    return parse_rows(annotations, name, parse)


def _box(said: dict[str, Any], names: dict[Id, str], size: Size) -> CheckedBox:
    category = json_id(said, "category_id")
    if category not in names:
        raise BadRow(f"no such category: no category has the id {category!r:.60}")
    if "bbox" not in said:
        raise BadRow(f"missing key: no 'bbox'; it has {shown_keys(said)}")
    numbers = four_numbers(said["bbox"], "bbox")
    return checked_box(names[category], numbers, SIDES, size, ignored=said.get("iscrowd") == 1)
