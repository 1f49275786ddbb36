"""Captions in JSON Lines: {"file_name": "a.jpg", "captions": ["A dog .", …], …} on each line.

The file may stand under `image`, `filename`, `file` or `path` as well, and one caption as a string
under `caption` or `text`. Whatever other keys there are (boxes, groups, …) come along as they are,
but for keys ending in _file_name (a mask, say), which are found as the image is.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from saccade.data.readers.images.rows import ImageFinder, ImageRow, captions_of
from saccade.data.readers.images.tar_rows import CAPTIONS
from saccade.data.readers.report import BadRow, Problem, parse_rows
from saccade.data.readers.text.records import fields_of, json_line, shown_keys, text_under

FILE = "file_name"
FILES = (FILE, "image", "filename", "file", "path")


def metadata_rows(
    rows: Iterable[bytes | None], name: str, images: ImageFinder
) -> Iterator[ImageRow | Problem]:
    """The row on each line."""
    return parse_rows(rows, name, lambda raw, n: _row(fields_of(json_line(raw)), name, n, images))


def _row(fields: dict[str, Any], name: str, number: int, images: ImageFinder) -> ImageRow:
    named = next((key for key in FILES if key in fields), FILE)
    file = images.below(text_under(fields, named))
    key = next((key for key in CAPTIONS if key in fields), None)
    if key is None:
        raise BadRow(
            f"missing key: no 'captions', 'caption' or 'text'; it has {shown_keys(fields)}"
        )
    captions = captions_of(fields[key], key)
    image = images.once(images.find(file), number)
    extras = {
        other: images.find(text_under(fields, other)) if other.endswith(f"_{FILE}") else value
        for other, value in fields.items()
        if other not in (named, key)
    }
    return ImageRow(image, captions, extras, name, number)
