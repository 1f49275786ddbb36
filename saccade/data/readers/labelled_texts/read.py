"""Read a split of texts with labels, whatever form the user has it in.

GLUE's files      each task with its columns and quirks, known by its folder or first line
tables            .tsv, .csv, .jsonl, .parquet, with a column of texts, or two, and of labels
CoNLL, CoNLL-U    a word and its tag on each line
folders           one for each class, with a text in each .txt file
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from saccade.data.batching.held_out import held_out
from saccade.data.glue import GlueTask
from saccade.data.readers.labelled_texts.conll import TaggedFile, looks_tagged
from saccade.data.readers.labelled_texts.find import (
    TAGGED,
    files_of_split,
    find_labelled_texts,
    find_task,
    names_texts,
    splits_of,
)
from saccade.data.readers.labelled_texts.folders import FORM, TextFolders
from saccade.data.readers.labelled_texts.rows import (
    USUAL_COLUMNS,
    Label,
    LabelKind,
    LabelledText,
    LabelledTextsRead,
    TextColumns,
)
from saccade.data.readers.labelled_texts.tables import TextTable, first_cells, number_in
from saccade.data.readers.report import collect
from saccade.data.readers.stems import LEARNT_FROM
from saccade.data.readers.text.find import NamedFile
from saccade.errors import DataError


def read_labelled_texts(
    data: Path,
    split: str,
    columns: TextColumns = USUAL_COLUMNS,
    *,
    skip_bad: int = 0,
    labels_needed: bool | None = None,
) -> LabelledTextsRead:
    """All rows of a split, in order.

    Over `skip_bad` bad rows stop the reading with a list of them; fewer are left out and counted.
    Only train and valid must have labels, unless `labels_needed` says otherwise.
    """
    found = find_labelled_texts(data)
    task = find_task(data, found, columns)
    files = files_of_split(data, split, found, task)
    needed = split in LEARNT_FROM if labels_needed is None else labels_needed
    sources = [_source(file, task, columns, needed) for file in files]
    names = [str(file.path) for file in files]
    read = collect(
        chain.from_iterable(source.rows() for source in sources),
        names if len(names) < 3 else [names[0], "…", names[-1]],
        LabelledTextsRead,
        skip_bad=skip_bad,
    )
    passed = sum((source.passed_over for source in sources), Counter[str]())
    tagged = any(source.tagged for source in sources)
    kind = "tags" if tagged else _kind(read.rows, task, columns)
    rows = [row._replace(label=_as(kind, row.label)) for row in read.rows]
    duplicates = len(rows) - len({(row.texts, row.label, row.words) for row in rows})
    return replace(
        read, rows=rows, duplicates=duplicates, task=task, kind=kind, passed_over=dict(passed)
    )


def labelled_text_splits(data: Path, columns: TextColumns = USUAL_COLUMNS) -> list[str]:
    """Which splits there are: of train, valid and test, and of MNLI's mismatched ones."""
    found = find_labelled_texts(data)
    return splits_of(found, find_task(data, found, columns))


def held_out_part(read: LabelledTextsRead, split: str, share: float) -> LabelledTextsRead:
    """What is left of train, or its valid, where the data have no such split."""
    if not share:
        raise DataError(
            f"held_out=0, and {read.summary()} has no validation split; give one, or "
            "--held-out 0.05"
        )
    classes: list[Label] = [row.label if read.kind == "classes" else None for row in read.rows]
    kept = [out == (split == "valid") for out in held_out(classes, share)]
    if not any(kept):
        most = max(Counter(classes).values())
        larger = f", or --held-out {math.ceil(100 / most) / 100:g}" if most > 1 else ""
        raise DataError(
            f"{read.summary()}: too few to hold some out for validation; add texts, or a "
            f"validation split{larger}"
        )
    return replace(read, rows=[row for row, mine in zip(read.rows, kept) if mine])


def _source(
    file: NamedFile, task: GlueTask | None, columns: TextColumns, needed: bool
) -> TextTable | TaggedFile | TextFolders:
    if file.ending == FORM:
        return TextFolders(file)
    plain = file.ending in TAGGED
    if file.ending == "tsv" and not task:
        unnamed = columns.task == "auto" and not names_texts(first_cells(file))
        plain = columns.kind == "tags" or (unnamed and looks_tagged(file))
    return TaggedFile(file, columns, needed) if plain else TextTable(file, task, columns, needed)


def _kind(rows: Sequence[LabelledText], task: GlueTask | None, columns: TextColumns) -> LabelKind:
    """What labels are, where nobody said: numbers if one of them is not whole and all are."""
    if task:
        return "classes" if task.labels else "number"
    if columns.kind:
        return columns.kind
    labels = [row.label for row in rows if row.label is not None]
    if any(isinstance(label, tuple) for label in labels):
        return "labels"
    numbers = [number_in(label) for label in labels if isinstance(label, str)]
    whole = all(number is None or number.is_integer() for number in numbers)
    return "classes" if whole or None in numbers else "number"


def _as(kind: LabelKind, label: Label) -> Label:
    if isinstance(label, str) and kind == "labels":
        return (label,)
    return number_in(label) if isinstance(label, str) and kind == "number" else label
