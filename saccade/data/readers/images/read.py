"""Read a split of captioned images."""

from dataclasses import replace
from pathlib import Path

from saccade.data.readers.images.beside import (
    beside_splits,
    captions_beside,
    texts_beside,
)
from saccade.data.readers.images.caption_tables import (
    FORMS,
    caption_table_rows,
    caption_table_splits,
)
from saccade.data.readers.images.coco import (
    by_split,
    coco_document,
    coco_rows,
    karpathy_rows,
    splits_of,
)
from saccade.data.readers.images.columnar import columnar_captions, columnar_files
from saccade.data.readers.images.find import find_captions, says_which, stems_of, table_stems_of
from saccade.data.readers.images.metadata import metadata_rows
from saccade.data.readers.images.named import holds_images
from saccade.data.readers.images.rows import ImagesRead, collect_images
from saccade.data.readers.images.tar_rows import CAPTIONS, tar_captions
from saccade.data.readers.images.tree import ARCHIVES
from saccade.data.readers.many_files import shown_parts
from saccade.data.readers.report import listed
from saccade.data.readers.saved_datasets import saved_splits
from saccade.data.readers.stems import SPLITS, fitting_stems, one_stem
from saccade.data.readers.tar_shards import image_tars, tar_splits, tars_of_split
from saccade.data.readers.text.find import NamedFile
from saccade.errors import DataError
from saccade.printable import printable


def read_images(data: Path, split: str, *, skip_bad: int = 0) -> ImagesRead:
    """All captioned images of a split, in order; no image is decoded yet.

    `data` is a folder, a .tar or .zip of one, one .jsonl, .csv, .tsv or COCO .json file (all train,
    unless the images in it name their splits), tars of samples, or Parquet or Arrow with bytes. In
    a folder, captions may lie in a text beside each image.
    Over `skip_bad` bad rows stop the reading with a list of them; fewer are left out and counted.
    """
    if tars := image_tars(data, CAPTIONS):
        paths = tars_of_split(data, split, tars)
        rows, names = tar_captions(paths), shown_parts([str(path) for path in paths])
        return collect_images(rows, names, skip_bad=skip_bad)
    if _texts_alone(data):
        rows, name = captions_beside(data, split)
        return collect_images(rows, [name], skip_bad=skip_bad)
    if _columnar(data):
        files = _columnar_split(data, split)
        names = shown_parts([str(file.path) for file in files])
        return collect_images(columnar_captions(files), names, skip_bad=skip_bad)
    found = find_captions(data, split)
    places, name = found.places(), found.file.name
    if found.entry.form == "jsonl":
        found.require_train(split)
        rows = metadata_rows(found.lines(), name, places)
    elif found.entry.form in FORMS:
        rows = caption_table_rows(found, split, places)
    else:
        document = coco_document(found.document(), name)
        if by_split(document):
            rows = karpathy_rows(document, name, split, places)
        else:
            found.require_train(split)
            rows = coco_rows(document, name, places)
    read = collect_images(rows, [name], skip_bad=skip_bad)
    return replace(read, files=[name, *places.used])


def image_splits(data: Path) -> list[str]:
    """Which of train, valid and test there are captions for."""
    if tars := image_tars(data, CAPTIONS):
        return tar_splits(tars) or ["train"]
    if _texts_alone(data):
        return beside_splits(data)
    columns = [file.stem for file in columnar_files(data)] if _columnar(data) else []
    stems = columns or stems_of(data) or table_stems_of(data)
    named = [split for split in SPLITS if fitting_stems(split, stems)]
    if named or _columnar(data):
        return named or ["train"]
    whole = find_captions(data, "train")
    if whole.entry.form in FORMS:
        return caption_table_splits(whole)
    if whole.entry.form == "json":
        document = coco_document(whole.document(), whole.file.name)
        return splits_of(document) if by_split(document) else ["train"]
    return ["train"]


def _texts_alone(data: Path) -> bool:
    """Whether captions lie beside their images, and no file says more."""
    if not holds_images(data) or (data.is_dir() and saved_splits(data)):
        return False
    return not says_which(data) and not table_stems_of(data) and texts_beside(data)


def _columnar(data: Path) -> bool:
    """Whether columns are all that there is: a saved dataset, or no file of captions beside."""
    if data.suffix.lower() in ARCHIVES or not columnar_files(data):
        return False
    return not data.is_dir() or bool(saved_splits(data)) or not stems_of(data)


def _columnar_split(data: Path, split: str) -> list[NamedFile]:
    files = columnar_files(data)
    stems = one_stem(data, split, (file.stem for file in files))
    nameless = not any(fitting_stems(one, [file.stem for file in files]) for one in SPLITS)
    mine = files if nameless and split == "train" else [f for f in files if f.stem in stems]
    if not mine:
        held = listed([file.path.name for file in files])
        raise DataError(f"{printable(data)} has no {split!r} split of captions; it holds {held}")
    return mine
