"""Pascal VOC: an XML file for each image, and lists of the images of a split.

    Annotations/a.xml    JPEGImages/a.jpg    ImageSets/Main/train.txt, val.txt, test.txt

Without lists all is train. Splits may have folders of their own, and XML and images may lie in one
folder. Numbers are pixels; VOC counts them from 1 and many tools from 0, so `xmin` … `ymax` are
taken as the edges; where two coincide, the object is that one pixel wide, for VOC counts the last
one in. A difficult object is to be ignored.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath, PureWindowsPath
from xml.etree.ElementTree import Element

from saccade.data.images.members import Member
from saccade.data.readers.images.boxes.checks import (
    CORNERS,
    CheckedBox,
    Size,
    checked_box,
    finite_number,
)
from saccade.data.readers.images.boxes.rows import (
    Found,
    boxed_image,
    image_rows,
    image_size,
    small_file,
    try_box,
)
from saccade.data.readers.images.boxes.xml import parse_xml, text_at
from saccade.data.readers.images.rows import ENDINGS, ImageFinder, ImageRow
from saccade.data.readers.images.source import TableFile, TableSource, table_source
from saccade.data.readers.images.split_folders import splits_among
from saccade.data.readers.images.tree import Tree, inner, join
from saccade.data.readers.label_values import labels_of
from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.text.lines import text_of
from saccade.errors import DataError
from saccade.printable import printable

_XML = ".xml"
_HOLDERS = ("annotations", "annotation", "annots", "xmls", "labels")
_IMAGES = ("JPEGImages", "images", "Images", "image", "imgs", "img", "")
_LISTS = ("ImageSets", "Main")
_EDGES = ("xmin", "ymin", "xmax", "ymax")


@dataclass
class VocBoxes:
    """The XML files of a split: those that `listing` names, or all in the folder."""

    tree: Tree
    base: str  # the folder below which images lie
    folder: str  # of the XML files
    places: Sequence[str]  # below the base, where images may lie
    listing: TableSource | None = None
    whole: bool = False
    used: list[str] = field(default_factory=list[str])

    @property
    def name(self) -> str:
        return self.listing.file.name if self.listing else join(str(self.tree.path), self.folder)

    def rows(self, split: str) -> Iterator[ImageRow | Problem]:
        if self.whole and split != "train":
            raise DataError(
                f"{printable(self.name)} has no list of {split!r}, so it is all train; write the "
                f"names of its images into ImageSets/Main/{split}.txt"
            )
        finder = ImageFinder(self.tree, self.base, self.places)
        self.used = finder.used
        return self._listed(finder, self.listing) if self.listing else self._all(finder)

    def _listed(self, finder: ImageFinder, listing: TableSource) -> Iterator[ImageRow | Problem]:
        taken: dict[str, int] = {}

        def parse(raw: bytes | None, number: int) -> Found:
            words = text_of(raw).split()
            if not words:
                return []
            name = inner(words[0])
            stem = PurePosixPath(name).stem if name.lower().endswith((*ENDINGS, _XML)) else name
            if taken.setdefault(stem, number) != number:
                raise BadRow(
                    f"duplicate image: {stem[:200]!r} was on line {taken[stem]}; list it once"
                )
            file = self.tree.member(join(self.folder, f"{stem}{_XML}"))
            if file is None:
                raise BadRow(f"missing annotation: no {stem[:200]}.xml in {self.folder}; add it")
            return _image(file, stem, number, finder)

        return image_rows(listing.lines(), listing.file.name, parse)

    def _all(self, finder: ImageFinder) -> Iterator[ImageRow | Problem]:
        names = [name for name in self.tree.files(self.folder) if name.lower().endswith(_XML)]
        seen: set[str] = set()

        def parse(name: str, number: int) -> Found:
            file = self.tree.member(join(self.folder, name))
            if file is None:
                raise BadRow(f"missing annotation: {name[:200]!r} is a link that leads nowhere")
            return _image(file, name[: -len(_XML)], number, finder, seen)

        yield from image_rows(names, self.name, parse)
        yield from self._unsaid(seen, {name[: -len(_XML)] for name in names})

    def _unsaid(self, seen: set[str], stems: set[str]) -> Iterator[Problem]:
        """Images that no XML file is about."""
        for place in dict.fromkeys(self.places):
            folder = join(self.base, place)
            try:
                files = self.tree.files(folder)
            except DataError:  # there is no such folder
                continue
            for file in files:
                whole = printable(join(str(self.tree.path), folder, file))
                named = PurePosixPath(file).stem in stems
                if file.lower().endswith(ENDINGS) and not named and whole not in seen:
                    reason = "missing annotation: no XML file is about it; add one, with or "
                    yield Problem(whole, 1, f"{reason}without objects, or take the image away")


def _image(
    file: Member, stem: str, number: int, finder: ImageFinder, seen: set[str] | None = None
) -> Found:
    """The row of one XML file; what is wrong with all of it is told at its first line."""
    try:
        root = parse_xml(small_file(file))
        noted = PureWindowsPath(text_at(root, "filename")).name
        names = [f"{stem}{ending}" for ending in ENDINGS] + ([noted] if noted else [])
        found = finder.find(*dict.fromkeys([f"{stem}{PurePosixPath(noted).suffix}", *names]))
        if seen is not None:
            seen.add(found.name)
        image = finder.once(found, number, said="boxes")
        size = image_size(
            image, height=text_at(root, "size/height"), width=text_at(root, "size/width")
        )
    except BadRow as bad:
        return [Problem(file.name, 1, str(bad))]
    boxes = [
        try_box(f"{file.name}#object", place, lambda one=one: _box(one, size))
        for place, one in enumerate(root.findall("object"), start=1)
    ]
    return boxed_image(image, size, boxes, file=file.name, line=1)


def _box(said: Element, size: Size) -> CheckedBox:
    (label,) = labels_of(text_at(said, "name"), "name")
    box = said.find("bndbox")
    if box is None:
        raise BadRow("missing key: no 'bndbox' in the object; give its xmin, ymin, xmax and ymax")
    left, top, right, bottom = (finite_number(text_at(box, edge), edge) for edge in _EDGES)
    right, bottom = right + (right == left), bottom + (bottom == top)
    ignored = text_at(said, "difficult") == "1"
    return checked_box(label, (left, top, right, bottom), CORNERS, size, ignored=ignored)


def find_voc(tree: Tree, base: str) -> dict[str, VocBoxes]:
    """The splits of a folder that holds Pascal VOC; "" is one that is named after none."""
    folders = splits_among(tree.folders(base))
    found = {stem: _alone(tree, join(base, name)) for stem, name in folders.items()}
    parts = {stem: part for stem, part in found.items() if part is not None}
    if parts:
        return parts
    holder = _holder(tree, base)
    below = splits_among(tree.folders(holder)) if holder is not None else {}
    if holder and below:
        return {
            stem: VocBoxes(tree, base, join(holder, name), [join(one, name) for one in _IMAGES])
            for stem, name in below.items()
            if _has_xml(tree, join(holder, name))
        }
    if holder is None or not _has_xml(tree, holder):
        return {}
    lists = _lists(tree, base, holder)
    return lists or {"": VocBoxes(tree, base, holder, _IMAGES, whole=True)}


def _alone(tree: Tree, folder: str) -> VocBoxes | None:
    """The folder of a split, if it has XML files, right in it or below."""
    holder = _holder(tree, folder)
    if holder is None or not _has_xml(tree, holder):
        return None
    return VocBoxes(tree, folder, holder, _IMAGES)


def _holder(tree: Tree, base: str) -> str | None:
    """The folder of annotations, or this one if XML files lie right in it."""
    named = (name for name in tree.folders(base) if name.lower() in _HOLDERS)
    for name in named:
        folder = join(base, name)
        if _has_xml(tree, folder):
            return folder
        for deeper in tree.folders(folder):
            if _has_xml(tree, join(folder, deeper)):
                return join(folder, deeper) if deeper.lower() in _HOLDERS else folder
    return base if _has_xml(tree, base) else None


def _has_xml(tree: Tree, folder: str) -> bool:
    return any(name.lower().endswith(_XML) for name in tree.files(folder))


def _lists(tree: Tree, base: str, holder: str) -> dict[str, VocBoxes]:
    """The lists of splits; those of one class (cat_train.txt) are passed over."""
    folder = base
    for name in _LISTS:
        if name not in tree.folders(folder):
            break
        folder = join(folder, name)
    if folder == base:
        return {}
    stems = [name[:-4] for name in tree.files(folder) if name.lower().endswith(".txt")]
    plain = {stem: stem for stem in stems if "_" not in stem}
    if "trainval" in plain and "train" not in plain:
        plain["train"] = plain.pop("trainval")
    found: dict[str, VocBoxes] = {}
    for split, stem in plain.items():
        entry = TableFile(stem, "txt", join(folder, f"{stem}.txt"), base)
        listing = table_source(tree, entry, whole=False)
        found[split] = VocBoxes(tree, base, holder, _IMAGES, listing)
    return found
