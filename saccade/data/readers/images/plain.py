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
from saccade.data.readers.images.classes.find import splits_among
from saccade.data.readers.images.find import METADATA, find_captions, stems_of
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
from saccade.data.readers.images.tar_rows import tar_images
from saccade.data.readers.images.tree import Tree, join, tree_of
from saccade.data.readers.many_files import matching_files, shown_parts
from saccade.data.readers.report import BadRow, Problem, listed, parse_rows
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.data.readers.tar_shards import image_tars, tar_splits, tars_of_split
from saccade.data.readers.text.records import fields_of, first_key, json_line
from saccade.errors import DataError
from saccade.printable import printable

_TABLES = (".json", ".jsonl")
_FOR_ALL = ("captions", "dataset", Path(METADATA).stem)  # how files of all splits are named


def read_plain_images(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All images of a split, in order.

    Over `skip_bad` bad ones stop the reading with a list of them; fewer are left out and counted.
    """
    if tars := _tars(data):
        paths = tars_of_split(data, split, tars)
        names = shown_parts([str(path) for path in paths])
        return collect_images(tar_images(paths), names, skip_bad=skip_bad)
    if not _has_rows(data):
        tree, base = tree_of(data)
        folder = _folder(data, tree, base, split)
        name = join(str(tree.path), folder)
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
    if _has_rows(data):
        return image_splits(data)
    tree, base = tree_of(data)
    folders = splits_among(tree.folders(_start(tree, base)))
    return [split for split in SPLITS if fitting_stems(split, folders)] or ["train"]


def _tars(data: Path) -> dict[str, list[Path]]:
    """Several tars; a single one is looked into as a folder is."""
    if matching_files(data):
        return image_tars(data)
    if not data.is_dir() or _has_rows(data) or any(images_below(*tree_of(data))):
        return {}
    return image_tars(data)


def _has_rows(data: Path) -> bool:
    """Whether a file says which images there are: it was given, or lies there with its name."""
    if data.name.lower().removesuffix(".gz").endswith(_TABLES) and not data.is_dir():
        return True
    stems = stems_of(data)
    named = any(fitting_stems(split, stems) for split in SPLITS)
    return named or any(stem.startswith(_FOR_ALL) for stem in stems)


def _start(tree: Tree, base: str) -> str:
    """Go down into a lone folder that is no split."""
    folders = tree.folders(base)
    while len(folders) == 1 and not splits_among(folders) and not _any_image(tree, base):
        base = join(base, folders[0])
        folders = tree.folders(base)
    return base


def _any_image(tree: Tree, folder: str) -> bool:
    return any(name.lower().endswith(ENDINGS) for name in tree.files(folder))


def _folder(data: Path, tree: Tree, base: str, split: str) -> str:
    """Where the images of a split lie; all of them are train where no folder is named so."""
    base = _start(tree, base)
    folders = splits_among(tree.folders(base))
    if not folders and split == "train":
        return base
    stems = one_stem(data, split, folders)
    if not stems:
        held = listed([*tree.folders(base), *tree.files(base)]) or "nothing"
        raise DataError(
            f"{printable(data)} has no {split!r} split of images: no folder {split}; it holds "
            f"{held}; name a split that is there, or valid for what was held out"
        )
    return join(base, folders[stems[0]])


def _images(tree: Tree, folder: str) -> Iterator[ImageRow | Problem]:
    for number, name in enumerate(images_below(tree, folder), start=1):
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
