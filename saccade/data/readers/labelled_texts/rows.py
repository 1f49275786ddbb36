"""What is read of texts with labels, and which columns it is read from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

from saccade.data.glue import GLUE, GlueTask, known_task
from saccade.data.readers.label_values import in_natural_order
from saccade.data.readers.report import RowsRead, count_by_kind, counted
from saccade.errors import ConfigError

LabelKind = Literal["classes", "number", "labels", "tags"]
_ONE = {"classes": "class", "labels": "label", "tags": "tag"}
Label = str | float | tuple[str, ...] | None


class LabelledText(NamedTuple):
    """One text or two, and what is to be known of them; None where the file does not say.

    The label of tags is a tag for each of the `words`. `where` is file:line, for messages;
    `row_index` numbers the row for GLUE's leaderboard, where the file does.
    """

    texts: tuple[str, ...]
    label: Label
    words: tuple[str, ...] = ()
    where: str = ""
    row_index: str = ""


@dataclass(frozen=True, kw_only=True)
class TextColumns:
    """Which columns hold what, where they do not have the usual names.

    Args:
        text: the column of the text, or of the first of two; of CoNLL, its name or number.
        second: the column of the second text; none where `text` is given and this is not.
        label: the column of the label; of CoNLL, its name or number.
        separator: what stands between several labels in a cell of CSV or TSV.
        task: a task of GLUE, or what labels are: classes, number, labels (any number of classes)
            or tags (of words); "auto" finds out.
    """

    text: str = ""
    second: str = ""
    label: str = ""
    separator: str = "|"
    task: str = "auto"

    def __post_init__(self) -> None:
        if self.task != "auto" and not self.kind and not known_task(self.task):
            kinds = ", ".join(get_args(LabelKind))
            raise ConfigError(
                f"task={self.task!r} is neither auto, nor one of {kinds}, nor a task of GLUE: "
                f"{', '.join(GLUE)}"
            )
        if self.second and not self.text:
            raise ConfigError(f"second={self.second!r} without the first text; name it as well")

    @property
    def kind(self) -> LabelKind | None:
        """What labels are, where it was said."""
        return next((kind for kind in get_args(LabelKind) if kind == self.task), None)


USUAL_COLUMNS = TextColumns()


@dataclass(frozen=True)
class LabelledTextsRead(RowsRead[LabelledText]):
    """Texts with labels; `passed_over` counts rows that are left out by rule, by kind."""

    task: GlueTask | None = None
    kind: LabelKind = "classes"
    passed_over: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def labels(self) -> list[str]:
        """The names of classes, labels or tags: in GLUE's order, or in natural order."""
        if self.task:
            return list(self.task.labels)
        return in_natural_order(self._names())

    @property
    def size(self) -> str:
        whole = counted(len(self.rows), self._noun())
        if all(row.label is None for row in self.rows):
            return f"{whole} without labels"
        if self.kind == "number":
            numbers = [row.label for row in self.rows if isinstance(row.label, float)]
            return f"{whole} with numbers from {min(numbers):g} to {max(numbers):g}"
        if self.kind == "tags":
            whole += f" with {counted(sum(len(row.words) for row in self.rows), 'word')}"
        count = len(set(self._names()))
        return f"{whole} of {count:,} {self.kind if count != 1 else _ONE[self.kind]}"

    def summary(self) -> str:
        """One line: how much came from where, what was left out and what was kept twice."""
        told = f"{self.task.name}: " if self.task else ""
        told += super().summary()
        if self.passed_over:
            rows = counted(sum(self.passed_over.values()), "row")
            told += f"; {rows} passed over ({count_by_kind(self.passed_over)})"
        return told

    def _noun(self) -> str:
        if self.kind == "tags":
            return "sentence"
        return "pair" if len(self.rows[0].texts) > 1 else "text"

    def _names(self) -> Iterator[str]:
        for row in self.rows:
            if isinstance(row.label, str):
                yield row.label
            elif isinstance(row.label, tuple):
                yield from row.label
