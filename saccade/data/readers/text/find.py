"""Which files of a folder hold a split, and in what form.

A file is named STEM.ENDING, STEM.ENDING.gz or STEM.ENDING.zst. The stem says the split; the ending
says the form, or the language of one of two parallel files. A split may be in numbered parts, as
train-00000-of-00002.parquet or train-000017.tar, or in a folder that `datasets` of Hugging Face
saved.
"""

import re
import stat
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from saccade.data.readers.many_files import in_order, matching_files, split_of_part
from saccade.data.readers.report import listed
from saccade.data.readers.saved_datasets import saved_splits
from saccade.data.readers.stems import LEARNT_FROM, SHARD, SPLITS, fitting_stems, one_stem
from saccade.data.readers.text.languages import language_of
from saccade.data.readers.text.lines import PACKED, lines
from saccade.data.readers.text.parallel import MARKED_UP
from saccade.data.readers.text.records import order_hint
from saccade.errors import DataError
from saccade.regular import file_status

PAIR_FORMS = ("tsv", "csv", "jsonl", "json", "parquet", "arrow", "tar", "tmx")
TEXT_FORMS = ("txt", "csv", "jsonl", "json", "parquet", "arrow", "tar")
_ALSO_TEXT = ("tokens", "raw")  # wiki.train.tokens, as WikiText is given out
NOT_TEXT = ("tsv", "tmx")  # a single file of any other ending is read as plain text

_BESIDE = ("csv", "json", "tmx")  # which often lie beside data of another form
ARCHIVES = ("zip", "tgz", "rar", "7z")
_KNOWN_ORDERS = (("source", "target"), ("src", "tgt"), ("src", "trg"))
_NAMELESS = ""  # what is named after no split
_SIDE = re.compile(r"-(src|ref)$")  # newstest2014-deen-src.de.sgm
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}([-_]\w+)?|source|target")


@dataclass(frozen=True)
class NamedFile:
    """A file of the folder, its name taken apart."""

    path: Path
    stem: str
    ending: str


@dataclass(frozen=True)
class TextFiles:
    """The files of a split: one or its parts, or source and target if the form is "parallel"."""

    form: str
    paths: tuple[Path, ...]

    @property
    def names(self) -> list[str]:
        return [str(path) for path in self.paths]


def splits(data: Path, *, source: str = "", target: str = "") -> list[str]:
    """Which of train, valid and test exist; a single file is all train.

    Several files may claim one split; it is then listed, and reading it says so.
    """
    if matching_files(data) or not is_folder(data):
        return ["train"]
    entries = split_entries(data)
    endings = {*PAIR_FORMS, *TEXT_FORMS}
    stems = {e.stem for e in entries if e.ending in endings or _speaks(e, source, target)}
    found = [split for split in SPLITS if fitting_stems(split, stems)]
    alone = _nameless(stems) or _only_pair(entries, source, target)
    return found or ["train"] * bool(alone)


def find_texts(data: Path, split: str) -> TextFiles:
    """The file that holds the texts of a split, or its parts."""
    if parts := matching_files(data):
        return _single_parts(data, split, parts, TEXT_FORMS)
    if not is_folder(data):
        ending = single_file(data, split).ending
        if ending in NOT_TEXT:
            raise DataError(f"{data}: texts are not read from .{ending}; give {any_of(TEXT_FORMS)}")
        return TextFiles(ending if ending in TEXT_FORMS else "txt", (data,))
    likely = [e for e in split_entries(data) if e.ending in TEXT_FORMS]
    likely = _without_those_beside(split, likely, [[form] for form in TEXT_FORMS])
    return _table(data, _of_split(data, split, likely, TEXT_FORMS))


def find_pairs(data: Path, split: str, *, source: str, target: str) -> TextFiles:
    """The file or the two parallel files that hold the pairs of a split."""
    if bool(source) != bool(target) or (source and source == target):
        raise DataError(
            f"source={source!r} and target={target!r}: name two different languages, or neither"
        )
    if parts := matching_files(data):
        return _single_parts(data, split, parts, PAIR_FORMS)
    if not is_folder(data):
        ending = _as_table(single_file(data, split)).ending
        if ending not in PAIR_FORMS:
            unpack = "unpack it, or " if ending in ARCHIVES else ""
            raise DataError(
                f"{data}: pairs are not read from a single .{ending} file; {unpack}"
                f"give {any_of(PAIR_FORMS)}, or the folder of two parallel files"
            )
        return TextFiles(ending, (data,))
    entries = split_entries(data)
    if split == "train" and (pair := _only_pair(entries, source, target)):
        return _parallel(data, pair, source, target)
    likely = [e for e in entries if e.ending in PAIR_FORMS or _speaks(e, source, target)]
    tabbed = map(_as_table, entries)
    likely = likely or [e for e in tabbed if e.ending == "tsv"]
    orders = [(source, target)] if source else _KNOWN_ORDERS
    likely = _without_those_beside(split, likely, [*([form] for form in PAIR_FORMS), *orders])
    forms = (*PAIR_FORMS, *((source, target) if source else ()))
    mine = _of_split(data, split, likely, forms)
    tables = [e for e in mine if e.ending in PAIR_FORMS]
    spoken = [e for e in mine if e.ending not in PAIR_FORMS]
    if tables and (not source or not spoken):
        return _table(data, tables)
    if tables:
        raise DataError(crowded(data, mine))
    return _parallel(data, spoken, source, target)


