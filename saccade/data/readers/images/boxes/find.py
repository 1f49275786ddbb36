"""Where a folder, archive or file has images with boxes, and in which form."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from saccade.data.readers.images.boxes.coco import coco_rows
from saccade.data.readers.images.boxes.jsonl import line_rows
from saccade.data.readers.images.boxes.rows import BoxFile
from saccade.data.readers.images.boxes.tables import has_boxes, table_rows
from saccade.data.readers.images.boxes.voc import find_voc
from saccade.data.readers.images.boxes.yolo_layout import YAML, find_yolo
from saccade.data.readers.images.rows import ImageRow
from saccade.data.readers.images.source import (
    ANNOTATIONS,
    TableFile,
    single_source,
    table_file,
    table_source,
)
from saccade.data.readers.images.split_folders import splits_among
from saccade.data.readers.images.tree import ARCHIVES, Folder, Tree, join, tree_of
from saccade.data.readers.report import Problem, listed
from saccade.data.readers.stems import SPLITS, fitting_stems, split_stem
from saccade.errors import DataError
from saccade.printable import printable

WHOLE = ""  # the name of what is named after no split
FORMS = "COCO .json, Pascal VOC (Annotations/*.xml), YOLO (images/ and labels/), .jsonl or .csv"
_SAID = re.compile(r"[._-]?(labels?|annotations?|metadata|boxes|bbox|coco|instances)$")
_NOT_BOXES = ("captions", "person_keypoints", "panoptic", "stuff", "image_info", "dataset_info")


class BoxSource(Protocol):
    """Images with boxes, of a split or of all."""

    @property
    def name(self) -> str: ...

    @property
    def used(self) -> list[str]: ...

    def rows(self, split: str) -> Iterator[ImageRow | Problem]: ...


Parts = Mapping[str, BoxSource]


def find_boxes(data: Path) -> Parts:
    """All parts of the data, by what they are named after; WHOLE is one that is all train."""
    if not data.is_dir() and (found := _single(data)):
        return found
    tree, top = tree_of(data)
    base = top
    while not (found := _parts(tree, base)):
        folders = tree.folders(base)
        if len(folders) != 1:
            held = listed([*tree.folders(top), *tree.files(top)]) or "nothing"
            raise DataError(f"{printable(data)} has no boxes: neither {FORMS}; it holds {held}")
        base = join(base, folders[0])
    return found


def _single(data: Path) -> Parts:
    """A file that was given by itself."""
    name = data.name.lower()
    if name.endswith(YAML):
        table_source(Folder(data.parent), table_file(data.name, "", data.name), whole=True)
        if found := find_yolo(Folder(data.parent), "", data.name):
            return found
        raise DataError(
            f"{printable(data)} names no folder with images that is there; check its 'train'"
        )
    form = name.removesuffix(".gz").rpartition(".")[2]
    if form in _ROWS_OF:
        return {WHOLE: BoxFile(single_source(data), _ROWS_OF[form])}
    if data.exists() and not (name.endswith((*ARCHIVES, ".tgz")) or ".tar." in name):
        raise DataError(
            f"{printable(data)}: images with boxes are read from a folder, .tar, .zip, COCO .json, "
            ".jsonl, .csv or YOLO's data.yaml; give one"
        )
    return {}


_ROWS_OF = {"json": coco_rows, "jsonl": line_rows, "csv": table_rows}


def _parts(tree: Tree, base: str) -> Parts:
    """What is right in a folder, in the first of the forms that it has."""
    finders: list[Callable[[], Parts]] = [
        lambda: _tables(tree, base, "json"),
        lambda: find_voc(tree, base),
        lambda: find_yolo(tree, base),
        lambda: _tables(tree, base, "jsonl"),
        lambda: _tables(tree, base, "csv"),
    ]
    return next((found for find in finders if (found := find())), {})


def _tables(tree: Tree, base: str, form: str) -> Parts:
    """Files with the boxes of each split, beside each other or in the splits' folders."""
    every = _files(tree, base, base, form)
    named = {entry.stem: entry for entry in every if _named_after_split(entry.stem)}
    if len(named) < sum(_named_after_split(entry.stem) for entry in every):
        names = listed([entry.name for entry in every])
        raise DataError(
            f"{printable(tree.path)} has {names}, several for one split; keep one, or give one file"
        )
    folders: dict[str, TableFile] = {}
    for stem, name in splits_among(tree.folders(base)).items():
        folder = join(base, name)
        mine = [one for one in _files(tree, folder, folder, form) if _looks_right(tree, one)]
        if mine:
            folders[stem] = mine[0]
    found = named if fitting_stems("train", named) else folders or named
    if found:
        return {
            stem: BoxFile(table_source(tree, entry, whole=False), _ROWS_OF[form])
            for stem, entry in found.items()
        }
    rest = [entry for entry in every if _looks_right(tree, entry)]
    if len(rest) > 1:
        names = listed([entry.name for entry in rest])
        raise DataError(f"{printable(tree.path)} has {names}; give the one with the boxes")
    if not rest:
        return {}
    return {WHOLE: BoxFile(table_source(tree, rest[0], whole=True), _ROWS_OF[form])}


def _files(tree: Tree, base: str, folder: str, form: str) -> list[TableFile]:
    """The files of this form in a folder and its annotations/, by what they are named after."""
    found: list[TableFile] = []
    holders = [name for name in tree.folders(folder) if name.lower() == ANNOTATIONS]
    for place in (folder, *(join(folder, name) for name in holders)):
        for name in tree.files(place):
            entry = table_file(name, base, join(place, name))
            told = entry.form == form and not entry.stem.lower().startswith(_NOT_BOXES)
            if told and (form != "csv" or _looks_right(tree, entry)):
                stem = split_stem(_SAID.sub("", _SAID.sub("", entry.stem.lower())))
                found.append(TableFile(stem or entry.stem, form, entry.name, base))
    return found


def _named_after_split(stem: str) -> bool:
    return any(fitting_stems(split, [stem]) for split in SPLITS)


def _looks_right(tree: Tree, entry: TableFile) -> bool:
    """Whether a file that is named after nothing has boxes: others leave JSON about, too."""
    if entry.form == "jsonl":
        return True
    source = table_source(tree, entry, whole=True)
    if entry.form == "csv":
        return has_boxes(source)
    raw = source.document()
    return b'"images"' in raw and b'"annotations"' in raw
