"""Read a split of images with classes, whatever form they are in; no image is decoded.

    folders of classes    train/cat/1.jpg, or cat/1.jpg; in a folder, .tar or .zip
    tables                train.csv, .tsv, .jsonl, .parquet, with a path or the bytes, and a label
    COCO's instances      the categories of an image's annotations are its labels
    Hugging Face          what `datasets` saved to disk
    samples in tars       000.jpg and 000.cls, or a label in 000.json

`row.extras["labels"]` are the classes of an image: one, or several, or none at all.
"""

from dataclasses import replace
from itertools import chain
from pathlib import Path

from saccade.data.readers.images.classes.find import WHOLE, Sources, find_labels
from saccade.data.readers.images.classes.tables import USUAL, LabelColumns
from saccade.data.readers.images.rows import ImagesRead, collect_images
from saccade.data.readers.label_values import in_natural_order
from saccade.data.readers.many_files import shown_parts
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.errors import DataError
from saccade.printable import printable

__all__ = ["LabelColumns", "class_names", "label_splits", "read_labelled"]


def read_labelled(
    data: Path, split: str, *, columns: LabelColumns = USUAL, skip_bad: int = 0
) -> ImagesRead:
    """All images of a split with their labels, in order.

    Over `skip_bad` bad rows stop the reading with a list of them; fewer are left out and counted.
    """
    found = find_labels(data, columns)
    stems = one_stem(data, split, found)
    sources = found.get(stems[0] if stems else WHOLE, [])
    if not sources:
        raise DataError(_lacking(data, split, found))
    rows = chain.from_iterable(source.rows(split) for source in sources)
    names = [source.name for source in sources]
    read = collect_images(rows, shown_parts(names), skip_bad=skip_bad)
    used = dict.fromkeys(file for source in sources for file in source.used)
    return replace(read, files=[*shown_parts(names), *used])


def label_splits(data: Path, columns: LabelColumns = USUAL) -> list[str]:
    """Which of train, valid and test there are labels for."""
    found = find_labels(data, columns)
    named = [split for split in SPLITS if fitting_stems(split, found)]
    within = {split for source in found.get(WHOLE, []) for split in source.splits()}
    return named or [split for split in SPLITS if split in within]


def class_names(*reads: ImagesRead) -> list[str]:
    """All classes of some splits, in natural order: 9 before 10."""
    return in_natural_order(label for read in reads for label in read.labels)


def _lacking(data: Path, split: str, found: Sources) -> str:
    return (
        f"{printable(data)} has no {split!r} split with labels: neither folders of classes in "
        f"{split}/, nor {split}.csv, .tsv, .jsonl or .parquet; it has {listed(list(found))}"
    )
