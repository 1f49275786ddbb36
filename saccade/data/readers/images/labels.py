from dataclasses import dataclass
from pathlib import Path

from saccade.data.readers.images.read import read_classes
from saccade.data.readers.images.rows import ImagesRead


@dataclass(frozen=True, kw_only=True)
class LabelColumns:
    image: str = ""
    label: str = ""


def read_labelled(
    data: Path, split: str, *, columns: LabelColumns = LabelColumns(), skip_bad: int = 0
) -> ImagesRead:
    read = read_classes(data, split, skip_bad=skip_bad)
    for row in read.rows:
        row.extras["labels"] = (row.extras["label"],)
    return read


def label_splits(data: Path, columns: LabelColumns) -> list[str]:
    return ["train", "test"]


def class_names(read: ImagesRead) -> list[str]:
    return read.labels
