"""YOLO: a text file for each image, with a line for each object: class cx cy width height.

Instead of a box, a line may have an outline of three points or more, class x y x y x y …: the box
around it is taken. Keypoints behind a box, which data.yaml declares, are passed over. Where all
lines could be either (one odd length; what would be points lies in what would be a box), they are
refused: one outline alone often looks so by chance, many of one split do not.

Numbers are shares of the image's sides. The text of …/images/a.jpg is …/labels/a.txt, or lies
beside the image; where there is none, there are no objects. A sixth number, the score of one that
was found, is passed over.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from saccade.data.images.members import Member
from saccade.data.readers.images.boxes.checks import (
    CENTRES,
    OUTLINE,
    CheckedBox,
    Size,
    box_around,
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
from saccade.data.readers.images.rows import ENDINGS, ImageRow
from saccade.data.readers.images.tree import Tree, join
from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.lines import BOM, text_of
from saccade.errors import DataError
from saccade.printable import printable

IMAGES, LABELS = "images", "labels"
_SPLITS = {name for names in SPLITS.values() for name in names}
_BOX = 5  # columns of a line with a box; a sixth is its score
_ALIKE = 0.9  # of the outlines of a split, from where on all may be boxes with keypoints
_EDGE = 0.01  # that a box may reach over the image's edge, for it is rounded
_NO_LABELS = {"classes", "labels", "names", "readme"} | _SPLITS


@dataclass(frozen=True)
class YoloNames:
    """The names of classes by their numbers, and the file that has them; none are numbers.

    `keypoints` are the numbers that follow each box.
    """

    names: dict[int, str] = field(default_factory=dict[int, str])
    file: str = ""
    keypoints: int = 0

    def label(self, text: str) -> str:
        number = finite_number(text, "class")
        if number != int(number) or number < 0:
            raise BadRow(f"no such class: {text[:60]!r}; classes are whole numbers from 0")
        if not self.names:
            return str(int(number))
        if int(number) not in self.names:
            held = f"{min(self.names)} … {max(self.names)}"
            raise BadRow(f"no such class: {int(number)}, and {self.file} has {held}; add its name")
        return self.names[int(number)]


@dataclass
class Outlines:
    """The lines of a split that are read as outlines: their lengths, and what else they may be.

    `keypoints` counts those that may be a box with keypoints, by the numbers of each keypoint.
    """

    lengths: Counter[int] = field(default_factory=Counter[int])
    keypoints: Counter[int] = field(default_factory=Counter[int])

    def watch(self, numbers: list[float]) -> None:
        self.lengths[len(numbers)] += 1
        self.keypoints += Counter([each for each in (2, 3) if _has_keypoints(numbers, each)])

    def refuse(self, name: str) -> None:
        """Stop where no one knows what they are."""
        if not self.keypoints:
            return
        ((each, count),), length = self.keypoints.most_common(1), max(self.lengths)
        if len(self.lengths) == 1 and count >= _ALIKE * self.lengths.total():
            raise DataError(
                f"{name}: lines of {length + 1} columns may be boxes with keypoints or outlines; "
                f"declare kpt_shape: [{(length - 4) // each}, {each}] in data.yaml, or end each "
                "outline with its first point"
            )


@dataclass
class YoloBoxes:
    """Images of a split by their names in the tree, with the folders of their labels."""

    tree: Tree
    name: str
    images: list[str]
    names: YoloNames
    whole: bool = False
    used: list[str] = field(default_factory=list[str])

    def rows(self, split: str) -> Iterator[ImageRow | Problem]:
        if self.whole and split != "train":
            raise DataError(
                f"{printable(self.name)} has no folder for a split, so it is all train: there is "
                f"no {split!r} in it; put images into images/{split} and texts into labels/{split}"
            )
        return self._rows()

    def _rows(self) -> Iterator[ImageRow | Problem]:
        taken: dict[str, str] = {}
        labelled, outlines = False, Outlines()
        root = str(self.tree.path)

        def parse(name: str, number: int) -> Found:
            nonlocal labelled
            where, file = printable(join(root, name)), label_file(name)
            try:
                image = self.tree.member(name)
                if image is None:
                    raise BadRow("missing image: there is none of this name; add it")
                if file in taken:
                    raise BadRow(f"duplicate image: {taken[file]!r:.200} has the same labels")
                taken[file] = name
                size = image_size(image)
                said = self.tree.member(file)
                labelled = labelled or said is not None
                boxes = self._boxes(said, size, outlines) if said else []
            except BadRow as bad:
                return [Problem(where, number, str(bad))]
            classes = {label: place for place, label in self.names.names.items()}
            return boxed_image(image, size, boxes, file=where, line=number, classes=classes)

        yield from image_rows(self.images, self.name, parse)
        yield from self._lost(taken)
        if taken and not labelled:
            first, image = next(iter(taken.items()))
            raise DataError(
                f"{self.name}: not one of its images has labels; those of {printable(image)} are "
                f"sought in {printable(first)}"
            )
        outlines.refuse(self.name)

    def _boxes(self, file: Member, size: Size, outlines: Outlines) -> list[CheckedBox | Problem]:
        lines = small_file(file).removeprefix(BOM).split(b"\n")
        return [
            try_box(file.name, number, lambda line=line: _box(line, self.names, size, outlines))
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]

    def _lost(self, taken: Iterable[str]) -> Iterator[Problem]:
        """Labels of images that are not there."""
        known = set(taken)
        for folder in dict.fromkeys(file.rpartition("/")[0] for file in known):
            for name in self.tree.files(folder) if is_folder(self.tree, folder) else ():
                stem, _, form = name.rpartition(".")
                if form.lower() != "txt" or stem.lower().lstrip("_") in _NO_LABELS:
                    continue
                if (file := join(folder, name)) not in known:
                    where = printable(join(str(self.tree.path), file))
                    reason = f"missing image: no {stem[:200]}{ENDINGS[0]} or the like goes with it"
                    yield Problem(where, 1, f"{reason}; add it, or take the labels away")


def label_file(image: str) -> str:
    """Where the labels of an image are: in labels/ instead of the last images/, or beside it."""
    parts = image.rpartition(".")[0].split("/")
    for place in reversed(range(len(parts) - 1)):
        if parts[place].lower() == IMAGES:
            parts[place] = LABELS
            break
    return "/".join(parts) + ".txt"


def is_folder(tree: Tree, folder: str) -> bool:
    """Whether there is a folder of this name."""
    above, _, name = folder.rpartition("/")
    return not folder or (is_folder(tree, above) and name in tree.folders(above))


def _has_keypoints(numbers: list[float], each: int) -> bool:
    """Whether these may be a box and points in it: x and y, with 0, 1 or 2 for seen if `each` is 3.

    Missing points are at 0, 0. An outline that ends with its first point is one.
    """
    x, y, width, height, *rest = numbers
    left, top, right, bottom = CENTRES.corners(x, y, width, height)
    if len(rest) % each or numbers[:2] == numbers[-2:] or min(width, height) <= 0:
        return False
    if min(left, top) < -_EDGE or max(right, bottom) > 1 + _EDGE:
        return False
    points = zip(rest[::each], rest[1::each])
    inside = all((left <= a <= right and top <= b <= bottom) or a == b == 0 for a, b in points)
    return inside and (each == 2 or set(rest[2::each]) <= {0, 1, 2})


def _box(line: bytes, names: YoloNames, size: Size, outlines: Outlines) -> CheckedBox:
    words = text_of(line.strip(b"\r")).split()
    if names.keypoints and len(words) == _BOX + names.keypoints:
        words = words[:_BOX]
    outline = len(words) > _BOX + 1 and len(words) % 2
    if len(words) not in (_BOX, _BOX + 1) and not outline:
        points = " (keypoints? declare kpt_shape in data.yaml)" if len(words) > _BOX else ""
        raise BadRow(f"not 5 columns: {len(words)} found{points}; write {CENTRES.names}")
    label = names.label(words[0])
    if outline:
        points = [finite_number(word, "outline") for word in words[1:]]
        if not names.keypoints:
            outlines.watch(points)
        return checked_box(label, box_around(points), OUTLINE, size)._replace(around=True)
    x, y, width, height = (finite_number(word, "box") for word in words[1:_BOX])
    return checked_box(label, (x, y, width, height), CENTRES, size)
