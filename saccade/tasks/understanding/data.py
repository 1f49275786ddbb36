"""Texts and what is true of them: the user's, or lingua's."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from saccade.config import ModelConfig, check_fraction, check_positive
from saccade.data.lingua import LinguaSettings
from saccade.data.lingua.tasks import TAGS, TASKS
from saccade.data.lingua.tasks.acceptability import LABELS as ACCEPTABLE
from saccade.data.lingua.tasks.entailment import LABELS as ENTAILS
from saccade.data.lingua.tasks.paraphrase import LABELS as SAME
from saccade.data.readers.labelled_texts.read import (
    held_out_part,
    labelled_text_splits,
    read_labelled_texts,
)
from saccade.data.readers.labelled_texts.rows import LabelledText, TextColumns
from saccade.data.tokens.vocabulary import Level
from saccade.errors import ConfigError, DataError
from saccade.metrics.understanding import LOWER_IS_BETTER
from saccade.models.text.text_encoder import TextEncoderConfig
from saccade.printable import printable
from saccade.tasks.base import (
    Preparation,
    Task,
    TextSettings,
    check_split,
    refuse_without_data,
)
from saccade.tasks.understanding.labels import Labels

World = Literal["acceptable", "entails", "paraphrase", "tags"]
HELD_BACK = 1000  # items of lingua to a split that is not learnt from


WORLDS: dict[World, Labels] = {
    "acceptable": Labels("classes", ACCEPTABLE),
    "entails": Labels("classes", ENTAILS, pairs=True),
    "paraphrase": Labels("classes", SAME, pairs=True),
    "tags": Labels("tags", TAGS),
}


@dataclass(frozen=True, kw_only=True)
class UnderstandingSettings(TextSettings):
    """What to learn to tell of texts. Without `data`: of lingua's sentences, whose truth is known.

    Args:
        data: a folder of GLUE, or .tsv, .csv, .jsonl or .parquet with texts and labels, CoNLL for
            tags of words, a folder of such with train, valid and test, or folders of classes with
            a text in each .txt file.
        task: a task of GLUE (SST-2, MRPC …), or what labels are: classes, a number, labels (any
            number of classes), or tags of words; auto finds out.
        text: the column of the text, or of the first of two, where it has an unusual name.
        second: the column of the second text of a pair.
        label: the column of the label.
        label_separator: what parts several labels in a cell.
        level: tokens are byte pairs trained on the texts, words, or characters.
        vocabulary: how many tokens at most; a tokenizer that comes with --init decides for itself.
        lowercase: read everything in lower case.
        longest: texts of more tokens are cut, the longer of a pair first, and counted.
        held_out: share of each class for validation, where the data have no such split.
        labelled: how many labelled texts to learn from, as many of each class as there are; 0 is
            all. Fewer lie within more, and are the same for every seed.
        label_smoothing: share of the probability spread over all classes in the training loss.
        either_order: read the two texts of a pair in either order in training, where what is true
            of a pair is true of it turned round, as of two that mean the same.
        skip_bad: this many bad rows are skipped and counted; one more stops.
        world: of lingua: whether a sentence is acceptable, whether one entails or contradicts
            another, whether two mean the same, or the parts of speech of words.
        count: how many of lingua's items to train on.
    """

    budget_unit: ClassVar[str] = "labels"  # of texts, or of words
    fitted: ClassVar[frozenset[str]] = frozenset({"vocabulary", "labels", "head"})
    lower_is_better: ClassVar[frozenset[str]] = TextSettings.lower_is_better | LOWER_IS_BETTER

    task: str = TextColumns.task
    text: str = ""
    second: str = ""
    label: str = ""
    label_separator: str = TextColumns.separator
    level: Level = "bpe"
    vocabulary: int = 8000
    lowercase: bool = False
    longest: int = 128
    held_out: float = 0.05
    labelled: int = 0
    label_smoothing: float = 0.0
    either_order: bool = False
    skip_bad: int = 0
    world: World = "acceptable"
    count: int = 20_000
    lingua: LinguaSettings = field(default_factory=LinguaSettings)

    def __post_init__(self) -> None:
        check_positive(self, "vocabulary", "longest", "count")
        check_fraction(self, "held_out", "label_smoothing")
        refuse_without_data(self, "text", "second", "label")
        if self.labelled < 0:
            raise ConfigError(f"labelled={self.labelled} must be 0 (all of them) or more")
        if not self.data and self.task != TextColumns.task:
            raise ConfigError(
                f"task={printable(self.task)} is of data of your own; give --data too, or choose "
                f"--world {self.world}"
            )
        _ = self.columns  # which refuses tasks that it does not know

    @property
    def columns(self) -> TextColumns:
        """Where a file of rows has what."""
        return TextColumns(
            text=self.text,
            second=self.second,
            label=self.label,
            separator=self.label_separator,
            task=self.task,
        )

    @property
    def announcement(self) -> str:
        """What is about to happen, for it may take a while."""
        if self.data:
            return f"reading {printable(self.data)}"
        return f"making {self.count:,} items of lingua"

    @property
    def data_name(self) -> str:
        whole = super().data_name if self.data else f"lingua ({self.world})"
        return f"{self.labelled:,} labels of {whole}" if self.labelled else whole

    @property
    def labelled_items(self) -> int | None:
        if self.data:
            return self.labelled or None
        return min(self.labelled or self.count, self.count)

    def with_every_label(self) -> "UnderstandingSettings":
        return replace(self, labelled=0)

    def check(self, model: ModelConfig) -> None:
        if not isinstance(model, TextEncoderConfig):
            raise ConfigError(f"{type(model).__name__} tells nothing of texts; take a bert")

    def smallest(self, model: ModelConfig) -> ModelConfig:
        assert isinstance(model, TextEncoderConfig)
        return replace(model, vocabulary=1, labels=1, head="text")

    def fitted_sizes(self) -> dict[str, int]:
        sizes = {"vocabulary": self.vocabulary}
        return sizes if self.data else {**sizes, "labels": WORLDS[self.world].width}

    def prepare(self, how: Preparation) -> Task[Any]:
        from saccade.tasks.understanding.task import Understanding

        return Understanding(self, how)


@dataclass(frozen=True)
class TextSplit:
    """Texts of one split, what is told of them, and a line about them."""

    rows: Sequence[LabelledText]
    labels: Labels
    report: str

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, chosen: Sequence[int], report: str) -> "TextSplit":
        """Some of it."""
        return replace(self, rows=[self.rows[place] for place in chosen], report=report)


def every_text(rows: Sequence[LabelledText]) -> list[str]:
    """All texts, for a tokenizer to learn from."""
    return [text for row in rows for text in row.texts]


def read_split(
    settings: UnderstandingSettings,
    split: str | None,
    labels: Labels | None = None,
    *,
    labels_needed: bool | None = None,
) -> TextSplit:
    """A split of the user's texts, or of lingua; None is all of a single file.

    Other splits than that which is learnt from are told of by its `labels`, and by the figures of
    the task that asks the models of its own. `labels_needed` is as in `read_labelled_texts`.
    """
    if not settings.data:
        return _of_lingua(settings, split or "test")
    columns = settings.columns
    if labels is not None:  # what labels are is as it was when they were learnt
        columns = replace(columns, task=labels.task or labels.kind)
    data, among = Path(settings.data), labelled_text_splits(Path(settings.data), columns)
    own = split is None or split in among or split not in ("train", "valid")
    asked = among[0] if split is None else split if own else "train"
    read = read_labelled_texts(
        data, asked, columns, skip_bad=settings.skip_bad, labels_needed=labels_needed
    )
    found = Labels.of(read) if labels is None else labels
    if read.task is not None and read.task.asks:
        found = replace(found, task=read.task.name)
    if split in ("train", "valid") and "valid" not in among:
        read = held_out_part(read, split, settings.held_out)
    _check_pairs(read.rows, found, asked)
    return TextSplit(read.rows, found, read.summary())


def _of_lingua(settings: UnderstandingSettings, split: str) -> TextSplit:
    check_split(split, ("train", "valid", "test", "compositional"), "lingua")
    count = settings.count if split == "train" else HELD_BACK
    items = TASKS[settings.world](split, count, settings.lingua)
    rows = [
        LabelledText(one.texts, one.tags or one.label, one.words, f"{split} {place}")
        for place, one in enumerate(items)
    ]
    labels = WORLDS[settings.world]
    return TextSplit(rows, labels, f"{count:,} items of lingua ({settings.world}), split {split}")


def _check_pairs(rows: Sequence[LabelledText], labels: Labels, split: str) -> None:
    wanted = 2 if labels.pairs else 1
    for row in rows:
        if len(row.texts) != wanted:
            raise DataError(
                f"{row.where or split}: {len(row.texts)} texts, where {wanted} were learnt; mend "
                f"the {split} data, or name the columns with --text and --second"
            )


def class_keys(read: TextSplit) -> list[Hashable]:
    """What is to be balanced: the class of each text; one for all where it has none of its own."""
    one_class = read.labels.kind == "classes"
    return [row.label if one_class else None for row in read.rows]


def with_labels(read: TextSplit) -> TextSplit:
    """Without those of which nobody knows what is true."""
    kept = [place for place, row in enumerate(read.rows) if row.label is not None]
    if not kept:
        raise DataError(f"{read.report}: there is nothing to learn from where nothing is labelled")
    left = len(read) - len(kept)
    report = f"{read.report}; {left:,} without a label left out" if left else read.report
    return read.only(kept, report)


def few_of(read: TextSplit, count: int) -> TextSplit:
    """The first so many, each class in turn, in an order that is drawn once for all."""
    if not count or count >= len(read):
        return read
    drawn = torch.randperm(len(read), generator=torch.Generator().manual_seed(0)).tolist()
    keys, turn = class_keys(read), Counter[Hashable]()
    order: list[tuple[int, int]] = []  # the how-manieth of its class each is, and its place
    for place in drawn:
        order.append((turn[keys[place]], place))
        turn[keys[place]] += 1
    order.sort(key=lambda one: one[0])  # stable: within a turn, as drawn
    chosen = sorted(place for _, place in order[:count])
    return read.only(chosen, f"{count:,} labels of {read.report}")
