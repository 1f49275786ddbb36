"""Captions in a table, one to a row: CSV or TSV, or Flickr's own form, 1.jpg#0, tab, caption.

Rows of one image are put together. The first line of CSV and TSV names the columns; a .txt file may
be either form. Flickr's lists beside the file (Flickr_8k.trainImages.txt …) say which split an
image is in; without them all is train.
"""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath
from typing import Any

from saccade.data.readers.columns import Table, comma_table, find_column, tab_table
from saccade.data.readers.images.classes.tables import IMAGES
from saccade.data.readers.images.rows import ImageFinder, ImageRow, captions_of, image_under
from saccade.data.readers.images.source import TableSource, table_file, table_source
from saccade.data.readers.images.tar_rows import CAPTIONS
from saccade.data.readers.report import Problem, parse_rows
from saccade.data.readers.stems import SPLITS
from saccade.data.readers.text.lines import text_of
from saccade.data.readers.text.records import shown_keys
from saccade.errors import DataError

FORMS = ("csv", "tsv", "txt", "token")
_WORDS = (*CAPTIONS, "comment", "sentence", "description")
_TOLD = re.compile(r"(^|[._])(captions?|token)\.txt$|\.(csv|tsv|token)$", re.IGNORECASE)
_NUMBERED = re.compile(r"#\d+$")
_LIST = re.compile(r"(train|dev|val|test)images\.txt$", re.IGNORECASE)


def is_caption_table(name: str) -> bool:
    """Whether a file that lies in a folder may hold captions, by its name."""
    return bool(_TOLD.search(name.removesuffix(".gz")))


def caption_table_rows(
    source: TableSource, split: str, finder: ImageFinder
) -> Iterator[ImageRow | Problem]:
    """Each image of a split with all its captions, after the rows that are bad."""
    lists = _lists(source)
    if not lists:
        source.require_train(split)
    elif split not in lists:
        raise DataError(
            f"{source.file.name} has no {split!r}: the lists beside it are of {', '.join(lists)}"
        )
    table, name = _table(source), source.file.name
    image, caption = _keys(table, name)
    found: dict[str, ImageRow] = {}

    def parse(raw: Any, number: int) -> None:
        fields = table.record(raw)
        if fields is None:
            return
        key = _NUMBERED.sub("", fields[image].strip())
        if lists and PurePosixPath(key).name not in lists[split]:
            return
        captions = captions_of(fields[caption].strip(), caption)
        if key in found:
            captions, number = found[key].captions + captions, found[key].line
        member = found[key].image if key in found else image_under({image: key}, image, finder)
        found[key] = ImageRow(member, captions, {}, name, number)

    yield from parse_rows(table.rows, name, parse, first=table.first)
    yield from found.values()


def caption_table_splits(source: TableSource) -> list[str]:
    """The splits that lists beside the table name; all is train without them."""
    return list(_lists(source)) or ["train"]


def _table(source: TableSource) -> Table:
    lines, name = source.lines(), source.file.name
    first = next(lines, None)
    again = chain([first], lines)
    head, _, said = (first or b"").partition(b"\t")
    if said and _NUMBERED.search(head.decode(errors="replace")):
        return tab_table(again, name, ("image", "caption"))
    tabs = source.entry.form == "tsv" or bool(said)
    return tab_table(again, name) if tabs else comma_table(again, name)


def _keys(table: Table, name: str) -> tuple[str, str]:
    """The columns of the image and of the caption."""
    for what, usual in (("image", IMAGES), ("caption", _WORDS)):
        if not find_column(table.names, usual):
            raise DataError(
                f"{name} has no column for the {what}: its first line has "
                f"{shown_keys(table.names)}; name the columns there, as image and caption"
            )
    return find_column(table.names, IMAGES), find_column(table.names, _WORDS)


def _lists(source: TableSource) -> dict[str, set[str]]:
    """The names of the images of each split, where files beside the table list them."""
    near = str(PurePosixPath(source.entry.name).parent).strip(".")
    found: dict[str, set[str]] = {}
    for name in source.tree.files(near):
        if split := _LIST.search(name):
            usual = next(one for one, names in SPLITS.items() if split[1].lower() in names)
            entry = table_file(name, near, f"{near}/{name}".strip("/"))
            lines = table_source(source.tree, entry, whole=False).lines()
            found[usual] = {text_of(line).strip() for line in lines}
    return {split: found[split] for split in SPLITS if split in found}
