"""Where a folder, archive or file has images with labels, by what each part is named after."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from saccade.data.readers.images.classes.folders import ClassFolders, class_folders
from saccade.data.readers.images.classes.tables import LABELS, LabelColumns, LabelTable
from saccade.data.readers.images.named import has_images
from saccade.data.readers.images.rows import ImageRow
from saccade.data.readers.images.source import (
    ANNOTATIONS,
    TableFile,
    single_source,
    table_file,
    table_source,
)
from saccade.data.readers.images.split_folders import images_alone, splits_among
from saccade.data.readers.images.tar_rows import TarLabels
from saccade.data.readers.images.tree import ARCHIVES, Tree, join, tree_of
from saccade.data.readers.many_files import matching_files
from saccade.data.readers.report import Problem, listed
from saccade.data.readers.saved_datasets import STATE, saved_files, saved_folders
from saccade.data.readers.stems import SHARD, SPLITS, fitting_stems, split_stem
from saccade.data.readers.tar_shards import image_tars
from saccade.errors import DataError
from saccade.printable import printable

TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow")
WHOLE = ""  # the name of what is named after no split
_SAID = re.compile(r"[._-]?(labels?|annotations?|metadata)$")
_TABLES_OF_SPLITS = ("_annotations.txt", "_annotations.coco.json", "_classes.csv")
_FOR_ALL = ("metadata", "labels", "annotations", "dataset", "data", "all")
_NOT_LABELS = ("captions", "person_keypoints", "panoptic", "stuff", "image_info", "dataset_info")


class LabelSource(Protocol):
    """Images with labels. `splits` are those that its rows name."""

    @property
    def name(self) -> str: ...

    @property
    def used(self) -> list[str]: ...

    def splits(self) -> list[str]: ...

    def rows(self, split: str) -> Iterator[ImageRow | Problem]: ...


Sources = dict[str, list[LabelSource]]


def find_labels(data: Path, columns: LabelColumns) -> Sources:
    """All parts of the data, by their names in small letters; WHOLE is one that has all splits."""
    usual = (columns.label,) if columns.label else LABELS
    if tars := image_tars(data, usual):
        return {
            stem: [TarLabels(path, columns.label, LABELS) for path in paths]
            for stem, paths in tars.items()
        }
    if parts := matching_files(data):
        return {WHOLE: [LabelTable(single_source(part), columns) for part in parts]}
    if _form(data.name) in (*TABLES, "json") and not data.is_dir():
        return {WHOLE: [LabelTable(single_source(data), columns)]}
    if data.is_file() and not _archive(data.name.lower()):
        raise DataError(
            f"{printable(data)}: images with classes are read from a folder, .tar, .zip, "
            f"{', '.join(f'.{form}' for form in TABLES)} or COCO .json; give one"
        )
    tree, base = tree_of(data)
    base = _start(tree, base)
    if saved := _saved(tree, base, columns):
        return saved
    tables, folders = _tables(tree, base), _split_folders(tree, base)
    named = {stem: mine for stem, mine in tables.items() if _split_name(stem)}
    labelled = any(_labelled(tree, join(base, folders[s])) for s in fitting_stems("train", folders))
    if named and (fitting_stems("train", named) or not labelled):
        return {stem: _sources(tree, mine, columns) for stem, mine in named.items()}
    if folders and (labelled or not tables):
        return _folders(tree, base, folders, columns)
    return {WHOLE: [_whole(tree, base, tables, columns)]}


def _archive(name: str) -> bool:
    return name.endswith((*ARCHIVES, ".tgz")) or ".tar." in name


def _split_name(stem: str) -> bool:
    return any(fitting_stems(split, [stem]) for split in SPLITS)


def _start(tree: Tree, base: str) -> str:
    """Go down into a lone folder that holds the data, and is neither a split nor a class.

    So into `images` with folders of classes, beside folders of annotations.
    """
    while not has_images(tree, base) and not _tables(tree, base):
        folders = tree.folders(base)
        if splits_among(folders) or not folders:
            return base
        if len(folders) > 1:
            below = images_alone(tree, base)
            whole = below and class_folders(tree, join(base, below))
            return join(base, below) if whole else base
        lone = join(base, folders[0])
        whole = tree.folders(lone) and not has_images(tree, lone)
        if not whole and not _tables(tree, lone) and STATE not in tree.files(lone):
            return base
        base = lone
    return base


def _form(name: str) -> str:
    return name.lower().removesuffix(".gz").rpartition(".")[2]


def _tables(tree: Tree, base: str) -> dict[str, list[TableFile]]:
    """Files that may hold labels, by what they are named after."""
    found: dict[str, list[TableFile]] = {}
    for below in ("", ANNOTATIONS, "data"):
        if below and below not in tree.folders(base):
            continue
        for name in tree.files(join(base, below)):
            entry = table_file(name, base, join(base, below, name))
            stem = split_stem(SHARD.sub("", entry.stem))
            stem = split_stem(_SAID.sub("", stem) or stem)  # train_labels.csv
            plain = entry.form in TABLES or (entry.form == "json" and _split_name(stem))
            if plain and not stem.startswith(_NOT_LABELS):
                found.setdefault(stem, []).append(replace(entry, stem=stem))
    return found


def _sources(tree: Tree, tables: list[TableFile], columns: LabelColumns) -> list[LabelSource]:
    """One table, or the parts of one."""
    if len(tables) > 1 and not all(SHARD.search(Path(table.name).stem) for table in tables):
        names = listed([table.name for table in tables])
        raise DataError(
            f"{printable(tree.path)} has {names} for one split; keep one of them, or give one file"
        )
    return [LabelTable(table_source(tree, table, whole=False), columns) for table in tables]


def _split_folders(tree: Tree, base: str) -> dict[str, str]:
    """The folders that are splits; none where one holds images among others that do: bus, car,
    train are classes.
    """
    every = tree.folders(base)
    found = splits_among(every)
    others = [name for name in every if not _split_name(split_stem(name))]
    classes = len(found) == 1 and len(others) > 1
    alike = [*found.values(), *others]
    return {} if classes and all(has_images(tree, join(base, name)) for name in alike) else found


def _folders(tree: Tree, base: str, folders: dict[str, str], columns: LabelColumns) -> Sources:
    """The folders of splits, but for a test whose images have no labels."""
    found: Sources = {}
    for stem, name in folders.items():
        folder = _doubled(tree, join(base, name))
        if table := _split_table(tree, folder):
            entry = table_file(table, folder, join(folder, table))
            found[stem] = [LabelTable(table_source(tree, entry, whole=False), columns)]
        elif class_folders(tree, folder) or not fitting_stems("test", [stem]):
            found[stem] = [ClassFolders(tree, folder)]
    return found


def _labelled(tree: Tree, folder: str) -> bool:
    folder = _doubled(tree, folder)
    return bool(_split_table(tree, folder) or class_folders(tree, folder))


def _doubled(tree: Tree, folder: str) -> str:
    """The folder, or one of the same name in it: archives are often unpacked so."""
    name = folder.rpartition("/")[2]
    within = join(folder, name)
    if name not in tree.folders(folder):
        return folder
    return folder if has_images(tree, within) and not _split_table(tree, within) else within


def _split_table(tree: Tree, folder: str) -> str:
    """The file in the folder of a split that has its labels: Tiny ImageNet's, or metadata.csv."""
    ends = (*_TABLES_OF_SPLITS, *(f"metadata.{form}" for form in TABLES))
    return next((name for name in tree.files(folder) if name.lower().endswith(ends)), "")


