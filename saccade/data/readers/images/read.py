"""Read a split of captioned images, or of images in a folder for each class."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from saccade.data.readers.images.coco import (
    by_split,
    coco_document,
    coco_rows,
    karpathy_rows,
    splits_of,
)
from saccade.data.readers.images.find import CaptionSource, find_captions, stems_of
from saccade.data.readers.images.metadata import metadata_rows
from saccade.data.readers.images.rows import ImageRow, ImagesRead
from saccade.data.readers.images.tree import Tree, join, tree_of
from saccade.data.readers.report import BadRow, Problem, collect
from saccade.data.readers.stems import SPLITS, fitting_stems
from saccade.errors import DataError
from saccade.printable import printable

ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")


def read_images(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All captioned images of a split, in order; no image is decoded yet.

    `data` is a folder, a .tar or .zip of one, or one .jsonl or COCO .json file (all train, unless
    the images in it name their splits). Over `skip_bad` bad rows stop the reading with a list of
    them; fewer are left out and counted.
    """
    found = find_captions(data, split)
    places, name = found.places(), found.file.name
    if found.entry.form == "metadata":
        _only_train(found, split)
        rows = metadata_rows(found.lines(), name, places)
    else:
        document = coco_document(found.document(), name)
        if by_split(document):
            rows = karpathy_rows(document, name, split, places)
        else:
            _only_train(found, split)
            rows = coco_rows(document, name, places)
    read = collect(rows, [name], ImagesRead, skip_bad=skip_bad)
    return replace(read, files=[name, *places.used])


def read_classes(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All images of a split that lie as SPLIT/CLASS/IMAGE; `row.extras["label"]` is the class.

    Without folders for splits, CLASS/IMAGE is all train.
    """
    tree, base = tree_of(data)
    below = tree.folders(base)
    named = {name for usual in SPLITS for name in fitting_stems(usual, below)}
    mine = fitting_stems(split, below)
    if len(mine) > 1 or (not mine and (named or split != "train")):
        told = ", ".join(mine or below) or "no folder"
        raise DataError(f"{data} has {told} where one folder {split!r} should be; rename it so")
    folder = join(base, *mine)
    rows, files = _labelled(tree, folder), [join(str(data), *mine)]
    return collect(rows, files, ImagesRead, skip_bad=skip_bad)


def image_splits(data: Path) -> list[str]:
    """Which of train, valid and test there are captions for."""
    stems = stems_of(data)
    named = [split for split in SPLITS if fitting_stems(split, stems)]
    if named:
        return named
    whole = find_captions(data, "train")
    if whole.entry.form == "json":
        document = coco_document(whole.document(), whole.file.name)
        return splits_of(document) if by_split(document) else ["train"]
    return ["train"]


def _only_train(found: CaptionSource, split: str) -> None:
    if found.whole and split != "train":
        raise DataError(
            f"{found.file.name} is named after no split, so it is all train: there is no {split!r} "
            "in it; give a folder with a file for each split"
        )


def _labelled(tree: Tree, folder: str) -> Iterator[ImageRow | Problem]:
    where = join(str(tree.path), folder)
    classes = tree.folders(folder)
    number = 0
    for label in classes:
        for name in tree.files(join(folder, label)):
            number += 1
            file = printable(join(where, label, name))
            try:
                if not name.lower().endswith(ENDINGS):
                    raise BadRow(f"no image: {name[:200]!r} ends in none of {', '.join(ENDINGS)}")
                image = tree.member(join(folder, label, name))
                if image is None:
                    raise BadRow("missing image: a link that leads nowhere")
                yield ImageRow(image, (), {"label": label}, file, number)
            except BadRow as bad:
                yield Problem(file, number, str(bad))
