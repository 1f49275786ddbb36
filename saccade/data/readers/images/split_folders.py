"""Which folders of images are splits, and where they begin: train, Val, training_set, seg_train."""

import re
from collections import Counter
from pathlib import Path

from saccade.data.readers.images.named import has_images, images_below
from saccade.data.readers.images.tree import Tree, join
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem, split_stem
from saccade.errors import DataError
from saccade.printable import printable

FLAT = ("images", "image", "imgs", "img")  # folders that name no class
_YEAR = re.compile(r"(?<=[a-z])_?\d{4}$")
_HOLDS_SPLIT = re.compile(r"[ ._-](set|data|images?|imgs)$")  # training_set


def splits_among(folders: list[str]) -> dict[str, str]:
    """The folders that are splits, by name: train, Val, train2017; seg_train beside seg_test."""
    plain = [_YEAR.sub("", name) for name in folders]
    often = Counter(plain)
    names = {stem if often[stem] == 1 else name: name for stem, name in zip(plain, folders)}
    return {stem: names[name] for stem, name in _splits_named(list(names)).items()}


def _splits_named(folders: list[str]) -> dict[str, str]:
    usual = {name for names in SPLITS.values() for name in names}
    small: dict[str, str] = {}
    for name in sorted(folders, key=lambda name: name.lower() not in usual):
        stem = split_stem(_HOLDS_SPLIT.sub("", name.lower()))
        small.setdefault(stem if stem in usual else split_stem(name), name)
    exact = {stem: name for stem, name in small.items() if stem in usual}
    if exact:
        return exact
    tailed = {split: fitting_stems(split, small) for split in SPLITS}
    if tailed["train"] and (tailed["valid"] or tailed["test"]):
        return {stem: small[stem] for stems in tailed.values() for stem in stems}
    return {}


def folder_splits(tree: Tree, base: str) -> list[str]:
    """Which of train, valid and test there are folders for; all is train where there are none."""
    folders = splits_among(tree.folders(_start(tree, base)))
    return [split for split in SPLITS if fitting_stems(split, folders)] or ["train"]


def _start(tree: Tree, base: str) -> str:
    """Go down into a lone folder that is no split, and into one named `images` beside others."""
    while not splits_among(tree.folders(base)) and not has_images(tree, base):
        below = tree.folders(base)[0] if len(tree.folders(base)) == 1 else images_alone(tree, base)
        if not below:
            break
        base = join(base, below)
    return base


def images_alone(tree: Tree, base: str) -> str:
    """The folder `images` that has all the images, with folders of other things beside it."""
    folders = tree.folders(base)
    named = [name for name in folders if name.lower() in FLAT]
    others = [name for name in folders if name not in named]
    if len(named) != 1 or any(any(images_below(tree, join(base, one))) for one in others):
        return ""
    return named[0]


def split_folder(data: Path, tree: Tree, base: str, split: str) -> str:
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
