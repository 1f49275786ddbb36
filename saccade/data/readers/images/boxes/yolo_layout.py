"""Where a folder has YOLO's images and labels: by its data.yaml, or by the names of folders.

images/train + labels/train     train/images + train/labels     images + labels
images and texts in one folder, with obj.names or classes.txt; or a text that lists images
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

from saccade.data.readers.images.boxes.rows import small_file
from saccade.data.readers.images.boxes.yaml import Value, little_yaml
from saccade.data.readers.images.boxes.yolo import (
    IMAGES,
    LABELS,
    YoloBoxes,
    YoloNames,
    is_folder,
    label_file,
)
from saccade.data.readers.images.named import has_images, images_below
from saccade.data.readers.images.rows import ENDINGS
from saccade.data.readers.images.split_folders import splits_among
from saccade.data.readers.images.tree import Tree, join
from saccade.data.readers.report import BadRow
from saccade.data.readers.stems import SPLITS
from saccade.errors import DataError
from saccade.printable import printable

YAML = (".yaml", ".yml")
_NAMES = ("classes.txt", "obj.names", "_darknet.labels", "_classes.txt", "labels.txt")


def find_yolo(tree: Tree, base: str, yaml: str = "") -> dict[str, YoloBoxes]:
    """The splits of a folder that holds YOLO's form; "" is one that is named after none."""
    about: dict[str, Value] = {}
    for name in [yaml] if yaml else tree.files(base):
        if name.lower().endswith(YAML):
            about = little_yaml(_text(tree, join(base, name)))
            if about.keys() & {"names", "train", "val", "kpt_shape"}:
                yaml = name
                break
    else:
        about = {}
    names = _names_in(about.get("names", ""), yaml) if "names" in about else _named(tree, base)
    names = replace(names, keypoints=_keypoints(about.get("kpt_shape", "")))
    return _declared(tree, base, about, names) or _by_folders(tree, base, names)


def _keypoints(shape: Value) -> int:
    """How many numbers follow a box, where data.yaml says kpt_shape: [17, 3]."""
    numbers = [int(one) for one in shape if one.isascii() and one.isdigit() and len(one) < 6]
    return prod(numbers) if len(numbers) == 2 else 0


def _declared(
    tree: Tree, base: str, about: dict[str, Value], names: YoloNames
) -> dict[str, YoloBoxes]:
    """The splits that data.yaml names and that are there; none where train is not."""
    found: dict[str, YoloBoxes] = {}
    root = about.get("path", "")
    for split in (name for names in SPLITS.values() for name in names):
        given = about.get(split, "")
        places = given if isinstance(given, list) else [given] if isinstance(given, str) else []
        images = [
            one
            for place in places
            if place
            for one in _images(tree, base, join(str(root), place) if root else place)
        ]
        if images and (split == "train" or _labelled(tree, images)):
            where = printable(join(str(tree.path), base, places[0]))
            found[split] = YoloBoxes(tree, where, list(dict.fromkeys(images)), names)
    return found if "train" in found else {}


def _images(tree: Tree, base: str, place: str) -> Iterator[str]:
    """The images of a folder or a list of them, wherever the data were when it was written."""
    for tail in _tails(place):
        whole = join(base, tail)
        if tail.lower().endswith(".txt") and _is_file(tree, whole):
            for line in _text(tree, whole).splitlines():
                if line.strip():
                    near = [join(base, one) for one in _tails(line.strip())]
                    yield next((one for one in near if _is_file(tree, one)), near[0])
            return
        if is_folder(tree, whole):
            yield from images_below(tree, whole)
            return


def _tails(place: str) -> list[str]:
    """A path with less and less before it, down to its last two parts."""
    every = place.replace("\\", "/").split("/")
    parts = [part for part in every if part not in ("", ".", "..") and not part.endswith(":")]
    return ["/".join(parts[start:]) for start in range(max(len(parts) - 1, 1))]


