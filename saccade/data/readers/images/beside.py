"""Captions in a text file beside each image: photo.jpg and photo.txt, a caption on each line.

    1.jpg, 1.txt                   also train/1.jpg, and 1.caption
    images/1.jpg, captions/1.txt   texts in a folder of their own

An image without a text is a bad row, and so is a text without an image.
"""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from saccade.data.readers.images.boxes.rows import small_file
from saccade.data.readers.images.named import images_below
from saccade.data.readers.images.rows import ENDINGS, ImageRow, captions_of
from saccade.data.readers.images.split_folders import FLAT, folder_splits, split_folder
from saccade.data.readers.images.tree import Tree, join, tree_of
from saccade.data.readers.report import BadRow, Problem
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.lines import BOM, text_of
from saccade.errors import DataError
from saccade.printable import printable

TEXTS = (".txt", ".caption")
_HOLDERS = ("captions", "caption", "texts", "text", "txt")
_LOOKED_AT = 50  # images that tell what the others are like
_NO_CAPTIONS = {"readme", "license", "licence", "notes", "classes", "labels", "requirements"}
_NUMBERS = re.compile(r"\d+( [\d.eE+-]+){4,}")


def texts_beside(data: Path) -> bool:
    """Whether images of a folder or archive have texts that are named as they are."""
    tree, base = tree_of(data)
    first = islice(images_below(tree, base), _LOOKED_AT)
    return any(_text_file(tree, image) for image in first)


def captions_beside(data: Path, split: str) -> tuple[Iterator[ImageRow | Problem], str]:
    """Each image of a split with the captions in its text, and where they lie."""
    tree, base = tree_of(data)
    folder = split_folder(data, tree, base, split)
    images = list(images_below(tree, folder))
    _refuse_boxes(data, tree, images)
    return _rows(tree, images), join(str(tree.path), folder)


def beside_splits(data: Path) -> list[str]:
    """Which of train, valid and test there are."""
    return folder_splits(*tree_of(data))


def _rows(tree: Tree, images: list[str]) -> Iterator[ImageRow | Problem]:
    taken: dict[str, str] = {}
    for image in images:
        text = _text_file(tree, image)
        where = printable(join(str(tree.path), text or image))
        try:
            if not text:
                name = image.rpartition("/")[2].rpartition(".")[0]
                raise BadRow(
                    f"no caption: no {name[:200]}.txt beside it; write it, or move it away"
                )
            if text in taken:
                raise BadRow(f"duplicate image: {taken[text][:200]!r} has the same text; keep one")
            taken[text] = image
            member = tree.member(image)
            if member is None:
                raise BadRow("missing image: a link that leads nowhere")
            yield ImageRow(member, _captions(tree, text), {}, where, 1)
        except BadRow as bad:
            yield Problem(where, 1, str(bad))
    yield from _lost(tree, taken)


def _captions(tree: Tree, text: str) -> tuple[str, ...]:
    """What is on each line that is not blank."""
    member = tree.member(text)
    if member is None:
        raise BadRow("missing text: a link that leads nowhere")
    lines = small_file(member).removeprefix(BOM).split(b"\n")
    said = [text_of(line.removesuffix(b"\r")).strip() for line in lines]
    return captions_of([one for one in said if one], "the text")


def _lost(tree: Tree, taken: dict[str, str]) -> Iterator[Problem]:
    """Texts of images that are not there, in folders where others have theirs."""
    usual = {name for names in SPLITS.values() for name in names} | _NO_CAPTIONS
    for folder in dict.fromkeys(text.rpartition("/")[0] for text in taken):
        for name in tree.files(folder):
            stem = name.rpartition(".")[0]
            text = join(folder, name)
            if not name.lower().endswith(TEXTS) or text in taken or stem.lower() in usual:
                continue
            reason = f"missing image: no {stem[:200]}{ENDINGS[0]} or the like goes with it"
            where = printable(join(str(tree.path), text))
            yield Problem(where, 1, f"{reason}; add it, or take the text away")


def _text_file(tree: Tree, image: str) -> str:
    """The text that is named as the image is, beside it or in a folder of texts; "" for none."""
    stem = image.rpartition(".")[0]
    for place in (stem, *_in_holders(tree, stem)):
        for ending in TEXTS:
            if _is_there(tree, f"{place}{ending}"):
                return f"{place}{ending}"
    return ""


def _in_holders(tree: Tree, stem: str) -> Iterator[str]:
    """The same name below captions/ instead of the last images/."""
    parts = stem.split("/")
    for place in reversed(range(len(parts) - 1)):
        if parts[place].lower() in FLAT:
            above = "/".join(parts[:place])
            for name in tree.folders(above):
                if name.lower() in _HOLDERS:
                    yield "/".join([*parts[:place], name, *parts[place + 1 :]])
            return


def _is_there(tree: Tree, name: str) -> bool:
    try:
        return tree.member(name) is not None
    except BadRow:  # it is there, and may not be read
        return True


def _refuse_boxes(data: Path, tree: Tree, images: list[str]) -> None:
    """Stop at the texts of YOLO, whose lines are numbers: no one wants to learn to write these."""
    for text in filter(None, (_text_file(tree, image) for image in images[:_LOOKED_AT])):
        try:
            captions = _captions(tree, text)
        except BadRow:
            continue
        if not all(_NUMBERS.fullmatch(caption) for caption in captions):
            return
        raise DataError(
            f"{printable(data)} has numbers in the texts beside its images, as YOLO has boxes "
            f"({printable(text)}); write captions there, or train a detector, such as detr"
        )
