"""Which files of a folder hold a split, and in what form.

A file is named STEM.ENDING, STEM.ENDING.gz or STEM.ENDING.zst. The stem says the split; the ending
says the form, or the language of one of two parallel files.
"""

import re
import stat
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.data.readers.text.lines import PACKED
from saccade.errors import DataError
from saccade.regular import file_status

PAIR_FORMS = ("tsv", "jsonl", "parquet")
TEXT_FORMS = ("txt", "jsonl", "parquet")
NOT_TEXT = ("tsv", "csv", "json")  # a single file of any other ending is read as plain text

_KNOWN_ORDERS = (("source", "target"), ("src", "tgt"), ("src", "trg"))
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_]\w+)?|source|target")


@dataclass(frozen=True)
class NamedFile:
    """A file of the folder, its name taken apart."""

    path: Path
    stem: str
    ending: str


@dataclass(frozen=True)
class TextFiles:
    """The files of a split: one, or the source and the target where the form is "parallel"."""

    form: str
    paths: tuple[Path, ...]

    @property
    def names(self) -> list[str]:
        return [str(path) for path in self.paths]


def splits(data: Path, *, source: str = "", target: str = "") -> list[str]:
    """Which of train, valid and test exist; a single file is all train.

    Several files may claim one split; it is then listed, and reading it says so.
    """
    if not is_folder(data):
        return ["train"]
    endings = {*PAIR_FORMS, *TEXT_FORMS}
    stems = {
        e.stem for e in folder_entries(data) if e.ending in endings or _speaks(e, source, target)
    }
    return [split for split in SPLITS if fitting_stems(split, stems)]


def find_texts(data: Path, split: str) -> TextFiles:
    """The one file that holds the texts of a split."""
    if not is_folder(data):
        ending = single_file(data, split).ending
        if ending in NOT_TEXT:
            raise DataError(f"{data}: texts are not read from .{ending}; give {any_of(TEXT_FORMS)}")
        return TextFiles(ending if ending in TEXT_FORMS else "txt", (data,))
    mine = _of_split(
        data, split, [e for e in folder_entries(data) if e.ending in TEXT_FORMS], TEXT_FORMS
    )
    return _table(data, mine)


def find_pairs(data: Path, split: str, *, source: str, target: str) -> TextFiles:
    """The file or the two parallel files that hold the pairs of a split."""
    if bool(source) != bool(target) or (source and source == target):
        raise DataError(
            f"source={source!r} and target={target!r}: name two different languages, or neither"
        )
    if not is_folder(data):
        ending = single_file(data, split).ending
        if ending not in PAIR_FORMS:
            raise DataError(
                f"{data}: pairs are not read from a single .{ending} file; "
                f"give {any_of(PAIR_FORMS)}, or the folder of two parallel files"
            )
        return TextFiles(ending, (data,))
    likely = [
        e for e in folder_entries(data) if e.ending in PAIR_FORMS or _speaks(e, source, target)
    ]
    forms = (*PAIR_FORMS, *((source, target) if source else ()))
    mine = _of_split(data, split, likely, forms)
    tables = [e for e in mine if e.ending in PAIR_FORMS]
    spoken = [e for e in mine if e.ending not in PAIR_FORMS]
    if tables and (not source or not spoken):
        return _table(data, tables)
    if tables:
        raise DataError(crowded(data, mine))
    return _parallel(data, spoken, source, target)


def order_hint(languages: Collection[str]) -> str:
    """The two settings to give, with a likely choice filled in."""
    likely = sorted(languages, key=lambda name: (name != "en", name))
    source, target = (n[:40] if n.isprintable() else repr(n[:40]) for n in likely[:2])
    return f"--source {source} --target {target}"


def is_folder(data: Path) -> bool:
    """Whether the data is a folder; there must be something."""
    return stat.S_ISDIR(file_status(data, DataError).st_mode)


def single_file(data: Path, split: str) -> NamedFile:
    """A file that was given by itself."""
    if split != "train":
        raise DataError(
            f"{data} is a single file, so it is all train: there is no {split!r} in it; "
            "give a folder with a file for each split"
        )
    return named_file(data)


def named_file(path: Path) -> NamedFile:
    """Its name taken apart."""
    name = path.stem if path.suffix in PACKED else path.name
    stem, _, ending = name.rpartition(".")
    return NamedFile(path, stem, ending)


def folder_entries(folder: Path) -> list[NamedFile]:
    """What a folder holds, but for hidden files."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: {error.strerror}") from None
    return [named_file(path) for path in paths if not path.name.startswith(".")]


def _speaks(entry: NamedFile, source: str, target: str) -> bool:
    """Whether this may be one of two parallel files."""
    if source or target:
        return entry.ending in (source, target)
    return entry.ending not in TEXT_FORMS and bool(_LANGUAGE.fullmatch(entry.ending))


def _of_split(
    folder: Path, split: str, likely: Sequence[NamedFile], endings: Sequence[str]
) -> list[NamedFile]:
    stems = one_stem(folder, split, (e.stem for e in likely))
    if not stems:
        held = sorted(path.name for path in folder.iterdir())
        raise DataError(
            f"{folder} has no {split!r} split: no {split} file ending in {any_of(endings)}; "
            f"it holds {listed(held) or 'nothing'}; name a file so, or give one file as the data"
        )
    return [e for e in likely if e.stem in stems]


def _table(folder: Path, mine: Sequence[NamedFile]) -> TextFiles:
    if len(mine) > 1:
        raise DataError(crowded(folder, mine))
    return TextFiles(mine[0].ending, (mine[0].path,))


def _parallel(folder: Path, spoken: Sequence[NamedFile], source: str, target: str) -> TextFiles:
    files = {e.ending: e.path for e in spoken}
    if len(files) < len(spoken):
        raise DataError(crowded(folder, spoken))
    if not source:
        known = [order for order in _KNOWN_ORDERS if set(order) <= set(files)]
        source, target = known[0] if known else ("", "")
    if source in files and target in files:
        return TextFiles("parallel", (files[source], files[target]))
    held = listed([e.path.name for e in spoken])
    if source or len(files) == 1:
        lacking = target if source in files else source
        lacking_file = f"{spoken[0].stem}.{lacking}" if lacking else "other language beside it"
        raise DataError(f"{folder} has {held} but no {lacking_file}; pairs need both files")
    raise DataError(f"{folder} has {held}: say which is the source: {order_hint(files)}")


def crowded(folder: Path, mine: Sequence[NamedFile]) -> str:
    """What to say of several files where one is wanted."""
    held = listed([e.path.name for e in mine])
    return f"{folder} has {held} for one split; keep one of them, or give one file as the data"


def any_of(endings: Sequence[str]) -> str:
    """The forms to give."""
    dotted = [f".{ending}" for ending in endings]
    return f"{', '.join(dotted[:-1])} or {dotted[-1]} (or these with .gz or .zst)"
