"""Captions in JSON Lines: {"file_name": "a.jpg", "captions": ["A dog .", …], …} on each line.

One caption may stand as a string, under `caption` or `text` as well. Whatever other keys there are
(boxes, groups, …) come along as they are, but for keys ending in _file_name (a mask, say), which
are found as the image is.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from saccade.data.readers.images.rows import ImageRow, Places, captions_of
from saccade.data.readers.report import Problem
from saccade.data.readers.text.lines import BadRow
from saccade.data.readers.text.records import Record, fields_of, shown_keys, text_under

CAPTIONS = ("captions", "caption", "text")
FILE = "file_name"


def metadata_rows(
    records: Iterable[Record], name: str, places: Places
) -> Iterator[ImageRow | Problem]:
    """The row in each record."""
    for record in records:
        if isinstance(record, Problem):
            yield record
            continue
        number, value = record
        try:
            yield _row(fields_of(value), name, number, places)
        except BadRow as bad:
            yield Problem(name, number, str(bad))


def _row(fields: dict[str, Any], name: str, number: int, places: Places) -> ImageRow:
    file = text_under(fields, FILE)
    key = next((key for key in CAPTIONS if key in fields), None)
    if key is None:
        raise BadRow(
            f"missing key: no 'captions', 'caption' or 'text'; it has {shown_keys(fields)}"
        )
    captions = captions_of(fields[key], key)
    image = places.once(places.find(file), number)
    extras = {
        other: places.find(text_under(fields, other)) if other.endswith(f"_{FILE}") else value
        for other, value in fields.items()
        if other not in (FILE, key)
    }
    return ImageRow(image, captions, extras, name, number)
