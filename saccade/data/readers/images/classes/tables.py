"""Tables of images and labels: CSV, TSV, JSON Lines, Parquet, Arrow, COCO's instances.

A row names its image, or holds its bytes. Its label is a string, a number or a list; in a cell of
CSV or TSV, "|" stands between several labels, or each class has a column of 0 and 1:

    image,cat,dog,bird
    1.jpg,1,0,1
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from saccade.data.readers.arrow_streams import arrow_columns
from saccade.data.readers.columns import (
    Table,
    comma_table,
    find_column,
    json_table,
    require_column,
    tab_table,
)
from saccade.data.readers.features import TableColumns, class_label_names
from saccade.data.readers.images.classes.arrow import arrow_records
from saccade.data.readers.images.classes.instances import instance_rows, instances_document
from saccade.data.readers.images.classes.parquet import parquet_records
from saccade.data.readers.images.rows import ENDINGS, ImageFinder, ImageRow, image_under
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.label_values import in_natural_order, labels_in, labels_of
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.stems import SPLITS, split_stem
from saccade.data.readers.text.lines import filled, text_of
from saccade.data.readers.text.parquet import parquet_columns, whole_row
from saccade.data.readers.text.records import as_text, shown_keys
from saccade.errors import DataError

IMAGES = (
    *("image", "file_name", "filename", "file", "path", "img", "image_path", "img_path"),
    *("file_path", "filepath", "filepaths", "image_file", "image_name", "image_id", "id"),
)
LABELS = (
    *("label", "labels", "class", "classes", "category", "categories", "target", "y"),
    *("class_name", "tag", "tags", "class_id", "classid", "label_id", "category_id"),
)
SPLIT = "split"
_ONE_HOT = ""  # the key of all columns of classes together; no column of a class has this name
_MARKS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}


@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    """Names of columns, where they are not the usual ones; and what stands between labels."""

    image: str = ""
    label: str = ""
    separator: str = "|"  # in a cell of CSV or TSV


USUAL = LabelColumns()


@dataclass(frozen=True)
class Records:
    """The rows of a table, the first of which has the number `first`, and what they are called."""

    rows: Iterable[Any]
    record: Callable[[Any], dict[str, Any] | None]
    image: str
    label: str
    split: str
    labels: Callable[[Any], tuple[str, ...]]
    first: int = 1


@dataclass
class LabelTable:
    """A file with the labels of a split, or of all."""

    source: TableSource
    columns: LabelColumns
    used: list[str] = field(default_factory=list[str])  # archives that images were found in

    @property
    def name(self) -> str:
        return self.source.file.name

    def splits(self) -> list[str]:
        """Which splits its rows name; all is train where they name none."""
        form = self.source.entry.form
        if form == "json":
            return ["train"]
        table = _FORMS[form](self.source, self.columns)
        if not table.split:
            return ["train"]
        rows = parse_rows(
            table.rows, "", lambda raw, _: str((table.record(raw) or {}).get(table.split))
        )
        named = {split_stem(row) for row in rows if isinstance(row, str)}
        return [split for split, names in SPLITS.items() if named & set(names)]

    def rows(self, split: str) -> Iterator[ImageRow | Problem]:
        """The images of a split with their labels."""
        finder, form = self.source.places(), self.source.entry.form
        self.used = finder.used
        if form == "json":
            self.source.require_train(split)
            document = instances_document(self.source.document(), self.name)
            return instance_rows(document, self.name, finder)
        table = _FORMS[form](self.source, self.columns)
        if not table.split:
            self.source.require_train(split)
        parse = partial(_row, table=table, name=self.name, finder=finder, split=split)
        return parse_rows(table.rows, self.name, parse, first=table.first)


def _row(
    raw: Any, number: int, *, table: Records, name: str, finder: ImageFinder, split: str
) -> ImageRow | None:
    fields = table.record(raw)
    if fields is None:
        return None
    if table.split:
        named = split_stem(as_text(fields.get(table.split), table.split))
        usual = next((names for names in SPLITS.values() if named in names), None)
        if usual is None:
            raise BadRow(f"no such split: {named[:200]!r} is none of {', '.join(SPLITS)}")
        if split not in usual:
            return None
    for key in (table.image, table.label):
        if key not in fields:
            raise BadRow(f"missing key: no {key!r}; it has {shown_keys(fields)}")
    labels = table.labels(fields[table.label])
    image = image_under(fields, table.image, finder)
    return ImageRow(finder.once(image, number, said="labels"), (), {"labels": labels}, name, number)


def _records(
    table: Table, source: TableSource, columns: LabelColumns, labels: Callable[..., tuple[str, ...]]
) -> Records:
    hint = " in its first line" if table.first > 1 else ""
    if hint and any(name.lower().endswith(ENDINGS) for name in table.names):
        raise DataError(
            f"{source.file.name} has a row where the columns should be named, "
            f"{shown_keys(table.names)}; put a first line above it, such as file_name,label"
        )
    rows = iter(table.rows)
    ahead = list(islice(rows, 1)) if hint else []
    table = table._replace(rows=chain(ahead, rows))
    if hint and (classes := _class_columns(table, ahead, source, columns)):
        return _one_hot(table, source, columns, classes)
    image, label, split = _keys(source, table.names, columns, hint)
    labels = partial(labels, key=label)
    return Records(table.rows, table.record, image, label, split, labels, table.first)


def _class_columns(
    table: Table, ahead: list[Any], source: TableSource, columns: LabelColumns
) -> list[str]:
    """The columns that are classes: those that were named, or all but the image's and the split's
    where there is none for the label and the first row has 0 or 1 in each.
    """
    named = [name.strip() for name in columns.label.split(",")]
    if len(named) > 1 and columns.label not in table.names:
        return [find_column(table.names, [one]) or one for one in named]
    if columns.label or find_column(table.names, LABELS):
        return []
    image = find_column(table.names, [columns.image] if columns.image else IMAGES)
    split = find_column(table.names, [SPLIT]) if source.whole else ""
    others = [name for name in table.names if name not in ("", image, split)]  # "" is an index
    rows = parse_rows(ahead, "", lambda raw, _: table.record(raw))
    first = next((row for row in rows if isinstance(row, dict)), None)
    marked = first is not None and all(_mark(first[name]) is not None for name in others)
    return others if image and len(others) > 1 and marked else []


def _one_hot(
    table: Table, source: TableSource, columns: LabelColumns, classes: list[str]
) -> Records:
    """Rows with the classes whose columns are 1 under one key."""
    lacking = [name for name in classes if name not in table.names]
    if lacking:
        require_column(source.file.name, table.names, lacking[0], (), "label")
    image = require_column(source.file.name, table.names, columns.image, IMAGES, "image")
    split = find_column(table.names, [SPLIT]) if source.whole else ""

    def record(raw: Any) -> dict[str, Any] | None:
        fields = table.record(raw)
        return fields and {**fields, _ONE_HOT: [(name, fields[name]) for name in classes]}

    return Records(table.rows, record, image, _ONE_HOT, split, _marked_classes, table.first)


def _marked_classes(cells: list[tuple[str, str]]) -> tuple[str, ...]:
    found: list[str] = []
    for name, cell in cells:
        mark = _mark(cell)
        if mark is None:
            raise BadRow(f"not 0 or 1: {name!r} is {cell!r:.60}; a column of a class has 0 or 1")
        found += [name] * mark
    return tuple(in_natural_order(found))


def _mark(cell: str) -> bool | None:
    """What a cell says of a class; None if nothing."""
    return _MARKS.get(cell.strip().lower())


def _keys(
    source: TableSource, names: Sequence[str], columns: LabelColumns, hint: str = ""
) -> tuple[str, str, str]:
    """The columns of the image, of the label and of the split, "" if there is none of the last."""
    where = source.file.name
    image = require_column(where, names, columns.image, IMAGES, f"image{hint}")
    more = ", or several of 0 and 1, as --label-column cat,dog" if hint else ""
    label = require_column(where, names, columns.label, LABELS, f"label{hint}", more=more)
    return image, label, find_column(names, [SPLIT]) if source.whole else ""


def _csv(source: TableSource, columns: LabelColumns) -> Records:
    labels = partial(labels_in, separator=columns.separator)
    return _records(comma_table(source.lines(), source.file.name), source, columns, labels)


def _tsv(source: TableSource, columns: LabelColumns) -> Records:
    labels = partial(labels_in, separator=columns.separator)
    return _records(tab_table(source.lines(), source.file.name), source, columns, labels)


def _jsonl(source: TableSource, columns: LabelColumns) -> Records:
    return _records(json_table(source.lines, source.file.name), source, columns, labels_of)


def _columnar(
    source: TableSource,
    columns: LabelColumns,
    columns_of: Callable[[Path], TableColumns],
    records: Callable[[Path, set[str], str], Iterator[dict[str, Any] | None]],
) -> Records:
    path = source.plain_path()
    held = columns_of(path)
    image, label, split = _keys(source, held.names, columns)
    names = class_label_names(held.features, label)
    rows = records(path, {image, label, split} - {""}, image)
    labels = partial(labels_of, key=label, names=names)
    return Records(rows, whole_row, image, label, split, labels)


def _annotated(source: TableSource, _: LabelColumns) -> Records:
    def record(raw: bytes | None) -> dict[str, Any]:
        cells = filled(text_of(raw)).split("\t")
        if len(cells) < 2:
            raise BadRow("not 2 columns: no tab in the line")
        return dict(zip(("file", "class"), cells))

    labels = partial(labels_of, key="class")
    return Records(source.lines(), record, "file", "class", "", labels)


_FORMS: dict[str, Callable[[TableSource, LabelColumns], Records]] = {
    "csv": _csv,
    "tsv": _tsv,
    "jsonl": _jsonl,
    "parquet": partial(_columnar, columns_of=parquet_columns, records=parquet_records),
    "arrow": partial(_columnar, columns_of=arrow_columns, records=arrow_records),
    "txt": _annotated,
}
