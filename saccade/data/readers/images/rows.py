"""What is read of images: a row for each, and where to look for the file a row names."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unicodedata import normalize

from saccade.data.batching.packed_rows import PackedRows
from saccade.data.images.members import Member
from saccade.data.readers.images.tree import ARCHIVES, Folder, Tree, inner, join, tree_of
from saccade.data.readers.label_values import in_natural_order
from saccade.data.readers.report import BadRow, Problem, RowsRead, collect, counted
from saccade.data.readers.text.records import as_text, kind_of

ENDINGS = (
    *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".jfif", ".jpe"),
    *(".tif", ".tiff"),
)
UNREAD = (".heic", ".heif", ".avif", ".jxl", ".jp2")  # images, in forms that are not read
_ODD = {"around": "drawn around outlines", "clipped": "cut at the edge of the image"}
SUBSET = re.compile(r"(train|val|test)\d{4}")  # a folder of COCO


@dataclass(frozen=True)
class ImageRow:
    """An image that can be loaded (`decode(row.image)`), what is said of it, and other columns.

    `file` and `line` tell where the row was found, for messages about its image.
    """

    image: Member
    captions: tuple[str, ...]
    extras: dict[str, Any] = field(default_factory=dict[str, Any], hash=False)
    file: str = field(default="", compare=False)
    line: int = field(default=0, compare=False)


class ImagesRead(RowsRead[ImageRow]):
    """Images with what is said of them."""

    @property
    def labels(self) -> list[str]:
        """The classes that `read_labelled` found, in natural order."""
        found = (row.extras.get("labels") for row in self.rows)
        return in_natural_order(
            label for labels in found if isinstance(labels, tuple) for label in labels
        )

    @property
    def size(self) -> str:
        captions = boxed = objects = 0
        odd = dict.fromkeys(_ODD, 0)
        for row in self.rows:
            captions += len(row.captions)
            if isinstance(held := row.extras.get("objects"), tuple):
                boxed, objects = boxed + 1, objects + len(held)
                odd = {key: count + row.extras.get(key, 0) for key, count in odd.items()}
        told = counted(len(self.rows), "image")
        if captions:
            told += f" with {counted(captions, 'caption')}"
        if classes := len(self.labels):
            told += f" of {classes:,} class" + "es" * (classes != 1)
        if boxed:
            told += f" with {counted(objects, 'object')}"
        noted = ", ".join(f"{count:,} {_ODD[key]}" for key, count in odd.items() if count)
        return f"{told} ({noted})" if noted else told


def collect_images(
    rows: Iterable[ImageRow | Problem],
    files: Sequence[str],
    *,
    skip_bad: int,
    untold: Mapping[str, int] | None = None,
) -> ImagesRead:
    """All good rows, parted from bad ones, in a tenth of the memory that they took as objects."""
    return collect(rows, files, ImagesRead, skip_bad=skip_bad, untold=untold, keep=PackedRows)


class ImageFinder:
    """Where the images of a metadata file may lie: near it, or in an archive beside it."""

    def __init__(self, tree: Tree, folder: str, below: Sequence[str]) -> None:
        self.root = Path(os.path.realpath(tree.path)).name  # of the folder that holds the data
        self._whole = [
            f"{join(str(root(tree.path)), at)}/"
            for at in dict.fromkeys((folder, ""))
            for root in (os.path.abspath, os.path.realpath)
        ]
        self._tree = tree
        self._folder = folder
        self._prefixes = list(dict.fromkeys(below))
        names = tree.files(folder) if isinstance(tree, Folder) else []
        self._beside = [name for name in names if name.lower().endswith(ARCHIVES)]
        self._archives: list[tuple[Tree, str]] | None = None
        self._seen: dict[int, int] = {}
        self.used: list[str] = []

    @property
    def subsets(self) -> list[str]:
        """Folders of COCO where images may lie: train2014."""
        last = [prefix.rpartition("/")[2] for prefix in self._prefixes]
        return [name for name in dict.fromkeys(last) if SUBSET.fullmatch(name)]

    def below(self, name: str) -> str:
        """A whole path into the data's folder as a name below it; any other as it is."""
        whole = next((start for start in self._whole if name.startswith(start)), "")
        return name.removeprefix(whole)

    def find(self, *names: str) -> Member:
        """The image under the first of these names that is there; a BadRow if none is."""
        try:
            plain = [spelt for name in names for spelt in _spellings(inner(name))]
        except BadRow as bad:
            raise BadRow(f"{bad}; write where it lies from there, as images/1.jpg") from None
        near = [(self._tree, self._folder)]
        for trees in (lambda: near, self._opened):
            for tree, base in trees():
                for prefix in self._prefixes:
                    for name in plain:
                        member = tree.member(join(base, prefix, name))
                        if member is not None:
                            self._note(tree)
                            return member
        beside = "".join(f" or {name}" for name in self._beside)
        where = join(str(self._tree.path), self._folder)
        raise BadRow(f"missing image: {names[0][:200]!r} is not in {where}{beside}")

    def once(self, member: Member, line: int, *, said: str = "captions") -> Member:
        """The image, if no row before has named it."""
        first = self._seen.setdefault(member.mark, line)
        if first != line:
            raise BadRow(
                f"duplicate file_name: {Path(member.name).name!r} was on row {first}; "
                f"put all {said} of an image in one list"
            )
        return member

    def _opened(self) -> list[tuple[Tree, str]]:
        if self._archives is None:
            files = [self._tree.member(join(self._folder, name)) for name in self._beside]
            found = [tree_of(file.path) for file in files if file is not None]
            bases = [(tree, base) for tree, top in found for base in ("", top)]
            self._archives = list(dict.fromkeys(bases))
        return self._archives

    def _note(self, tree: Tree) -> None:
        if tree is not self._tree and str(tree.path) not in self.used:
            self.used.append(str(tree.path))


def _spellings(name: str) -> Iterable[str]:
    """The name, then with "é" as one character and as two, as macOS has it: both look the same."""
    return dict.fromkeys([name, *(normalize(form, name) for form in ("NFC", "NFD"))])


def image_under(fields: dict[str, Any], key: str, finder: ImageFinder) -> Member:
    """The image under a key: a path, as Hugging Face has it too, or where its bytes lie."""
    value: object = fields[key]
    if isinstance(value, Member):
        return value
    if isinstance(value, dict):  # as Hugging Face has it, without the bytes
        value = cast(dict[str, object], value).get("path")
    if value is None:
        raise BadRow(f"missing image: {key!r} holds neither bytes nor a path")
    if not isinstance(value, str):
        raise BadRow(f"wrong type: {key!r} is {kind_of(value)}, not a path or the bytes of a file")
    name = finder.below(as_text(value, key).strip().replace("\\", "/"))
    names = [name, name.removeprefix(f"{finder.root}/")]
    if not name.lower().endswith(ENDINGS):  # named by an id
        names += [name + ending for ending in ENDINGS]
    if name.startswith("COCO_") and (subset := SUBSET.search(name)):
        names += [f"{subset[0]}/{one}" for one in names]
    return finder.find(*dict.fromkeys(names))


def captions_of(value: object, key: str) -> tuple[str, ...]:
    """A caption or a list of them, each with something to read in it."""
    every: Sequence[object] = value if isinstance(value, list) else [value]
    if not isinstance(value, str | list):
        raise BadRow(f"wrong type: {key!r} is {kind_of(value)}, not a string or a list of them")
    texts = tuple(as_text(caption, key) for caption in every)
    if not texts or any(not text or text.isspace() for text in texts):
        raise BadRow(f"empty: {key!r} holds nothing, or a caption of nothing")
    return texts
