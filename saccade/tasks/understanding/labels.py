"""What is asked of texts: one of some classes, a number, any of some labels, or a tag per word."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from saccade.data.glue import known_task
from saccade.data.readers.labelled_texts.rows import LabelKind, LabelledText, LabelledTextsRead
from saccade.errors import DataError
from saccade.models.text.text_encoder import HeadKind
from saccade.printable import printable

ASSET = "labels.json"


@dataclass(frozen=True)
class Labels:
    """What a run tells of texts: of which kind, by which names; of a task of GLUE, which.

    Numbers are learnt with the mean and the deviation that those of the training data have taken
    out. With `pairs` it reads two texts at a time.
    """

    kind: LabelKind
    names: tuple[str, ...] = ()
    pairs: bool = False
    task: str = ""
    mean: float = 0.0
    deviation: float = 1.0

    @classmethod
    def of(cls, read: LabelledTextsRead) -> "Labels":
        """Those of the training data, by names that people understand."""
        pairs = any(len(row.texts) > 1 for row in read.rows)
        task = "" if read.task is None else read.task.name
        if read.kind != "number":
            names = read.task.meanings if read.task is not None else read.labels
            return cls(read.kind, tuple(names), pairs, task)
        found = [row.label for row in read.rows if isinstance(row.label, float)]
        numbers = torch.tensor(found, dtype=torch.float64)
        deviation = float(numbers.std(correction=0)) if found else 0.0
        mean = float(numbers.mean()) if found else 0.0
        return cls("number", (), pairs, task, mean, deviation or 1.0)

    @property
    def several(self) -> bool:
        """Whether a text may have several of them, or none."""
        return self.kind == "labels"

    @property
    def spelt(self) -> tuple[str, ...]:
        """The names as the data spell them."""
        task = known_task(self.task) if self.task else None
        return self.names if task is None else task.labels

    @property
    def width(self) -> int:
        """How many scores the model gives."""
        return 1 if self.kind == "number" else len(self.names)

    @property
    def head(self) -> HeadKind:
        """Who gives them: a whole text, or each of its tokens."""
        return "tokens" if self.kind == "tags" else "text"

    def as_number(self, score: float) -> float:
        """What a score of the model means: the mean and the deviation put back."""
        return score * self.deviation + self.mean

    def targets(self, rows: Sequence[LabelledText], split: str) -> list[Any]:
        """What is to be learnt or told: numbers of classes, standardised numbers, a flag for each
        label, or a list of tags' numbers for each text.
        """
        return [self._target(row, split) for row in rows]

    def _target(self, row: LabelledText, split: str) -> Any:
        label = row.label
        if self.kind == "number":
            if not isinstance(label, float):
                raise self._refusal(row, split, "is no number")
            return (label - self.mean) / self.deviation
        if self.kind == "classes":
            return self._number(label, row, split)
        every = label if isinstance(label, tuple) else (label,)
        numbers = [self._number(one, row, split) for one in every]
        if self.kind == "tags":
            return numbers
        return [number in numbers for number in range(len(self.names))]

    def _number(self, label: Any, row: LabelledText, split: str) -> int:
        if label in self.names:
            return self.names.index(label)
        task = known_task(self.task) if self.task else None
        known = task.label_of(label) if task is not None and isinstance(label, str) else None
        if task is None or known is None:
            raise self._refusal(row, split, f"is not among: {', '.join(self.names[:8])}")
        return task.labels.index(known)

    def _refusal(self, row: LabelledText, split: str, why: str) -> DataError:
        return DataError(
            f"{row.where or split}: {printable(row.label)!r} {why}, which are what was learnt; "
            f"mend the {split} data, or train on such texts too"
        )

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), ensure_ascii=False, indent=1).encode()


def read_labels_asset(raw: bytes) -> Labels:
    """The inverse of `Labels.to_json`; a ValueError if it cannot be."""
    match json.loads(raw):
        case {
            "kind": "classes" | "number" | "labels" | "tags" as kind,
            "names": [*names],
            "pairs": bool(pairs),
            "task": str(task),
            "mean": int() | float() as mean,
            "deviation": int() | float() as deviation,
        } if all(isinstance(name, str) for name in names) and _fine(mean, deviation):
            return Labels(kind, tuple(names), pairs, task, float(mean), float(deviation))
        case _:
            raise ValueError("kind, names, pairs, task, mean and deviation are not all there")


def _fine(mean: float, deviation: float) -> bool:
    return math.isfinite(mean) and math.isfinite(deviation) and deviation > 0


def as_tensor(kind: LabelKind, targets: list[Any]) -> Tensor:
    """As a tensor: class numbers, standardised numbers, or flags; tags end to end."""
    if kind == "number":
        return torch.tensor(targets, dtype=torch.float32)
    if kind == "labels":
        return torch.tensor(targets, dtype=torch.bool)
    if kind == "tags":
        return torch.tensor([one for tags in targets for one in tags], dtype=torch.long)
    return torch.tensor(targets, dtype=torch.long)
