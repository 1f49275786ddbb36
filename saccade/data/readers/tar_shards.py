"""Where samples in tar files lie: in one, in numbered ones of a folder, or as a pattern names them.

The names say the split, train-000017.tar or train/000017.tar; where none does, all is train.
"""

from collections.abc import Collection
from pathlib import Path

from saccade.data.readers.many_files import in_order, matching_files, split_of_part
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.data.readers.tar_samples import IMAGE, first_keys
from saccade.errors import DataError
from saccade.printable import printable

WHOLE = ""  # what is named after no split
_TAR = ".tar"


def image_tars(data: Path, said: Collection[str] = ()) -> dict[str, list[Path]]:
    """Tars by split, if their samples are images of which one of the keys is `said`; else none."""
    found = _tars(data)
    first = next(iter(found.values()), [])
    if not first:
        return {}
    samples = first_keys(first[0])
    if any(IMAGE in keys and (not said or set(keys) & set(said)) for keys in samples):
        return found
    if matching_files(data):
        held = listed(list(dict.fromkeys(key for keys in samples for key in keys))) or "nothing"
        wanted = f" and one of {', '.join(said)}" if said else ""
        raise DataError(
            f"{printable(first[0])}: its samples have no image{wanted}; they have {held}: is this "
            "the form that you meant?"
        )
    return {}


def tars_of_split(data: Path, split: str, found: dict[str, list[Path]]) -> list[Path]:
    """The tars of one split; where none is named after any, all are train."""
    stems = one_stem(data, split, found)
    if not stems and split == "train" and WHOLE in found and not tar_splits(found):
        stems = [WHOLE]
    if not stems:
        held = listed([path.name for paths in found.values() for path in paths])
        raise DataError(
            f"{printable(data)} has no {split!r} split: no {split}-….tar and no folder {split} of "
            f"tars; it holds {held}"
        )
    return found[stems[0]]


def tar_splits(found: dict[str, list[Path]]) -> list[str]:
    """Which of train, valid and test the tars are named after."""
    return [split for split in SPLITS if fitting_stems(split, found)]


def _tars(data: Path) -> dict[str, list[Path]]:
    if parts := matching_files(data):
        return {WHOLE: parts} if all(path.suffix == _TAR for path in parts) else {}
    if data.suffix == _TAR and data.is_file():
        return {WHOLE: [data]}
    if not data.is_dir():
        return {}
    found: dict[str, list[Path]] = {}
    for path in data.iterdir():
        if path.is_dir() and _split(path.name):
            found.setdefault(path.name, []).extend(path.glob(f"*{_TAR}"))
        elif path.suffix == _TAR and not path.name.startswith("."):
            stem = split_of_part(path.stem)
            found.setdefault(stem if _split(stem) else WHOLE, []).append(path)
    return {stem: in_order(found[stem]) for stem in sorted(found) if found[stem]}


def _split(name: str) -> bool:
    return any(fitting_stems(split, [name]) for split in SPLITS)
