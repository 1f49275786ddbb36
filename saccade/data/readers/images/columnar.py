"""Captions with the bytes of their images in Parquet, or in what Hugging Face `datasets` saved.

Needs pyarrow. Bytes stay where they are until an image is decoded.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from saccade.data.images.members import Member
from saccade.data.readers.arrow_streams import arrow_columns
from saccade.data.readers.columns import find_column
from saccade.data.readers.images.classes.arrow import arrow_records
from saccade.data.readers.images.classes.parquet import parquet_records
from saccade.data.readers.images.classes.tables import IMAGES
from saccade.data.readers.images.rows import ImageRow, captions_of
from saccade.data.readers.images.tar_rows import CAPTIONS
from saccade.data.readers.many_files import matching_files
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.find import NamedFile, is_folder, named_file, split_entries
from saccade.data.readers.text.parquet import parquet_columns, whole_row
from saccade.errors import DataError
from saccade.printable import printable

_FORMS = ("parquet", "arrow")
_USUAL = (*CAPTIONS, "sentences", "sentence", "raw")


def columnar_files(data: Path) -> list[NamedFile]:
    """Files that may hold captions with images, named after their splits."""
    parts = matching_files(data)
    if parts or not is_folder(data):
        entries = [named_file(path) for path in parts or [data]]
    else:
        entries = split_entries(data)
    return [e for e in entries if e.ending in _FORMS and e.path.suffix[1:] == e.ending]


def columnar_captions(files: list[NamedFile]) -> Iterator[ImageRow | Problem]:
    """Each image with its captions."""
    return chain.from_iterable(_captions(file) for file in files)


def _captions(file: NamedFile) -> Iterator[ImageRow | Problem]:
    path, name = file.path, str(file.path)
    held = parquet_columns(path) if file.ending == "parquet" else arrow_columns(path)
    image, said = (find_column(held.names, usual) for usual in (IMAGES, _USUAL))
    if not image or not said:
        lacking = "the image" if not image else "its captions (captions, caption or text)"
        raise DataError(
            f"{printable(path)} has no column for {lacking}; it has {', '.join(held.names[:10])}"
        )
    records: dict[str, Callable[..., Iterator[dict[str, Any] | None]]] = {
        "parquet": parquet_records,
        "arrow": arrow_records,
    }
    rows = records[file.ending](path, {image, said}, image)
    return parse_rows(rows, name, partial(_row, image=image, said=said, name=name))


def _row(raw: dict[str, Any] | None, number: int, *, image: str, said: str, name: str) -> ImageRow:
    fields = whole_row(raw)
    held = fields.get(image)
    if not isinstance(held, Member):
        raise BadRow(f"missing image: {image!r} does not hold the bytes of one")
    return ImageRow(held, captions_of(fields.get(said), said), {}, name, number)
