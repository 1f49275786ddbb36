"""Tables of images and labels: CSV, TSV, JSON Lines, Parquet, Arrow, COCO's instances.

A row names its image, or holds its bytes. Its label is a string, a number or a list; in a cell of
CSV or TSV, "|" stands between several labels.
"""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

from saccade.data.images.members import Member
from saccade.data.readers.images.classes.arrow import arrow_columns, arrow_records
from saccade.data.readers.images.classes.features import TableColumns, class_label_names
from saccade.data.readers.images.classes.instances import instance_rows, instances_document
from saccade.data.readers.images.classes.parquet import parquet_columns, parquet_records
from saccade.data.readers.images.classes.values import labels_in, labels_of
from saccade.data.readers.images.rows import ENDINGS, ImageFinder, ImageRow
from saccade.data.readers.images.source import TableSource
from saccade.data.readers.images.tree import Folder
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.lines import filled, text_of
from saccade.data.readers.text.parquet import whole_row
from saccade.data.readers.text.records import as_text, fields_of, json_line, kind_of, shown_keys
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
_ALIASES = {"training": "train", "testing": "test", "evaluation": "valid", "eval": "valid"}


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
    record: Callable[[Any], dict[str, Any]]
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
        rows = parse_rows(table.rows, "", lambda raw, _: str(table.record(raw).get(table.split)))
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


def split_stem(name: str) -> str:
    """What a name of a split is in small letters, and in the usual words."""
    small = name.strip().lower()
    return _ALIASES.get(small, small)


def _row(
    raw: Any, number: int, *, table: Records, name: str, finder: ImageFinder, split: str
) -> ImageRow | None:
    fields = table.record(raw)
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
    image = _image(fields[table.image], table.image, finder)
    return ImageRow(finder.once(image, number, said="labels"), (), {"labels": labels}, name, number)


def _image(value: object, key: str, finder: ImageFinder) -> Member:
    if isinstance(value, Member):
        return value
    if isinstance(value, dict):  # as Hugging Face has it, without the bytes
        value = cast(dict[str, object], value).get("path")
    if value is None:
        raise BadRow(f"missing image: {key!r} holds neither bytes nor a path")
    if not isinstance(value, str):
        raise BadRow(f"wrong type: {key!r} is {kind_of(value)}, not a path or the bytes of a file")
    name = as_text(value, key).strip().replace("\\", "/")
    names = [name, name.removeprefix(f"{finder.root}/")]
    if not name.lower().endswith(ENDINGS):  # named by an id
        names += [name + ending for ending in ENDINGS]
    return finder.find(*dict.fromkeys(names))


def _keys(
    where: str, names: Sequence[str], columns: LabelColumns, *, whole: bool, hint: str = ""
) -> tuple[str, str, str]:
    """The columns of the image, of the label and of the split, "" if there is none of the last."""
    found = [
        _key(where, names, columns.image, IMAGES, f"image{hint}"),
        _key(where, names, columns.label, LABELS, f"label{hint}"),
    ]
    split = next((name for name in names if name.lower() == SPLIT), "") if whole else ""
    return found[0], found[1], split


def _key(where: str, names: Sequence[str], given: str, usual: Sequence[str], what: str) -> str:
    small = {name.strip().lower(): name for name in reversed(names)}
    for name in [given] if given else usual:
        if name in names or name in small:
            return name if name in names else small[name]
    sought = repr(given) if given else f"for the {what}"
    option = f"--{what.partition(' ')[0]}-column"
    raise DataError(
        f"{where} has no column {sought}; it has {shown_keys(names)}; name yours with {option}"
    )


def _csv(source: TableSource, columns: LabelColumns) -> Records:
    return _separated(source, columns, _comma_cells)


def _tsv(source: TableSource, columns: LabelColumns) -> Records:
    return _separated(source, columns, lambda text, _: text.split("\t"))


def _comma_cells(text: str, header: str) -> list[str]:
    mark = "," if "," in header or ";" not in header else ";"
    try:
        return next(csv.reader([text], delimiter=mark, strict=True))
    except csv.Error as error:
        raise BadRow(f"not CSV: {error}") from None


def _separated(
    source: TableSource, columns: LabelColumns, cells: Callable[[str, str], list[str]]
) -> Records:
    rows, name = source.lines(), source.file.name
    try:
        header = filled(text_of(next(rows)))
        names = [cell.strip() for cell in cells(header, header)]
    except BadRow as bad:
        raise DataError(f"{name}:1: {bad}; the first line must name the columns") from None
    hint = " in its first line"
    image, label, split = _keys(name, names, columns, whole=source.whole, hint=hint)

    def record(raw: bytes | None) -> dict[str, Any]:
        found = cells(filled(text_of(raw)), header)
        if len(found) != len(names):
            raise BadRow(f"not {len(names)} columns: {len(found)} found")
        return dict(zip(names, found))

    labels = partial(labels_in, key=label, separator=columns.separator)
    return Records(rows, record, image, label, split, labels, first=2)


def _jsonl(source: TableSource, columns: LabelColumns) -> Records:
    def record(raw: bytes | None) -> dict[str, Any]:
        return fields_of(json_line(raw))

    good = parse_rows(source.lines(), "", lambda raw, _: record(raw))
    first = next((row for row in good if not isinstance(row, Problem)), None)
    if first is None:
        raise DataError(f"{source.file.name} is not JSON Lines: no line of it is an object")
    image, label, split = _keys(source.file.name, list(first), columns, whole=source.whole)
    return Records(source.lines(), record, image, label, split, partial(labels_of, key=label))


def _columnar(
    source: TableSource,
    columns: LabelColumns,
    columns_of: Callable[[Path], TableColumns],
    records: Callable[[Path, set[str], str], Iterator[dict[str, Any] | None]],
) -> Records:
    path = source.file.path
    if not isinstance(source.tree, Folder) or path.suffix == ".gz":
        raise DataError(f"{source.file.name} is packed; unpack it, and give the folder")
    held = columns_of(path)
    image, label, split = _keys(source.file.name, held.names, columns, whole=source.whole)
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
