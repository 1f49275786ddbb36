"""Which folders of images are splits, and where they begin: train, Val, training_set, seg_train."""

import re
from pathlib import Path

from saccade.data.readers.images.named import has_images
from saccade.data.readers.images.tree import Tree, join
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem, split_stem
from saccade.errors import DataError
from saccade.printable import printable

_HOLDS_SPLIT = re.compile(r"[ ._-](set|data|images?|imgs)$")  # training_set


def splits_among(folders: list[str]) -> dict[str, str]:
    """The folders that are splits, by name: train, Val; or seg_train if there is seg_test too."""
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
    """Go down into a lone folder that is no split."""
    folders = tree.folders(base)
    while len(folders) == 1 and not splits_among(folders) and not has_images(tree, base):
        base = join(base, folders[0])
        folders = tree.folders(base)
    return base


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
