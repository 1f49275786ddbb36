"""Tables of texts with labels: TSV, CSV, JSON Lines, Parquet, Arrow and tars of samples.

GLUE's own TSV files are among them.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from saccade.data.glue import INDEX, GlueTask
from saccade.data.readers.arrow_streams import arrow_columns, arrow_rows
from saccade.data.readers.columns import (
    ShortRow,
    Table,
    by_number,
    comma_table,
    find_column,
    json_table,
    require_column,
    tab_table,
)
from saccade.data.readers.features import class_label_names
from saccade.data.readers.label_values import labels_in, labels_of
from saccade.data.readers.labelled_texts.headless import FORMS
from saccade.data.readers.labelled_texts.rows import (
    USUAL_COLUMNS,
    Label,
    LabelledText,
    TextColumns,
)
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.tar_samples import tar_keys, tar_records, whole_record
from saccade.data.readers.text.find import NamedFile
from saccade.data.readers.text.lines import lines, text_of
from saccade.data.readers.text.parquet import parquet_columns, parquet_rows, whole_row
from saccade.data.readers.text.records import as_text, json_rows, kind_of, shown_keys

PAIRS = (
    *(("sentence1", "sentence2"), ("premise", "hypothesis"), ("question1", "question2")),
    *(("text1", "text2"), ("text_a", "text_b"), ("sentence_a", "sentence_b")),
    *(("question", "sentence"), ("question", "passage"), ("question", "answer")),
    *(("question", "context"), ("query", "passage"), ("#1 String", "#2 String")),
)
TEXTS = (
    *("text", "sentence", "content", "review", "tweet", "comment", "document", "article"),
    *("utterance", "question", "query", "message", "headline", "body", "title"),
    *("reviewtext", "review_text", "review_body", "comment_text", "phrase", "abstract"),
)
LABELS = (
    *("label", "labels", "gold_label", "class", "category", "categories", "target", "score"),
    *("sentiment", "intent", "emotion", "rating", "stars", "similarity", "is_duplicate"),
    *("quality", "polarity", "topic", "tags", "label_text", "y"),
    *("overall", "star_rating", "answer", "gold"),
)
WORDS = ("tokens", "words")
TAGS = ("tags", "ner_tags", "upos", "pos_tags", "chunk_tags", "ner", "pos", "labels")
COLA = ("source", "label", "star", "sentence")  # whose files of train and dev name no columns
NO_GOLD = "-"  # where those who labelled a pair did not agree, under `gold_label`
OPTION = "--{}"  # by which a column is named
NUMBERED = "--{} (by its number, as --text 2 --label 1, if that line is a row)"
COLUMNAR = {"parquet": (parquet_columns, parquet_rows), "arrow": (arrow_columns, arrow_rows)}
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class PassedOver(Exception):  # noqa: N818 (a finding about one row, which its reader always catches)
    """A row that is left out by rule, and why."""


class TextKeys(NamedTuple):
    """The columns of the texts, of the label and of the index; "" where there is none."""

    texts: tuple[str, ...]
    label: str
    row_index: str = ""
    tagged: bool = False


@dataclass
class TextTable:
    """A file with the rows of a split; where labels are not `needed`, they may be missing."""

    file: NamedFile
    task: GlueTask | None
    columns: TextColumns
    needed: bool
    passed_over: Counter[str] = field(default_factory=Counter[str])
    tagged: bool = False

    def rows(self) -> Iterator[LabelledText | Problem]:
        """Each row, its label as it is said there: one, or a tuple of several."""
        table, name = open_table(self.file, self.task, self.columns), str(self.file.path)
        keys = self._keys(name, table.names)
        self.tagged, names, rows = keys.tagged, list[str](), table.rows
        if self.file.ending in COLUMNAR:
            columns_of, rows_of = COLUMNAR[self.file.ending]
            rows = rows_of(self.file.path, {*keys.texts, keys.label, keys.row_index} - {""})
            names = class_label_names(columns_of(self.file.path).features, keys.label)

        def parse(raw: Any, number: int) -> LabelledText | None:
            try:
                fields = table.record(raw)
                if fields is not None:
                    return self._row(fields, keys, names, f"{name}:{number}")
            except PassedOver as rule:
                self.passed_over[str(rule)] += 1
            except ShortRow:
                if not self.task or not self.task.ragged:
                    raise
                self.passed_over["too few columns"] += 1
            return None

        return parse_rows(rows, name, parse, first=table.first)

    def _row(
        self, fields: dict[str, Any], keys: TextKeys, names: Sequence[str], where: str
    ) -> LabelledText:
        lacking = [key for key in keys.texts if key not in fields]
        if lacking or (keys.label not in fields and self.needed):
            key = (*lacking, keys.label)[0]
            raise BadRow(f"missing key: no {key!r}; it has {shown_keys(fields)}")
        if keys.tagged:
            return self._tagged(fields, keys, names, where)
        texts = tuple(as_text(fields[key], key) for key in keys.texts)
        blank = [key for key, text in zip(keys.texts, texts) if not text or text.isspace()]
        if len(blank) == len(texts):
            raise BadRow("empty")
        if blank and not (self.task and self.task.ragged):
            raise BadRow(f"one side empty: {blank[0]!r}")
        label = self._label(fields.get(keys.label), keys.label, names)
        index = fields.get(keys.row_index) if keys.row_index else None
        row_index = "" if index is None else str(index)
        return LabelledText(texts, label, where=where, row_index=row_index)

    def _tagged(
        self, fields: dict[str, Any], keys: TextKeys, names: Sequence[str], where: str
    ) -> LabelledText:
        words = tuple(as_text(word, keys.texts[0]) for word in _list(fields, keys.texts[0]))
        if not words or any(not word or word.isspace() for word in words):
            raise BadRow("empty")
        if fields.get(keys.label) is None and not self.needed:
            return LabelledText((" ".join(words),), None, words, where)
        said = _list(fields, keys.label)
        tags = tuple(_single_label(tag, keys.label, names) for tag in said)
        if len(tags) != len(words):
            raise BadRow(f"not a tag for each word: {len(words)} words and {len(tags)} tags")
        return LabelledText((" ".join(words),), tags, words, where)

    def _label(self, value: object, key: str, names: Sequence[str]) -> Label:
        if not key or (not self.needed and _missing(value, self.task)):
            return None
        if value == NO_GOLD and key.lower() == "gold_label":
            raise PassedOver("no gold label")
        try:
            if self.task:
                return _glue_label(self.task, value, key, names)
            cell = self.file.ending in ("tsv", "csv")
            return _own_label(value, key, self.columns, names, cell=cell)
        except BadRow as bad:
            if not self.needed and str(bad).startswith("no label"):
                return None
            raise

    def _keys(self, where: str, names: list[str]) -> TextKeys:
        """Which columns hold what."""
        table = self.file.ending in ("tsv", "csv")
        hint, option = (" in its first line", NUMBERED) if table else ("", OPTION)
        columns, task = self.columns, self.task
        index = find_column(names, INDEX) if task else ""
        if not task and _has_tags(names, columns):
            words = require_column(where, names, columns.text, WORDS, f"text{hint}", option)
            return TextKeys((words,), self._label_key(where, names, TAGS, hint), index, tagged=True)
        texts = _text_keys(where, names, columns, task, (hint, option))
        rest = [name for name in names if name not in texts]
        usual = task.label if task else LABELS
        return TextKeys(texts, self._label_key(where, rest, usual, hint), index)

    def _label_key(self, where: str, names: list[str], usual: Sequence[str], hint: str) -> str:
        if self.needed or self.columns.label:
            return require_column(where, names, self.columns.label, usual, f"label{hint}", OPTION)
        return find_column(names, usual)


def open_table(
    file: NamedFile, task: GlueTask | None, columns: TextColumns = USUAL_COLUMNS
) -> Table:
    """The columns and rows of a file; those of Parquet and Arrow are read by column, later.

    Columns that are given by their numbers have no names: the first line is a row.
    """
    path, name = file.path, str(file.path)
    match file.ending:
        case "csv":
            table = comma_table(lines(path), name)
            numbers = _numbers(columns, table.names)
            return comma_table(lines(path), name, numbers) if numbers else table
        case "jsonl":
            return json_table(lambda: lines(path), name)
        case "json":
            return json_table(lambda: json_rows(path), name)
        case "parquet" | "arrow":
            return Table(COLUMNAR[file.ending][0](path).names, (), whole_row)
        case "fasttext" | "classes" | "sts":
            return FORMS[file.ending](path)
        case "tar":
            return Table(tar_keys(path), tar_records(path), whole_record)
        case _:
            headless = bool(task and task.name == "CoLA" and is_cola(first_cells(file)))
            names = COLA if headless else _numbers(columns, first_cells(file))
            return tab_table(lines(path), name, names)


def _numbers(columns: TextColumns, cells: Sequence[str]) -> list[str]:
    """What columns are called that the user gives by their numbers; none if one has such a name."""
    given = columns.text
    return by_number(len(cells)) if given.isdecimal() and given not in cells else []


def first_cells(file: NamedFile) -> list[str]:
    """The cells of the first line of a TSV file, if it is one."""
    try:
        return text_of(next(lines(file.path))).split("\t")
    except BadRow:
        return []


def is_cola(cells: Sequence[str]) -> bool:
    """Whether a line is a row of CoLA's: source, label, star, sentence."""
    return len(cells) == len(COLA) and cells[1] in ("0", "1") and set(cells[2]) <= set("*?#%")


