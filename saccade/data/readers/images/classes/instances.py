"""COCO's instances as labels: the classes of an image are the categories of its annotations.

    {"images": [{"id", "file_name"}], "annotations": [{"image_id", "category_id"}],
     "categories": [{"id", "name"}]}

An image without annotations has no class, as COCO has them. Boxes and masks are not looked at.
"""

from collections.abc import Iterator
from typing import Any

from saccade.data.readers.images.coco import Id, coco_document, is_id, json_id, new_id
from saccade.data.readers.images.rows import ImageFinder, ImageRow
from saccade.data.readers.label_values import in_natural_order, labels_of
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.records import fields_of, shown_keys, text_under
from saccade.errors import DataError


def instances_document(raw: bytes, name: str) -> dict[str, Any]:
    """The JSON object, with lists of images, annotations and categories in it."""
    document = coco_document(raw, name)
    for key in ("annotations", "categories"):
        if not isinstance(document.get(key), list):
            raise DataError(
                f"{name} is not COCO instances: no list {key!r} in it; it has "
                f"{shown_keys(document)}"
            )
    return document


def instance_rows(
    document: dict[str, Any], name: str, finder: ImageFinder
) -> Iterator[ImageRow | Problem]:
    """Each image with the categories that its annotations name."""
    names: dict[Id, str] = {}
    yield from read_categories(document["categories"], f"{name}#categories", names)
    labels: dict[Id, set[str]] = {}
    for image in document["images"]:
        if isinstance(image, dict) and is_id(image.get("id")):
            labels[image["id"]] = set()
    yield from _annotations(document["annotations"], f"{name}#annotations", names, labels)
    taken: dict[Id, int] = {}

    def parse(value: object, number: int) -> ImageRow:
        fields = fields_of(value)
        key = new_id(fields, taken, number, "image")
        image = finder.once(finder.find(text_under(fields, "file_name")), number, said="labels")
        found = tuple(in_natural_order(labels[key]))
        return ImageRow(image, (), {"labels": found, "id": key}, f"{name}#images", number)

    yield from parse_rows(document["images"], f"{name}#images", parse)


def read_categories(categories: list[object], name: str, into: dict[Id, str]) -> Iterator[Problem]:
    """Put the name of each category under its id; what has none is a bad row."""
    taken: dict[Id, int] = {}

    def parse(value: object, number: int) -> None:
        fields = fields_of(value)
        key = new_id(fields, taken, number, "category")
        (label,) = labels_of(text_under(fields, "name"), "name")
        if label in into.values():
            raise BadRow(f"duplicate name: {label[:200]!r} is the name of another category")
        into[key] = label

    return parse_rows(categories, name, parse)


def _annotations(
    annotations: list[object], name: str, names: dict[Id, str], into: dict[Id, set[str]]
) -> Iterator[Problem]:
    def parse(value: object, _: int) -> None:
        fields = fields_of(value)
        image, category = json_id(fields, "image_id"), json_id(fields, "category_id")
        if image not in into:
            raise BadRow(f"no such image: no image has the id {image!r:.60}")
        if category not in names:
            raise BadRow(f"no such category: no category has the id {category!r:.60}")
        into[image].add(names[category])

    return parse_rows(annotations, name, parse)
