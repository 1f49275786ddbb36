"""Images in a folder for each class: SPLIT/CLASS/IMAGE, or CLASS/IMAGE where all is train.

CUB-200 has two lists beside its folders instead: images.txt (1 001.Auk/a.jpg) numbers images, and
train_test_split.txt (1 0) has 1 for train and 0 for test.

Folders within the folder of a class are of that class too. What lies beside the images and is none
(notes, boxes, thumbnails' databases) is passed over; what looks like an image and cannot be read,
or has no class, is a bad row.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from saccade.data.images.members import Member
from saccade.data.readers.images.named import images_below
from saccade.data.readers.images.rows import ENDINGS, ImageRow
from saccade.data.readers.images.split_folders import FLAT
from saccade.data.readers.images.tree import Tree, join
from saccade.data.readers.report import BadRow, Problem, listed
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.records import as_text
from saccade.errors import DataError
from saccade.printable import printable

_LISTS = ("images.txt", "train_test_split.txt")
_COMPANIONS = (
    *(".txt", ".md", ".csv", ".tsv", ".json", ".jsonl", ".xml", ".yaml", ".yml", ".html", ".log"),
    *(".db", ".ini", ".mat", ".npy", ".npz", ".lnk", ".url"),
)
_TO_CLASSES = (
    "put each image into a folder named as its class (train/cat/1.jpg), or give a table such as "
    "train.csv with the columns file_name and label"
)
_TO_IMAGES = (
    "write it as images in folders of classes (train/cat/1.png), or fetch it as Parquet, as "
    "Hugging Face has it"
)
_FOREIGN = {
    re.compile(r"-(idx[13]-ubyte|images\.idx3|labels\.idx1)"): "MNIST's own form",
    re.compile(
        r"^(data_batch_\d|test_batch|batches\.meta)$"
    ): "CIFAR's pickles, which may run code",
    re.compile(r"^(data_batch_\d|test_batch|train|test)\.bin$"): "CIFAR's own form",
    re.compile(r"\.(pkl|pickle)$"): "a pickle, which may run code",
    re.compile(r"\.(npz|npy|mat)$"): "an array, and no images",
    re.compile(r"\.(h5|hdf5|tfrecord|lmdb|mdb)$"): "a form of another library",
}


@dataclass
class ClassFolders:
    """The folders of a split's classes."""

    tree: Tree
    folder: str
    whole: bool = False
    used: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return join(str(self.tree.path), self.folder)

    @cached_property
    def listed(self) -> dict[str, str]:
        """The split of each image that lists beside the folders tell, by its name below them."""
        above = self.folder.rpartition("/")[0]
        names, learnt = (_by_number(self.tree, join(above, name)) for name in _LISTS)
        told = {"1": "train", "0": "test"}
        return {names[n]: told[flag] for n, flag in learnt.items() if n in names and flag in told}

    def splits(self) -> list[str]:
        return ["train", "test"] if self.listed else ["train"]

    def rows(self, split: str) -> Iterator[ImageRow | Problem]:
        if self.whole and split not in self.splits():
            raise DataError(
                f"{printable(self.name)} has no folder for a split, so it is all train: there is "
                f"no {split!r} in it; put the folders of classes into folders train and {split}"
            )
        classes = class_folders(self.tree, self.folder)
        if foreign := _foreign(self.tree, [self.folder, *(join(self.folder, c) for c in classes)]):
            raise DataError(f"{printable(self.name)} {foreign}; {_TO_IMAGES}")
        if not classes:
            raise DataError(f"{printable(self.name)} has no folder for a class; {_TO_CLASSES}")
        self._require_splits_above(classes)
        found = self._images(classes, train=split == "train")
        for number, (file, image, label) in enumerate(found, start=1):
            if (
                self.listed.get(file.removeprefix(f"{self.folder}/"), "train") != split
                and self.whole
            ):
                continue
            if isinstance(image, BadRow):
                where = printable(join(str(self.tree.path), file))
                yield Problem(where, number, str(image))
            else:
                yield ImageRow(image, (), {"labels": (label,)}, image.name, number)

    def _require_splits_above(self, classes: list[str]) -> None:
        """Stop at cat/train and cat/test: they would all become train."""
        for label in classes:
            names = {name.lower() for name in self.tree.folders(join(self.folder, label))}
            if len(splits := [split for split, usual in SPLITS.items() if names & {*usual}]) > 1:
                raise DataError(
                    f"{printable(join(self.name, label))} has {' and '.join(splits)} in it; put "
                    f"splits above classes, as {splits[0]}/{printable(label)}"
                )

    def _images(
        self, classes: list[str], *, train: bool
    ) -> Iterator[tuple[str, Member | BadRow, str]]:
        for name in self.tree.files(self.folder):
            if name.lower().endswith(ENDINGS):
                why = "no class: it lies beside the folders of classes; move it into one"
                yield join(self.folder, name), BadRow(why), ""
        for label in classes:
            folder = join(self.folder, label)
            try:
                as_text(label, "folder")
            except BadRow as bad:
                yield folder, bad, label
                continue
            any_image = False
            for file, image in _below(self.tree, folder):
                any_image = True
                yield file, image, label
            if train and not any_image:
                yield folder, BadRow("empty class: no image in it; fill it or take it away"), label


def _by_number(tree: Tree, name: str) -> dict[str, str]:
    """What a list has for each number, in lines like `1 001.Auk/a.jpg`; nothing without a list."""
    try:
        file = tree.member(name)
    except BadRow as bad:
        raise DataError(f"{printable(join(str(tree.path), name))} cannot be read: {bad}") from None
    lines = file.read().decode(errors="replace").split("\n") if file else []
    parted = (line.partition(" ") for line in lines)
    return {number: told.strip() for number, _, told in parted}


def _foreign(tree: Tree, folders: list[str]) -> str:
    """What there is instead of images, where there is no image at all; "" if nothing is known."""
    files = [name for folder in folders for name in tree.files(folder)]
    for pattern, what in _FOREIGN.items():
        found = [name for name in files if pattern.search(name)]
        if found and not any(any(images_below(tree, folder)) for folder in folders):
            return f"has {listed(found[:3])}: {what}, which is not read"
    return ""


def class_folders(tree: Tree, folder: str) -> list[str]:
    """The folders of classes right in a folder; a lone `images` is none."""
    found = tree.folders(folder)
    return [] if all(name.lower() in FLAT for name in found) else found


def _below(tree: Tree, folder: str) -> Iterator[tuple[str, Member | BadRow]]:
    """The files of a folder that should be images, then those of its folders."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        if here != folder and (tree.path / here).is_symlink():
            yield here, BadRow("not a file: a link to a folder, which may lead in circles")
            continue
        for name in tree.files(here):
            if not name.lower().endswith(_COMPANIONS):
                yield join(here, name), _image(tree, join(here, name))
        waiting += [join(here, name) for name in reversed(tree.folders(here))]


def _image(tree: Tree, file: str) -> Member | BadRow:
    name = file.rpartition("/")[2]
    if "." in name and not name.lower().endswith(ENDINGS):
        return BadRow(f"no image: {name[:200]!r} ends in none of {', '.join(ENDINGS)}; convert it")
    try:
        return tree.member(file) or BadRow("missing image: a link that leads nowhere")
    except BadRow as bad:
        return bad
