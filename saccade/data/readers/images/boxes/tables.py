"""Boxes in CSV, one to a row; the first line names the columns.

    filename,width,height,class,xmin,ymin,xmax,ymax    corners; also x1,y1,x2,y2
    image_id,class,x,y,w,h                             left, top, width, height; also a bbox of JSON
    ImageID,LabelName,XMin,XMax,YMin,YMax,IsGroupOf    Open Images: shares of the image's sides
    images/1.jpg,12,30,200,180,cat                     RetinaNet: no such line; 1.jpg,,,,, is empty

Other numbers are pixels. Rows of one image are put together; a row without numbers is an image
without objects. Open Images' classes have their names in class-descriptions….csv, if it is there.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from saccade.data.readers.columns import Table, comma_table, find_column
from saccade.data.readers.images.boxes.checks import (
    CORNERS,
    SIDES,
    CheckedBox,
    Notation,
    Size,
    checked_box,
    finite_number,
    four_numbers,
)
from saccade.data.readers.images.boxes.jsonl import BOXES, IGNORED
from saccade.data.readers.images.boxes.rows import boxed_image, image_size, try_box
from saccade.data.readers.images.classes.tables import IMAGES, LABELS
from saccade.data.readers.images.rows import ImageFinder, ImageRow, image_under
from saccade.data.readers.images.source import TableSource, table_file, table_source
from saccade.data.readers.label_values import labels_of
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.records import json_value, shown_keys
from saccade.errors import DataError

_FOURS = {
    ("xmin", "ymin", "xmax", "ymax"): CORNERS,
    ("x_min", "y_min", "x_max", "y_max"): CORNERS,
    ("x1", "y1", "x2", "y2"): CORNERS,
    ("left", "top", "right", "bottom"): CORNERS,
    ("x", "y", "w", "h"): SIDES,
    ("bbox_x", "bbox_y", "bbox_width", "bbox_height"): SIDES,
    ("left", "top", "width", "height"): SIDES,
}
_BARE = ("image", "x1", "y1", "x2", "y2", "label")  # the columns of RetinaNet
_OPEN_IMAGES, _DESCRIPTIONS = "labelname", "class-descriptions"
_FILES, _LABELS = (*IMAGES, "imageid"), (*LABELS, _OPEN_IMAGES)
_IGNORED = (*IGNORED, "isgroupof")


class _Columns(NamedTuple):
    """The columns of a table: of the image, the label, and one or four of the box."""

    image: str
    label: str
    box: tuple[str, ...]
    notation: Notation
    ignored: str
    sides: tuple[str, str]  # height and width of the image, where they are declared


class _SaidBox(NamedTuple):
    """A row, and its line."""

    line: int
    fields: dict[str, Any]


def has_boxes(source: TableSource) -> bool:
    """Whether the first line of a table names the columns of boxes, or is a box itself."""
    try:
        return bool(_box_columns(_table(source).names)[0])
    except DataError:
        return False


def _table(source: TableSource) -> Table:
    lines, name = source.lines(), source.file.name
    first = next(lines, None)
    again = chain([first], lines)
    cells = (first or b"").decode(errors="replace").strip().split(",")
    bare = len(cells) == len(_BARE) and all(_is_number(one) for one in cells[1:5])
    return comma_table(again, name, _BARE if bare else ())


def _is_number(cell: str) -> bool:
    bare = cell.strip()
    return not bare or bare.removeprefix("-").replace(".", "", 1).isdecimal()


def _box_columns(names: Sequence[str]) -> tuple[tuple[str, ...], Notation]:
    for four, notation in _FOURS.items():
        found = tuple(find_column(names, [one]) for one in four)
        if all(found):
            shares = bool(find_column(names, [_OPEN_IMAGES]))
            return found, replace(notation, shares=shares)
    one = find_column(names, tuple(BOXES))
    return ((one,), BOXES[one.lower()]) if one else ((), CORNERS)


def _columns(table: Table, name: str) -> _Columns:
    box, notation = _box_columns(table.names)
    if not box:
        raise DataError(
            f"{name} has no columns for boxes in its first line; name them xmin, ymin, xmax, ymax"
        )
    image, label = find_column(table.names, _FILES), find_column(table.names, _LABELS)
    if not image or not label:
        raise DataError(
            f"{name} has no column for the {'label' if image else 'image'} of a box in its first "
            f"line; it has {shown_keys(table.names)}; name the columns there, as image and label"
        )
    sides = find_column(table.names, ["height"]), find_column(table.names, ["width"])
    declared = ("", "") if set(sides) & {*box, ""} else sides
    return _Columns(image, label, box, notation, find_column(table.names, _IGNORED), declared)


def table_rows(source: TableSource, finder: ImageFinder) -> Iterator[ImageRow | Problem]:
    """Those of a CSV file with a row for each box."""
    table, name = _table(source), source.file.name
    columns, names = _columns(table, name), _descriptions(source)
    found: dict[str, list[_SaidBox]] = {}

    def parse(raw: Any, number: int) -> None:
        fields = table.record(raw)
        if fields is not None:
            said = _SaidBox(number, fields)
            found.setdefault(fields[columns.image].strip(), []).append(said)

    yield from parse_rows(table.rows, name, parse, first=table.first)
    for image, said in found.items():
        try:
            yield from _image(image, said, columns, names, finder, name)
        except BadRow as bad:
            yield Problem(name, said[0].line, str(bad))


def _image(
    image: str,
    said: list[_SaidBox],
    columns: _Columns,
    names: dict[str, str],
    finder: ImageFinder,
    name: str,
) -> list[ImageRow | Problem]:
    line, fields = said[0]
    if not image:
        raise BadRow(f"missing image: {columns.image!r} is empty; name the image's file")
    member = finder.once(image_under({"image": image}, "image", finder), line, said="boxes")
    height, width = (fields[side].strip() if side else None for side in columns.sides)
    size = image_size(member, height=height or None, width=width or None)
    boxes = [
        try_box(name, one.line, lambda one=one: _box(one.fields, columns, names, size))
        for one in said
        if any(one.fields[key].strip() for key in columns.box)
    ]
    return boxed_image(member, size, boxes, file=name, line=line)


def _box(
    fields: dict[str, Any], columns: _Columns, names: dict[str, str], size: Size
) -> CheckedBox:
    label = labels_of(fields[columns.label], columns.label)[0]
    if len(columns.box) == 1:
        key = columns.box[0]
        numbers = four_numbers(json_value(fields[key]), key)
    else:
        a, b, c, d = (finite_number(fields[key], key) for key in columns.box)
        numbers = a, b, c, d
    ignored = bool(columns.ignored) and fields[columns.ignored].strip() == "1"
    named = names.get(label, label)
    return checked_box(named, numbers, columns.notation, size, ignored=ignored)


def _descriptions(source: TableSource) -> dict[str, str]:
    """The names of Open Images' classes, in a file beside the table."""
    near = str(PurePosixPath(source.entry.name).parent).strip(".")
    files = [one for one in source.tree.files(near) if _DESCRIPTIONS in one and ".csv" in one]
    if not files:
        return {}
    entry = table_file(files[0], near, f"{near}/{files[0]}".strip("/"))
    beside = table_source(source.tree, entry, whole=False)
    table = comma_table(beside.lines(), beside.file.name, ("id", "name"))
    rows = parse_rows(table.rows, beside.file.name, lambda raw, _: table.record(raw))
    return {row["id"]: row["name"] for row in rows if isinstance(row, dict)}
