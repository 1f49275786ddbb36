"""Which files hold the splits of texts with labels, in what form, and whether they are GLUE's."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from saccade.data.glue import GLUE, GlueTask, glue_task, known_task
from saccade.data.readers.columns import find_column
from saccade.data.readers.labelled_texts.conll import looks_tagged
from saccade.data.readers.labelled_texts.folders import class_folders
from saccade.data.readers.labelled_texts.headless import FORMS, headless_form
from saccade.data.readers.labelled_texts.rows import TextColumns
from saccade.data.readers.labelled_texts.tables import (
    PAIRS,
    TEXTS,
    first_cells,
    is_cola,
    open_table,
)
from saccade.data.readers.many_files import matching_files
from saccade.data.readers.report import listed
from saccade.data.readers.stems import LEARNT_FROM, SHARD, SPLITS, fitting_stems, one_stem
from saccade.data.readers.text.find import (
    NamedFile,
    any_of,
    crowded,
    folders_with,
    is_folder,
    is_part,
    named_file,
    split_entries,
)
from saccade.errors import DataError
from saccade.printable import printable

TABLES = ("tsv", "csv", "jsonl", "json", "parquet", "arrow", "tar")
TAGGED = ("conll", "conllu", "gold_conll", "bio", "iob", "iob2", "bioes", "txt")
_READ = (*TABLES, *TAGGED, *FORMS)
_BY_PARTS = ("arrow", "tar")  # forms whose parts are named after their split by `split_entries`
WHOLE = ""  # the name of a file that was given by itself
_SPLIT_ENDINGS = {"train": "train", "testa": "valid", "testb": "test"}  # eng.testa is CoNLL's valid

Found = dict[str, list[NamedFile]]


def find_labelled_texts(data: Path) -> Found:
    """The files that may hold texts with labels, by their stems; WHOLE is a single file."""
    parts = matching_files(data)
    if parts or not is_folder(data):
        files = [_as_table(_form(path)) for path in parts or [data]]
        file = files[0]
        if len({file.ending for file in files}) > 1:
            raise DataError(crowded(data, files))
        if file.ending not in _READ:
            raise DataError(
                f"{printable(data)}: texts with labels are not read from .{printable(file.ending)};"
                f" give {any_of((*TABLES, *TAGGED))}"
            )
        return {WHOLE: files}
    found, classes = Found(), class_folders(data)
    splits = [file.path for files in classes.values() for file in files]
    for entry in split_entries(data):
        if entry.path in splits:
            continue
        file = entry if entry.ending in _BY_PARTS else _form(entry.path)
        if file.ending in _READ:
            found.setdefault(file.stem, []).append(file)
    for stem, files in found.items():  # beside the words of Universal Dependencies, beside SNLI
        if any(file.ending in ("conllu", "jsonl") for file in files):
            found[stem] = [file for file in files if file.path.suffix != ".txt"]
    if classes and not fitting_stems("train", found):
        return classes
    nameless = found.pop(WHOLE, [])
    return found or ({WHOLE: nameless} if nameless else {})


def find_task(data: Path, found: Found, columns: TextColumns) -> GlueTask | None:
    """The task of GLUE that some data are: as it was said, by the folder, or by the first line."""
    if columns.task != "auto":
        return None if columns.kind else _asked(data, found, glue_task(columns.task))
    tables = [file for files in found.values() for file in files if file.ending in TABLES]
    if columns.text or columns.label or not tables:
        return None
    learnt = fitting_stems("train", found)
    file = min(tables, key=lambda file: (file.stem not in learnt, file.stem))
    cells = first_cells(file) if file.ending == "tsv" else []
    named = known_task(_folder(data, found).name)
    if named and _fits(named, file, cells):
        return named
    if is_cola(cells):
        return GLUE["CoLA"]
    mnli = GLUE["MNLI"]  # of which copies have many names, but not for these splits
    if any(stem.endswith("_matched") for stem in found) and _fits(mnli, file, cells):
        return mnli
    starts = [task for task in GLUE.values() if task.header]
    return next((t for t in starts if tuple(cells[: len(t.header)]) == t.header), None)


def _asked(data: Path, found: Found, said: GlueTask) -> GlueTask:
    """The task that was said, or the one that asks its models, where data are named after that."""
    names = (_folder(data, found).name, *(file.stem for file in found.get(WHOLE, ())))
    named = (known_task(name) for name in names)
    return next((task for task in named if task and task.asks == said.name), said)


def _folder(data: Path, found: Found) -> Path:
    return data.resolve() if WHOLE not in found else data.resolve().parent


def files_of_split(data: Path, split: str, found: Found, task: GlueTask | None) -> list[NamedFile]:
    """The file of a split, or its parts."""
    if task and task.asks and split in LEARNT_FROM:
        raise DataError(
            f"{printable(data)} is {task.name}, which has no {split!r}; train on {task.asks}, and "
            f"ask that run: saccade eval RUN --data {printable(data)} --submission {task.name}.tsv"
        )
    if WHOLE in found:
        _require_whole(data, split, task)
        return found[WHOLE]
    stems = task_stems(split, found, task) or one_stem(data, split, found)
    if not stems:
        held = sorted(path.name for path in data.iterdir())
        raise DataError(
            f"{printable(data)} has no {split!r} split: no {printable(split)} file ending in "
            f"{any_of(TABLES)}, or in {any_of(TAGGED)} for tags, nor folders of classes with .txt "
            f"files; it holds {listed(held) or 'nothing'}; name a file so, or give one file as the "
            "data"
            + "".join(
                f", or the folder below: --data {one}" for one in folders_with(data, split)[:1]
            )
        )
    files = found[stems[0]]
    if len(files) > 1 and not all(is_part(file.path) for file in files):
        raise DataError(crowded(data, files))
    return files


def task_stems(split: str, found: Found, task: GlueTask | None) -> list[str]:
    """What a task of GLUE calls the file of a split, where there is such a file."""
    return [stem for stem in task.splits.get(split, ()) if stem in found][:1] if task else []


def splits_of(found: Found, task: GlueTask | None) -> list[str]:
    """Which splits there are."""
    if WHOLE in found:
        return [_whole_split(task)]
    every: Sequence[str] = list(task.splits) if task else list(SPLITS)
    return [s for s in every if task_stems(s, found, task) or fitting_stems(s, found)]


def names_texts(cells: list[str]) -> bool:
    """Whether the first line of a table names a column of texts."""
    return bool(find_column(cells, [*TEXTS, *(first for first, _ in PAIRS)]))


def _fits(task: GlueTask, file: NamedFile, cells: list[str]) -> bool:
    if task.name == "CoLA" and is_cola(cells):
        return True
    with suppress(DataError):  # which reading it will tell
        names = open_table(file, None).names
        return any(all(find_column(names, [name]) for name in texts) for texts in task.texts)
    return False


def _require_whole(data: Path, split: str, task: GlueTask | None) -> None:
    if split != _whole_split(task):
        raise DataError(
            f"{printable(data)} is a single file, so it is all {_whole_split(task)}: there is no "
            f"{split!r} in it; give a folder with a file for each split"
        )


def _whole_split(task: GlueTask | None) -> str:
    return "train" if task is None or "train" in task.splits else "test"


def _form(path: Path) -> NamedFile:
    file = named_file(path)
    file = replace(file, stem=SHARD.sub("", file.stem), ending=file.ending.lower())
    split = _SPLIT_ENDINGS.get(file.ending)
    if split:
        return replace(file, stem=split, ending="conll")
    known = headless_form(file)
    if known or file.ending.endswith("gold_conll"):
        return replace(file, ending=known or "gold_conll")
    return replace(file, ending="tsv") if file.ending == "txt" and _is_table(file) else file


def _as_table(file: NamedFile) -> NamedFile:
    """A file that was named itself, with tabs, under a name without an ending of ours, is TSV."""
    tabbed = file.ending not in _READ and len(first_cells(file)) > 1
    return replace(file, ending="tsv") if tabbed else file


def _is_table(file: NamedFile) -> bool:
    """Whether a .txt file names columns of texts in its first line, as MRPC's own files do."""
    with suppress(DataError):  # which reading it will tell
        cells = first_cells(file)
        return len(cells) > 1 and names_texts(cells) and not looks_tagged(file)
    return False
