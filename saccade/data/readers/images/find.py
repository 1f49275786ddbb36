"""Which file of a folder or archive holds the captions of a split, and where its images lie.

A split is a folder with metadata.jsonl in it, a file STEM.jsonl, or COCO's captions_STEM.json,
also in annotations/. A year after the stem is left aside: captions_train2017 is train.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from saccade.data.images.members import Member
from saccade.data.readers.images.rows import ImageFinder
from saccade.data.readers.images.tree import Folder, Tree, join, tree_of
from saccade.data.readers.report import BadRow, listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.data.readers.text.lines import MAX_DOCUMENT, document, lines, lines_in
from saccade.errors import DataError

METADATA = "metadata.jsonl"
ANNOTATIONS = "annotations"
_YEAR = re.compile(r"_?\d{4}$")
_NOT_CAPTIONS = ("instances", "person_keypoints", "panoptic", "stuff", "image_info")


@dataclass(frozen=True)
class CaptionFile:
    """A file that may hold captions: `name` in the tree, `folder` from which images are named."""

    stem: str
    form: Literal["metadata", "json"]
    name: str
    folder: str


@dataclass(frozen=True)
class CaptionSource:
    """The file with the captions of a split; `whole` if it is named after none."""

    tree: Tree
    entry: CaptionFile
    file: Member
    whole: bool

    def places(self) -> ImageFinder:
        """Where its images may lie: with it, or in a folder named as the file is: train2017."""
        stem = Path(self.entry.name).name.partition(".")[0].removeprefix("captions_")
        near = Path(self.entry.name).parent.relative_to(self.entry.folder).as_posix()
        places = ("", "images", stem, f"images/{stem}")
        below = [join(above, place) for above in ("", near.strip(".")) for place in places]
        return ImageFinder(self.tree, self.entry.folder, below)

    def lines(self) -> Iterator[bytes | None]:
        if isinstance(self.tree, Folder):
            return lines(self.file.path)
        raw = self.file.read(most=MAX_DOCUMENT)
        return lines_in(io.BufferedReader(io.BytesIO(raw)), self.file.name)

    def document(self) -> bytes:
        if isinstance(self.tree, Folder):
            return document(self.file.path)
        return self.file.read(most=MAX_DOCUMENT)


def find_captions(data: Path, split: str) -> CaptionSource:
    """The one file that holds the captions of a split, or of all splits."""
    if _table(data.name):
        # COCO's images lie beside the folder of its annotations.
        beside = data.absolute().parent.name == ANNOTATIONS
        root = data.absolute().parent.parent if beside else data.parent
        name = join(ANNOTATIONS if beside else "", data.name)
        return _found(Folder(root), _entry(data.name, "", name), whole=True)
    tree, base = tree_of(data)
    entries = list(_entries(tree, base))
    stems = one_stem(data, split, (entry.stem for entry in entries))
    mine = [entry for entry in entries if entry.stem in stems] or _for_all(entries)
    if not mine:
        held = [*tree.folders(base), *tree.files(base)]
        raise DataError(
            f"{data} has no {split!r} split: no {split}/{METADATA}, {split}.jsonl or "
            f"captions_{split}.json; it holds {listed(held) or 'nothing'}"
        )
    if len(mine) > 1:
        names = listed([entry.name for entry in mine])
        raise DataError(f"{data} has {names} for one split; keep one of them, or give one file")
    return _found(tree, mine[0], whole=not stems)


def stems_of(data: Path) -> list[str]:
    """What the files with captions are named after."""
    if _table(data.name):
        return []
    tree, base = tree_of(data)
    return [entry.stem for entry in _entries(tree, base)]


def _found(tree: Tree, entry: CaptionFile, *, whole: bool) -> CaptionSource:
    try:
        file = tree.member(entry.name)
    except BadRow as bad:
        raise DataError(f"{join(str(tree.path), entry.name)} cannot be read: {bad}") from None
    if file is None:
        raise DataError(f"{join(str(tree.path), entry.name)} does not exist; check the path")
    return CaptionSource(tree, entry, file, whole)


def _for_all(entries: Sequence[CaptionFile]) -> list[CaptionFile]:
    """Where no file is named after a split: metadata.jsonl, or JSON that may name splits itself."""
    stems = [entry.stem for entry in entries]
    if any(fitting_stems(split, stems) for split in SPLITS):
        return []
    return [entry for entry in entries if entry.form == "json" or entry.stem == "metadata"]


def _entries(tree: Tree, base: str) -> Iterator[CaptionFile]:
    for folder in tree.folders(base):
        if METADATA in tree.files(join(base, folder)):
            below = join(base, folder)
            yield CaptionFile(folder, "metadata", join(below, METADATA), below)
    for below in ("", ANNOTATIONS):
        if below and below not in tree.folders(base):
            continue
        for name in tree.files(join(base, below)):
            if _table(name):
                entry = _entry(name, base, join(base, below, name))
                if not entry.stem.startswith(_NOT_CAPTIONS):
                    yield entry


def _entry(name: str, base: str, whole: str) -> CaptionFile:
    stem = name.removesuffix(".gz").rpartition(".")[0]
    if name.removesuffix(".gz").endswith(".jsonl"):
        return CaptionFile(stem, "metadata", whole, base)
    return CaptionFile(_YEAR.sub("", stem), "json", whole, base)


def _table(name: str) -> bool:
    return name.removesuffix(".gz").endswith((".jsonl", ".json"))
