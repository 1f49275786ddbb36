"""Records: a JSON object per line, or a row of a Parquet table, with texts under known keys.

A pair is {"source": …, "target": …}, {"en": …, "de": …} with the languages the user named, or the
Hugging Face shape {"translation": {"en": …, "de": …}}.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import Any, cast

from saccade.data.readers.report import BadRow
from saccade.data.readers.text.lines import MAX_LINE, filled, filled_pair, text_of
from saccade.errors import DataError

Names = Sequence[tuple[str, str]]

HUGGING_FACE = "translation"
_NAMED = 5  # keys shown in a reason


def json_line(raw: bytes | None) -> object:
    """The value on a line of a JSON Lines file."""
    return json_value(filled(text_of(raw)))


def json_value(text: str) -> object:
    """What a JSON text holds; all that can be wrong with one is a bad row."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise BadRow("not JSON: nested too deeply") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise BadRow("not JSON: a number has too many digits") from None


def record_pair(value: object, names: Names, where: str) -> tuple[str, str]:
    """The pair in a record, under the first of `names` that it has."""
    fields = fields_of(value)
    nested = fields.get(HUGGING_FACE)
    if isinstance(nested, dict):
        fields = cast(dict[str, Any], nested)
        _require_named_languages(where, fields, names)
    source, target = _keys(fields, names)
    return filled_pair(text_under(fields, source), text_under(fields, target))


def record_text(value: object, field: str, option: str = "") -> str:
    """The text in a record; `option` names another key."""
    fields = fields_of(value)
    if option and fields and field not in fields:
        raise BadRow(f"missing key: no {field!r}; it has {shown_keys(fields)}; give {option}")
    return filled(text_under(fields, field))


def fields_of(value: object) -> dict[str, Any]:
    """A record as keys and values."""
    if not isinstance(value, dict):
        raise BadRow(f"wrong type: the row is {kind_of(value)}, not an object with keys")
    return cast(dict[str, Any], value)


def _require_named_languages(where: str, fields: dict[str, Any], names: Names) -> None:
    """Stop for good where the rows name languages and the user has not: no row can be read."""
    if len(names) == 1 and len(fields) > 1 and not set(names[0]) & set(fields):
        languages = sorted(fields)
        raise DataError(
            f"{where} has {shown_keys(languages)}: say which is the source: {order_hint(languages)}"
        )


def _keys(fields: dict[str, Any], names: Names) -> tuple[str, str]:
    for source, target in names:
        if source in fields and target in fields:
            return source, target
    source, target = names[0]
    lacking = " and ".join(repr(name) for name in (source, target) if name not in fields)
    hint = "" if len(names) > 1 else "; name yours with --source and --target"
    raise BadRow(f"missing key: no {lacking}; it has {shown_keys(fields)}{hint}")


def first_key(fields: dict[str, Any], usual: Sequence[str]) -> str:
    """The first of the usual keys that a record has."""
    for key in usual:
        if key in fields:
            return key
    raise BadRow(f"missing key: no {usual[0]!r}; it has {shown_keys(fields)}")


def text_under(fields: dict[str, Any], key: str) -> str:
    """The text under a key."""
    if key not in fields:
        raise BadRow(f"missing key: no {key!r}; it has {shown_keys(fields)}")
    return as_text(fields[key], key)


def as_text(text: object, key: str) -> str:
    """A value that must be a text which can be printed."""
    if not isinstance(text, str):
        raise BadRow(f"wrong type: {key!r} is {kind_of(text)}, not a string")
    if "\0" in text:
        raise BadRow(f"NUL character: in {key!r}")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise BadRow(f"lone surrogate: in {key!r}, half of a character") from None
    if size > MAX_LINE:
        raise BadRow(f"too long: over {MAX_LINE:,} bytes")
    return text


def kind_of(value: object) -> str:
    """What a value is, in the words of JSON."""
    if value is None:
        return "null"
    names: dict[type, str] = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        bytes: "bytes",
    }
    return names.get(type(value), "a number" if isinstance(value, int | float) else "no text")


def shown_keys(keys: Iterable[str]) -> str:
    """Keys come from the file, so they may be long, many, or not printable."""
    every = list(keys)
    shown = [repr(key[:40]) for key in every[:_NAMED]]
    return ", ".join(shown + ["…"] * (len(every) > _NAMED)) or "no keys"


def order_hint(languages: Collection[str]) -> str:
    """The two settings to give, with a likely choice filled in."""
    likely = sorted(languages, key=lambda name: (name != "en", name))
    source, target = (n[:40] if n.isprintable() else repr(n[:40]) for n in likely[:2])
    return f"--source {source} --target {target}"