def number_in(label: str) -> float | None:
    """The number that a label is, if it is one."""
    number = float(label) if _NUMBER.fullmatch(label) else math.nan
    return number if math.isfinite(number) else None


def _text_keys(
    where: str,
    names: list[str],
    columns: TextColumns,
    task: GlueTask | None,
    hints: tuple[str, str],
) -> tuple[str, ...]:
    hint, option = hints
    if columns.text:
        asked = {f"text{hint}": columns.text, f"second{hint}": columns.second}
        return tuple(
            require_column(where, names, given, (), what, OPTION)
            for what, given in asked.items()
            if given
        )
    for usual in task.texts if task else PAIRS:
        found = tuple(find_column(names, [name]) for name in usual)
        if all(found):
            return found
    usual = [name for names in task.texts for name in names] if task else TEXTS
    return (require_column(where, names, "", usual, f"text{hint}", option),)


def _has_tags(names: list[str], columns: TextColumns) -> bool:
    """Whether rows are words and their tags: as it was said, or by the names of columns."""
    if columns.task != "auto":
        return columns.kind == "tags"
    words = columns.text in WORDS if columns.text else bool(find_column(names, WORDS))
    tags = find_column(names, [columns.label] if columns.label else TAGS)
    return words and bool(tags or not find_column(names, TEXTS))


