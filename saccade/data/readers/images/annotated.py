"""Read a split of images with boxes, whatever form they are in; no image is decoded.

    COCO        annotations/instances_train2017.json, train/_annotations.coco.json, train.json
    Pascal VOC  Annotations/*.xml, JPEGImages/, ImageSets/Main/train.txt; or train/*.xml
    YOLO        data.yaml, images/train and labels/train, or train/images and train/labels
    JSON Lines  train.jsonl, train/metadata.jsonl

In a folder, .tar or .zip. `row.extras["objects"]` are the boxes of an image, shares of its sides
once it is upright; `["size"]` is its height and width, `["id"]` what COCO calls it. Every box is
checked: an image with a bad one is not used, and each bad one is told of.
"""

from dataclasses import replace
from pathlib import Path

from saccade.data.readers.images.boxes.find import FORMS, WHOLE, find_boxes
from saccade.data.readers.images.coco import Id
from saccade.data.readers.images.rows import ImagesRead, collect_images
from saccade.data.readers.label_values import in_natural_order
from saccade.data.readers.report import listed
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.errors import DataError
from saccade.printable import printable

__all__ = ["box_class_ids", "box_class_names", "box_splits", "read_boxes"]


def read_boxes(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All images of a split with their boxes, in order.

    Over `skip_bad` bad boxes and images stop the reading with a list of them; fewer are left out
    and counted.
    """
    found = find_boxes(data)
    stems = one_stem(data, split, found)
    source = found.get(stems[0] if stems else WHOLE)
    if source is None:
        raise DataError(
            f"{printable(data)} has no {split!r} split with boxes; boxes are read from {FORMS}; "
            f"it has {listed(list(found))}"
        )
    read = collect_images(source.rows(split), [source.name], skip_bad=skip_bad)
    return replace(read, files=[source.name, *source.used])


def box_splits(data: Path) -> list[str]:
    """Which of train, valid and test there are boxes for."""
    found = find_boxes(data)
    return [split for split in SPLITS if fitting_stems(split, found)] or ["train"]


def box_class_names(*reads: ImagesRead) -> list[str]:
    """All classes of some splits: those that the data declare in their order, then any other."""
    declared = [label for read in reads for label in box_class_ids(read)]
    boxed = (box.label for read in reads for row in read.rows for box in row.extras["objects"])
    return list(dict.fromkeys([*declared, *in_natural_order(boxed)]))


def box_class_ids(read: ImagesRead) -> dict[str, Id]:
    """The numbers that COCO's categories or YOLO's names give to classes; {} of other forms."""
    return dict(read.rows[0].extras["classes"])
