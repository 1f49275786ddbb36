"""Read a split of images alone, whatever else is known of them; no image is decoded.

    folders     train/…/1.jpg, or any images below where no folder is named after a split
    captions    metadata.jsonl, train.jsonl, COCO's and Karpathy's JSON: the images that they name

In a folder, .tar or .zip. A file of rows may be of anything, as long as each names an image.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from saccade.data.images.members import Member
from saccade.data.readers.images.boxes.jsonl import FILES
from saccade.data.readers.images.find import find_captions, says_which
from saccade.data.readers.images.named import images_below
from saccade.data.readers.images.read import image_splits, read_images
from saccade.data.readers.images.rows import (
    ENDINGS,
    ImageFinder,
    ImageRow,
    ImagesRead,
    collect_images,
    image_under,
)
from saccade.data.readers.images.split_folders import folder_splits, split_folder
from saccade.data.readers.images.tar_rows import tar_images
from saccade.data.readers.images.tree import Tree, join, tree_of
from saccade.data.readers.many_files import matching_files, shown_parts
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.tar_shards import image_tars, tar_splits, tars_of_split
from saccade.data.readers.text.records import fields_of, first_key, json_line
from saccade.errors import DataError
from saccade.printable import printable


def read_plain_images(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All images of a split, in order.

    Over `skip_bad` bad ones stop the reading with a list of them; fewer are left out and counted.
    """
    if tars := _tars(data):
        paths = tars_of_split(data, split, tars)
        names = shown_parts([str(path) for path in paths])
        return collect_images(tar_images(paths), names, skip_bad=skip_bad)
    if not says_which(data):
        tree, base = tree_of(data)
        folder = split_folder(data, tree, base, split)
        name = join(str(tree.path), folder)
        if not any(images_below(tree, folder)):
            raise DataError(
                f"{printable(name)} holds no image: no name in it ends in {', '.join(ENDINGS)}; "
                "give the folder that has them"
            )
        return collect_images(_images(tree, folder), [name], skip_bad=skip_bad)
    found = find_captions(data, split)
    if found.entry.form != "jsonl":
        return read_images(data, split, skip_bad=skip_bad)
    found.require_train(split)
    places, name = found.places(), found.file.name
    rows = _named_in_rows(found.lines(), name, places)
    read = collect_images(rows, [name], skip_bad=skip_bad)
    return replace(read, files=[name, *places.used])


def plain_image_splits(data: Path) -> list[str]:
    """Which of train, valid and test there are images for."""
    if tars := _tars(data):
        return tar_splits(tars) or ["train"]
    if says_which(data):
        return image_splits(data)
    return folder_splits(*tree_of(data))


def _tars(data: Path) -> dict[str, list[Path]]:
    """Several tars; a single one is looked into as a folder is."""
    if matching_files(data):
        return image_tars(data)
    if not data.is_dir() or says_which(data) or any(images_below(*tree_of(data))):
        return {}
    return image_tars(data)


def _images(tree: Tree, folder: str) -> Iterator[ImageRow | Problem]:
    for number, name in enumerate(images_below(tree, folder, unread=True), start=1):
        where = printable(join(str(tree.path), name))
        try:
            member = tree.member(name)
        except BadRow as bad:
            yield Problem(where, number, str(bad))
            continue
        if member is None:
            yield Problem(where, number, "missing image: a link that leads nowhere")
        else:
            yield ImageRow(member, (), {}, where, number)


def _named_in_rows(
    lines: Iterator[bytes | None], name: str, finder: ImageFinder
) -> Iterator[ImageRow | Problem]:
    """The image of each line; one that a line before has named is no row."""
    seen = set[int]()

    def parse(raw: Any, number: int) -> ImageRow | None:
        fields = fields_of(json_line(raw))
        image: Member = image_under(fields, first_key(fields, FILES), finder)
        if image.mark in seen:
            return None
        seen.add(image.mark)
        return ImageRow(image, (), {}, name, number)

    return parse_rows(lines, name, parse)
