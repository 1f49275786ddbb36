"""Labels as files have them, made names of classes; and the order of names."""

import math
from collections.abc import Iterable, Sequence
from typing import cast

from saccade.data.readers.report import BadRow
from saccade.data.readers.stems import natural
from saccade.data.readers.text.records import as_text, json_value, kind_of


def labels_of(value: object, key: str, *, names: Sequence[str] = ()) -> tuple[str, ...]:
    """The classes under a key: one label, or a list of them, which may be empty.

    Where the file has `names`, a whole number is the place of one, and -1 is no label.
    """
    every: Sequence[object] = cast(list[object], value) if isinstance(value, list) else [value]
    return tuple(in_natural_order(_label(one, key, names) for one in every))


def labels_in(cell: str, key: str, *, separator: str) -> tuple[str, ...]:
    """The classes in a cell of text: a JSON list, or labels with `separator` between them."""
    if cell.startswith("[") and cell.endswith("]"):
        return labels_of(_listed(cell, key), key)
    parts = cell.split(separator) if separator else [cell]
    if len(parts) > 1 and not all(part.strip() for part in parts):
        raise BadRow(
            f"no label: {key!r} is {cell[:60]!r}, with nothing on one side of a {separator!r}; "
            "take it away"
        )
    return tuple(in_natural_order(_label(part, key, ()) for part in parts))


def in_natural_order(labels: Iterable[str]) -> list[str]:
    """Each label once; where names differ in a number, 9 comes before 10."""
    return sorted(set(labels), key=natural)


def _listed(cell: str, key: str) -> object:
    try:
        return json_value(cell)
    except BadRow:
        raise BadRow(
            f'not JSON: {key!r} is {cell[:60]!r}; write a list as ["cat", "dog"], or cat|dog'
        ) from None


def _label(value: object, key: str, names: Sequence[str]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():  # a column with gaps turns 3 into 3.0
        value = int(value)
    if isinstance(value, int) and names:
        if not -1 <= value < len(names):
            raise BadRow(f"no such class: {key!r} is {value}, and there are {len(names):,} names")
        value = names[value] if value >= 0 else None
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise BadRow(f"no label: {key!r} holds none")
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise BadRow(
            f"wrong type: {key!r} is {kind_of(value)}, not a string, a number or a list of them"
        )
    label = as_text(value, key).strip()
    if not label:
        raise BadRow(f"no label: {key!r} is empty")
    return label
