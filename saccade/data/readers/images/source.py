"""A file that says something of images: captions, labels, boxes. Where it is, and they are."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from saccade.data.images.members import Member
from saccade.data.readers.images.rows import ImageFinder
from saccade.data.readers.images.tree import Folder, Tree, join
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.lines import MAX_DOCUMENT, document, lines, lines_in
from saccade.errors import DataError

ANNOTATIONS = "annotations"
BESIDE_IMAGES = (ANNOTATIONS, "questions")  # folders of tables; the latter is CLEVR's
_YEAR = re.compile(r"_?\d{4}$")
_PREFIX = re.compile(r"^(captions|instances)_")
_IMAGES = ("", "images", "image", "imgs", "img")
_AROUND = (("", ""), ("images/", ""), ("", "_images"))  # the name of a split


@dataclass(frozen=True)
class TableFile:
    """A file by its `name` in the tree; `folder` is where it names images from."""

    stem: str
    form: str
    name: str
    folder: str


@dataclass(frozen=True)
class TableSource:
    """The table of a split; `whole` if it is named after none."""

    tree: Tree
    entry: TableFile
    file: Member
    whole: bool

    def places(self, *folders: str) -> ImageFinder:
        """Where its images may lie: in `folders`, with it, or in one named as it is: train2017."""
        stem = _PREFIX.sub("", Path(self.entry.name).name.partition(".")[0])
        near = Path(self.entry.name).parent.relative_to(self.entry.folder).as_posix()
        names = [*folders, stem, self.entry.stem, *(["train"] if self.whole else [])]
        beside = self.tree.folders(self.entry.folder)
        usual = [name for name in beside if name.lower() in _IMAGES or len(beside) == 1]
        places = [
            *folders,
            *_IMAGES,
            *usual,
            *(f"{a}{name}{b}" for name in names for a, b in _AROUND),
        ]
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

    def plain_path(self) -> Path:
        """The file itself, for who must seek in it."""
        if not isinstance(self.tree, Folder) or self.file.path.suffix == ".gz":
            raise DataError(f"{self.file.name} is packed; unpack it, and give the folder")
        return self.file.path

    def require_train(self, split: str) -> None:
        if self.whole and split != "train":
            raise DataError(
                f"{self.file.name} is named after no split, so it is all train: there is no "
                f"{split!r} in it; give a folder with a file for each split"
            )


def table_source(tree: Tree, entry: TableFile, *, whole: bool) -> TableSource:
    """The table, if it is there and may be read."""
    try:
        file = tree.member(entry.name)
    except BadRow as bad:
        raise DataError(
            f"{join(str(tree.path), entry.name)} cannot be read: {bad}; put the file itself there"
        ) from None
    if file is None:
        raise DataError(f"{join(str(tree.path), entry.name)} does not exist; check the path")
    return TableSource(tree, entry, file, whole)


def single_source(data: Path) -> TableSource:
    """One file that was given by itself: COCO's images lie beside the folder of its annotations."""
    above = data.absolute().parent
    beside = above.name in BESIDE_IMAGES
    root = above.parent if beside else data.parent
    name = join(above.name if beside else "", data.name)
    return table_source(Folder(root), table_file(data.name, "", name), whole=True)


def table_file(name: str, base: str, whole: str) -> TableFile:
    """What a file's name says: train2017.json has the stem train and the form json."""
    stem, _, form = name.removesuffix(".gz").rpartition(".")
    form = form.lower()
    return TableFile(_YEAR.sub("", stem) if form == "json" else stem, form, whole, base)
