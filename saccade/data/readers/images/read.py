"""Read a split of captioned images."""

from dataclasses import replace
from pathlib import Path

from saccade.data.readers.images.coco import (
    by_split,
    coco_document,
    coco_rows,
    karpathy_rows,
    splits_of,
)
from saccade.data.readers.images.find import find_captions, stems_of
from saccade.data.readers.images.metadata import metadata_rows
from saccade.data.readers.images.rows import ImagesRead
from saccade.data.readers.report import collect
from saccade.data.readers.stems import SPLITS, fitting_stems


def read_images(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All captioned images of a split, in order; no image is decoded yet.

    `data` is a folder, a .tar or .zip of one, or one .jsonl or COCO .json file (all train, unless
    the images in it name their splits). Over `skip_bad` bad rows stop the reading with a list of
    them; fewer are left out and counted.
    """
    found = find_captions(data, split)
    places, name = found.places(), found.file.name
    if found.entry.form == "jsonl":
        found.require_train(split)
        rows = metadata_rows(found.lines(), name, places)
    else:
        document = coco_document(found.document(), name)
        if by_split(document):
            rows = karpathy_rows(document, name, split, places)
        else:
            found.require_train(split)
            rows = coco_rows(document, name, places)
    read = collect(rows, [name], ImagesRead, skip_bad=skip_bad)
    return replace(read, files=[name, *places.used])


def image_splits(data: Path) -> list[str]:
    """Which of train, valid and test there are captions for."""
    stems = stems_of(data)
    named = [split for split in SPLITS if fitting_stems(split, stems)]
    if named:
        return named
    whole = find_captions(data, "train")
    if whole.entry.form == "json":
        document = coco_document(whole.document(), whole.file.name)
        return splits_of(document) if by_split(document) else ["train"]
    return ["train"]