def _by_folders(tree: Tree, base: str, names: YoloNames) -> dict[str, YoloBoxes]:
    found = {
        stem: folder
        for stem, name in splits_among(tree.folders(base)).items()
        if (folder := _with_labels(tree, join(base, name))) is not None
    }
    small = {name.lower(): name for name in tree.folders(base)}
    if not found and IMAGES in small and LABELS in small:
        images = join(base, small[IMAGES])
        found = {
            stem: join(images, name) for stem, name in splits_among(tree.folders(images)).items()
        }
    whole = "" if found else _with_labels(tree, base)
    if not found and whole is not None:
        found = {"": whole}
    parts: dict[str, YoloBoxes] = {}
    for stem, folder in found.items():
        near = names if names.names else _named(tree, folder)
        mine = replace(near, keypoints=names.keypoints)
        images = list(images_below(tree, folder))
        name = printable(join(str(tree.path), folder))
        if images and (stem in ("", "train") or _labelled(tree, images)):
            parts[stem] = YoloBoxes(tree, name, images, mine, whole=not stem)
    return parts


def _labelled(tree: Tree, images: Sequence[str]) -> bool:
    """Whether one image has labels; without any, these are images to try a model on."""
    return any(_is_file(tree, label_file(name)) for name in images)


def _with_labels(tree: Tree, folder: str) -> str | None:
    """The folder of images that have labels: images/ beside labels/, or this one with texts."""
    small = {name.lower(): name for name in tree.folders(folder)}
    if IMAGES in small and LABELS in small:
        return join(folder, small[IMAGES])
    stems = {name[:-4] for name in tree.files(folder) if name.lower().endswith(".txt")}
    images = (name for name in tree.files(folder) if name.lower().endswith(ENDINGS))
    beside = any(name.rpartition(".")[0] in stems for name in images)
    return folder if beside and has_images(tree, folder) else None


def _named(tree: Tree, folder: str) -> YoloNames:
    """The names of classes in a file with a line for each, here or with the labels."""
    above = folder.rpartition("/")[0]
    small = [name for name in tree.folders(folder) if name.lower() == LABELS]
    for place in (folder, *(join(folder, name) for name in small), *([above] if above else [])):
        files = {name.lower(): name for name in tree.files(place)}
        ends = [name for name in files if name.endswith(".names")]
        for name in (*_NAMES, *ends):
            if name in files:
                lines = _text(tree, join(place, files[name])).splitlines()
                return _names_in([one.strip() for one in lines if one.strip()], files[name])
    return YoloNames()


def _names_in(value: Value, file: str) -> YoloNames:
    if isinstance(value, dict):
        numbers = {key for key in value if key.isascii() and key.isdigit() and len(key) < 10}
        if len(numbers) < len(value):
            strange = next(key for key in value if key not in numbers)
            raise DataError(f"{file}: {strange[:60]!r} in 'names' is no number of a class")
        found = {int(key): name for key, name in sorted(value.items(), key=lambda e: int(e[0]))}
    else:
        found = dict(enumerate(value if isinstance(value, list) else []))
    if not found or not all(found.values()):
        raise DataError(f"{printable(file)} names no classes; write names: [cat, dog]")
    seen: set[str] = set()
    for name in found.values():
        if name in seen:
            raise DataError(f"{printable(file)} has the class {printable(name)!r} twice; name each")
        seen.add(name)
    return YoloNames(found, printable(file))


def _is_file(tree: Tree, name: str) -> bool:
    try:
        return tree.member(name) is not None
    except BadRow:  # it is there, and may not be read
        return True


def _text(tree: Tree, name: str) -> str:
    try:
        member = tree.member(name)
        if member is None:
            raise BadRow("it is not there")
        return small_file(member).decode("utf-8-sig")
    except BadRow as bad:
        raise DataError(f"{printable(name)} cannot be read: {bad}; put the file there") from None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{printable(name)} is not UTF-8: at byte {error.start}; save it as UTF-8"
        ) from None
