"""Images that a person names one by one, by the folder, or by the archive; no captions asked for.

An image that cannot be had is told of in its place, so that the rest goes on.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from saccade.data.images.decode import ImageError
from saccade.data.images.members import Member
from saccade.data.readers.images.rows import ENDINGS, UNREAD
from saccade.data.readers.images.tree import ARCHIVES, Tree, join, tree_of
from saccade.data.readers.report import BadRow
from saccade.errors import DataError
from saccade.printable import printable

Named = tuple[str, Path | Member | DataError]


def named_images(given: Iterable[str]) -> Iterator[Named]:
    """Every image that is named, and all of a folder or archive; or why there is none."""
    for one in given:
        path = Path(one)
        if not holds_images(path):
            yield printable(one), path
            continue
        try:
            yield from _held(path)
        except DataError as error:
            yield printable(one), error


def holds_images(path: Path) -> bool:
    """Whether a path is a folder or an archive; else it is an image itself."""
    name = path.name.lower()
    return os.path.isdir(path) or name.endswith((*ARCHIVES, ".tgz")) or ".tar." in name


def _held(path: Path) -> Iterator[Named]:
    tree, base = tree_of(path)
    names = list(images_below(tree, base, unread=True))
    if not names:
        raise DataError(f"{path} holds no images: no name in it ends in {', '.join(ENDINGS)}")
    for name in names:
        whole = printable(join(str(path), name))
        try:
            member = tree.member(name)
        except BadRow as bad:
            yield whole, ImageError(whole, str(bad))
            continue
        lost = ImageError(whole, "missing image: a link that leads nowhere")
        yield whole, lost if member is None else member


def images_below(tree: Tree, folder: str, *, unread: bool = False) -> Iterator[str]:
    """The images of a folder, then those of its folders; links to folders may lead in circles.

    With `unread` also those in forms that are not read, so that they can be told of.
    """
    endings = (*ENDINGS, *UNREAD) if unread else ENDINGS
    for name in tree.files(folder):
        if name.lower().endswith(endings):
            yield join(folder, name)
    for name in tree.folders(folder):
        if not (tree.path / folder / name).is_symlink():
            yield from images_below(tree, join(folder, name), unread=unread)


def has_images(tree: Tree, folder: str) -> bool:
    """Whether images lie right in a folder."""
    return any(name.lower().endswith(ENDINGS) for name in tree.files(folder))