def _glue_label(task: GlueTask, value: object, key: str, names: Sequence[str]) -> Label:
    said = _single_label(value, key, names)
    label = task.label_of(said) if task.labels else number_in(said)
    if label is None:
        rule = f"none of {task.name}'s {', '.join(task.labels)}" if task.labels else "not a number"
        raise BadRow(f"no such label: {said[:40]!r} is {rule}; pass --task classes if it is yours")
    return label


def _own_label(
    value: object, key: str, columns: TextColumns, names: Sequence[str], *, cell: bool
) -> Label:
    if columns.kind in ("classes", "number"):
        label = _single_label(value, key, names)
        number = number_in(label) if columns.kind == "number" else None
        if columns.kind == "number" and number is None:
            raise BadRow(f"not a number: {key!r} is {label[:40]!r}")
        return label if number is None else number
    if cell and isinstance(value, str):
        found = labels_in(value, key, separator=columns.separator)
        several = len(found) > 1 or (value.startswith("[") and value.endswith("]"))
    else:
        found, several = labels_of(value, key, names=names), isinstance(value, list)
    return found if several or columns.kind == "labels" else next(iter(found))


def _single_label(value: object, key: str, names: Sequence[str]) -> str:
    found = labels_of(value, key, names=names)
    if len(found) != 1:
        raise BadRow(f"not one label: {key!r} has {len(found)}")
    return found[0]


def _missing(value: object, task: GlueTask | None) -> bool:
    """Whether a value is no label; of GLUE's tests some copies have -1, for it is kept secret."""
    said = value.strip() if isinstance(value, str) else value
    return said in (None, "") or (task is not None and said in ("-1", -1))


def _list(fields: dict[str, Any], key: str) -> list[Any]:
    value = fields.get(key)
    if not isinstance(value, list):
        raise BadRow(f"wrong type: {key!r} is {kind_of(value)}, not a list")
    return cast(list[Any], value)