def _whole(
    tree: Tree, base: str, tables: dict[str, list[TableFile]], columns: LabelColumns
) -> LabelSource:
    """What is named after no split: a table, or folders of classes."""
    usual = [table for stem in _FOR_ALL for table in tables.get(stem, [])]
    every = usual or [table for mine in tables.values() for table in mine]
    classes = class_folders(tree, base)
    many = len(classes) > 1 and not _split_folders(tree, base)
    if not every or (not usual and many):
        return ClassFolders(tree, base, whole=True)
    if len(every) > 1:
        names = listed([table.name for table in every])
        raise DataError(
            f"{printable(tree.path)} has {names}; give the one with the labels as the data"
        )
    return LabelTable(table_source(tree, every[0], whole=True), columns)


def _saved(tree: Tree, base: str, columns: LabelColumns) -> Sources:
    """What `save_to_disk` of Hugging Face `datasets` wrote: a folder, or one for each split."""
    found: Sources = {}
    for folder in saved_folders(tree, base):
        whole = folder == base
        entries = [
            TableFile(folder, "arrow", join(folder, name), folder)
            for name in saved_files(tree, folder)
        ]
        stem = WHOLE if whole else split_stem(folder.rpartition("/")[2])
        found[stem] = [
            LabelTable(table_source(tree, entry, whole=whole), columns) for entry in entries
        ]
    return found
