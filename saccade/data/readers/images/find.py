"""Which file of a folder or archive holds the captions of a split.

A split is a folder with metadata.jsonl in it, a file STEM.jsonl, or COCO's captions_STEM.json,
also in annotations/. A year after the stem is left aside: captions_train2017 is train. Where there
is none of these, tables are looked for: captions.csv, train/metadata.csv, Flickr8k.token.txt.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from saccade.data.readers.images.caption_tables import FORMS, is_caption_table
from saccade.data.readers.images.source import (
    ANNOTATIONS,
    TableFile,
    TableSource,
    single_source,
    table_file,
    table_source,
)
from saccade.data.readers.images.tree import Tree, join, tree_of
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.errors import DataError

METADATA = "metadata.jsonl"
_ENDINGS = tuple(f".{form}" for form in FORMS)
_ROWS = (".json", ".jsonl")
_OF_ALL = ("captions", "dataset", Path(METADATA).stem)  # how files of all splits are named
_NOT_CAPTIONS = ("instances", "person_keypoints", "panoptic", "stuff", "image_info")


def find_captions(data: Path, split: str) -> TableSource:
    """The one file that holds the captions of a split, or of all splits."""
    if _single(data):
        return single_source(data)
    tree, base = tree_of(data)
    entries = list(_entries(tree, base)) or list(_tables(tree, base))
    stems = one_stem(data, split, (entry.stem for entry in entries))
    mine = [entry for entry in entries if entry.stem in stems] or _for_all(entries)
    if not mine:
        held = listed([*tree.folders(base), *tree.files(base)]) or "nothing"
        raise DataError(
            f"{data} has no {split!r} split: no {split}/{METADATA}, {split}.jsonl, {split}.csv or "
            f"captions_{split}.json, nor a .txt beside each image; it holds {held}"
        )
    if len(mine) > 1:
        names = listed([entry.name for entry in mine])
        raise DataError(f"{data} has {names} for one split; keep one of them, or give one file")
    return table_source(tree, mine[0], whole=not stems)


def stems_of(data: Path) -> list[str]:
    """What the files with captions are named after."""
    if _single(data):
        return []
    tree, base = tree_of(data)
    return [entry.stem for entry in _entries(tree, base)]


def table_stems_of(data: Path) -> list[str]:
    """What tables of captions are named after."""
    if _single(data):
        return []
    return [entry.stem for entry in _tables(*tree_of(data))]


def says_which(data: Path) -> bool:
    """Whether a file says which images there are: it was given, or lies there with its name."""
    if data.name.lower().removesuffix(".gz").endswith(_ROWS) and not data.is_dir():
        return True
    stems = stems_of(data)
    named = any(fitting_stems(split, stems) for split in SPLITS)
    return named or any(stem.startswith(_OF_ALL) for stem in stems)


def _for_all(entries: Sequence[TableFile]) -> list[TableFile]:
    """Where no file is named after a split: metadata.jsonl, a table, or JSON that may name splits
    itself.
    """
    stems = [entry.stem for entry in entries]
    if any(fitting_stems(split, stems) for split in SPLITS):
        return []
    forms = ("json", *FORMS)
    return [entry for entry in entries if entry.form in forms or entry.stem == "metadata"]


def _entries(tree: Tree, base: str) -> Iterator[TableFile]:
    for folder in tree.folders(base):
        if METADATA in tree.files(join(base, folder)):
            below = join(base, folder)
            yield TableFile(folder, "jsonl", join(below, METADATA), below)
    for below in ("", ANNOTATIONS):
        if below and below not in tree.folders(base):
            continue
        for name in tree.files(join(base, below)):
            if _table(name):
                entry = table_file(name, base, join(base, below, name))
                if not entry.stem.startswith(_NOT_CAPTIONS):
                    yield entry


def _tables(tree: Tree, base: str) -> Iterator[TableFile]:
    for folder in tree.folders(base):
        below = join(base, folder)
        for name in tree.files(below):
            if name in ("metadata.csv", "metadata.tsv"):
                yield TableFile(folder, name.rpartition(".")[2], join(below, name), below)
    for name in tree.files(base):
        if is_caption_table(name):
            yield table_file(name, base, join(base, name))


def _single(data: Path) -> bool:
    return _table(data.name) or (data.name.endswith(_ENDINGS) and not data.is_dir())


def _table(name: str) -> bool:
    return name.removesuffix(".gz").endswith((".jsonl", ".json"))