def _as_table(entry: NamedFile) -> NamedFile:
    """What is called .txt, with a tab in its first line, is TSV."""
    if entry.ending == "txt" and entry.path.is_file():
        with suppress(DataError):  # which reading it will tell
            if b"\t" in (next(lines(entry.path)) or b""):
                return replace(entry, ending="tsv")
    return entry


def _only_pair(entries: Sequence[NamedFile], source: str, target: str) -> list[NamedFile]:
    """The two parallel files of a folder in which nothing is named after a split, as OPUS has it.

    None if there are several such pairs.
    """
    spoken = [e for e in entries if e.ending in (source, target)]
    if not source:
        spoken = [e for e in entries if language_of(e.ending)]
    pairs = [[e for e in spoken if e.stem == stem] for stem in sorted({e.stem for e in spoken})]
    pairs = [pair for pair in pairs if len(pair) > 1]
    if any(fitting_stems(split, [e.stem for e in entries]) for split in SPLITS):
        return []
    return pairs[0] if len(pairs) == 1 else []


def is_folder(data: Path) -> bool:
    """Whether the data is a folder; there must be something."""
    return stat.S_ISDIR(file_status(data, DataError).st_mode)


def single_file(data: Path, split: str, *, of: Path | None = None) -> NamedFile:
    """A file that was given by itself, or one `of` those that a pattern names."""
    if split != "train":
        raise DataError(
            f"{data} is a single file, so it is all train: there is no {split!r} in it; "
            "give a folder with a file for each split"
        )
    return named_file(of or data)


def named_file(path: Path) -> NamedFile:
    """Its name taken apart."""
    name = path.stem if path.suffix in PACKED else path.name
    stem, _, ending = name.rpartition(".")
    return NamedFile(path, stem, "txt" if ending in _ALSO_TEXT else ending)


def folder_entries(folder: Path) -> list[NamedFile]:
    """What a folder holds, but for hidden files."""
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: {error.strerror}") from None
    return [named_file(path) for path in paths if not path.name.startswith(".")]


def split_entries(folder: Path) -> list[NamedFile]:
    """What a folder holds, parts of a split and saved datasets named as that split is.

    Where nothing right in it is data, Hugging Face's `data` below it is looked into.
    """
    saved = [
        NamedFile(path, name or _NAMELESS, "arrow")
        for name, paths in saved_splits(folder).items()
        for path in paths
    ]
    if saved:
        return saved
    entries = [_as_part(entry) for entry in folder_entries(folder) if not _about(entry)]
    forms = {*PAIR_FORMS, *TEXT_FORMS}
    known = any(e.ending in forms and (e.ending not in _BESIDE or _is_split(e)) for e in entries)
    below = folder / "data"
    return split_entries(below) if not known and below.is_dir() else entries


def _about(entry: NamedFile) -> bool:
    """Whether a .json says something of the data: it holds some if it is named after a split."""
    return entry.ending == "json" and not _is_split(entry)


def _is_split(entry: NamedFile) -> bool:
    return any(fitting_stems(split, [entry.stem]) for split in SPLITS)


def _as_part(entry: NamedFile) -> NamedFile:
    """Named after its split, if it is one of the parts of it; tars often have a number alone.

    Test sets in SGML or XML are named after their language, too.
    """
    if f".{entry.ending}" in MARKED_UP:
        stem, _, language = entry.stem.rpartition(".")
        return NamedFile(entry.path, _SIDE.sub("", stem), language) if stem else entry
    if entry.ending == "tar":
        stem = split_of_part(entry.stem)
        named = any(fitting_stems(split, [stem]) for split in SPLITS)
        return replace(entry, stem=stem if named else _NAMELESS)
    parts = entry.ending in (*PAIR_FORMS, *TEXT_FORMS)
    return replace(entry, stem=SHARD.sub("", entry.stem)) if parts else entry


def _nameless(stems: Collection[str]) -> bool:
    """Whether all is train, for nothing is named after a split."""
    return bool(stems) and set(stems) == {_NAMELESS}


def _single_parts(data: Path, split: str, parts: Sequence[Path], forms: Sequence[str]) -> TextFiles:
    """Files that a pattern names, as one that was given by itself."""
    endings = sorted({single_file(data, split, of=part).ending for part in parts})
    if len(endings) > 1 or endings[0] not in forms:
        held = listed([f".{ending}" for ending in endings])
        raise DataError(f"{data} names files of {held}; name files of one form, {any_of(forms)}")
    return TextFiles(endings[0], tuple(parts))


def _speaks(entry: NamedFile, source: str, target: str) -> bool:
    """Whether this may be one of two parallel files."""
    if source or target:
        return entry.ending in (source, target)
    return entry.ending not in TEXT_FORMS and bool(_LANGUAGE.fullmatch(entry.ending))


def _of_split(
    folder: Path, split: str, likely: Sequence[NamedFile], endings: Sequence[str]
) -> list[NamedFile]:
    stems = one_stem(folder, split, (e.stem for e in likely))
    if split == "train" and _nameless({e.stem for e in likely}):
        stems = [_NAMELESS]
    if not stems:
        held = sorted(path.name for path in folder.iterdir())
        raise DataError(
            f"{folder} has no {split!r} split: no {split} file ending in {any_of(endings)}; "
            f"it holds {listed(held) or 'nothing'}; name a file so, {_ways(folder, split, likely)}"
        )
    return [e for e in likely if e.stem in stems]


def _ways(folder: Path, split: str, likely: Sequence[NamedFile]) -> str:
    """What else can be done where no file is named after a split."""
    endings = {e.ending for e in likely} & {*PAIR_FORMS, *TEXT_FORMS}
    if split == "train" and len(likely) == 1 and endings:
        return f"or give it as the data: --data {likely[0].path}"
    if split == "train" and endings:
        pattern = folder / f"*.{min(endings)}"
        return f"or give one file as the data, or all by a pattern: --data '{pattern}'"
    learnt = {stem for one in LEARNT_FROM for stem in fitting_stems(one, (e.stem for e in likely))}
    others = sorted({e.stem for e in likely} - learnt)
    if below := folders_with(folder, split):
        return f"or give the folder below it: --data {below[0]}"
    if split not in LEARNT_FROM and others:
        return f"pass another as the split, such as {others[0]!r}, or give one file as the data"
    return "or give one file as the data"


def _without_those_beside(
    split: str, likely: Sequence[NamedFile], whole: Sequence[Sequence[str]]
) -> Sequence[NamedFile]:
    """The files without what may only lie beside data, where others are a split: a `whole` form."""
    others = [e for e in likely if e.ending not in _BESIDE]
    stems = fitting_stems(split, (e.stem for e in others))
    if split == "train" and _nameless({e.stem for e in others}):
        stems = [_NAMELESS]
    endings = {e.ending for e in others if e.stem in stems}
    return others if any(endings.issuperset(form) for form in whole) else likely


def _table(folder: Path, mine: Sequence[NamedFile]) -> TextFiles:
    parts = [e.path for e in mine]
    if len(parts) > 1 and (len({e.ending for e in mine}) > 1 or not all(map(is_part, parts))):
        raise DataError(crowded(folder, mine))
    return TextFiles(mine[0].ending, tuple(in_order(parts)))


def is_part(path: Path) -> bool:
    """Whether a file may be one of the parts of a split."""
    stem = named_file(path).stem
    return bool(SHARD.search(stem)) or split_of_part(stem) != stem or path.suffix == ".arrow"


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


def folders_with(folder: Path, split: str) -> list[Path]:
    """Folders below one that hold a split, as Hugging Face has one for each configuration."""
    below = sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")
    return [one for one in below if fitting_stems(split, (e.stem for e in split_entries(one)))]


def crowded(folder: Path, mine: Sequence[NamedFile]) -> str:
    """What to say of several files where one is wanted."""
    held = listed([e.path.name for e in mine])
    return f"{folder} has {held} for one split; keep one of them, or give one file as the data"


def any_of(endings: Sequence[str]) -> str:
    """The forms to give."""
    dotted = [f".{ending}" for ending in endings]
    return f"{', '.join(dotted[:-1])} or {dotted[-1]} (or these with .gz or .zst)"
