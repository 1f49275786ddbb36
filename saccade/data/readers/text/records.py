"""Records: a JSON object per line, or a row of a Parquet table, with texts under known keys.

A pair is {"source": …, "target": …}, {"en": …, "de": …} with the languages the user named, or the
Hugging Face shape {"translation": {"en": …, "de": …}}.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Any, cast

from saccade.data.readers.report import BadRow
from saccade.data.readers.text.languages import language_of, languages_among, place_of
from saccade.data.readers.text.lines import (
    BOM,
    CHUNK,
    MAX_LINE,
    document,
    filled,
    filled_pair,
    lines,
    opened,
    text_of,
)
from saccade.errors import DataError
from saccade.printable import printable

Names = Sequence[tuple[str, str]]

HUGGING_FACE = "translation"
USUAL_PAIRS = (
    *(("source", "target"), ("src", "tgt"), ("src", "trg"), ("source_text", "target_text")),
    *(("input", "output"), ("input_text", "target_text"), ("question", "answer")),
    *(("prompt", "completion"), ("prompt", "response"), ("article", "highlights")),
    *(("document", "summary"), ("text", "summary"), ("text", "translation")),
)
_SAME = USUAL_PAIRS[:3]  # of a table beside parallel files, whose endings were asked for
_NAMED = 5  # keys shown in a reason


def json_line(raw: bytes | None) -> object:
    """The value on a line of a JSON Lines file."""
    return json_value(filled(text_of(raw)))


def json_rows(path: Path) -> Iterator[Any]:
    """Rows of a .json file: elements of a list, or lines of JSON Lines; see json_row."""
    with opened(path) as stream:
        listed = stream.read(CHUNK).removeprefix(BOM).lstrip().startswith(b"[")
    if not listed:
        yield from lines(path)
        return
    try:
        yield from ((element,) for element in json_value(document(path).decode()))
    except (BadRow, UnicodeDecodeError) as error:
        raise DataError(f"{printable(path)}: {printable(error)}; write it as JSON again") from None


def json_row(raw: Any) -> object:
    """The value in one of them."""
    return raw[0] if isinstance(raw, tuple) else json_line(raw)


def json_value(text: str) -> Any:
    """What a JSON text holds; all that can be wrong with one is a bad row."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise BadRow("not JSON: nested too deeply") from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise BadRow("not JSON: a number has too many digits") from None


def record_pair(value: object, asked: Names, where: str) -> tuple[str, str]:
    """The pair in a record, under the names that were asked for, or under usual ones."""
    fields = fields_of(value)
    nested = fields.get(HUGGING_FACE)
    if isinstance(nested, dict):
        fields = cast(dict[str, Any], nested)
    found = pair_names(list(fields), asked)
    if found is None:
        languages = list(fields) if isinstance(nested, dict) else languages_among(fields)
        refuse_unknown_order(where, sorted(languages), asked)
        raise BadRow(_lacking(fields, asked))
    return filled_pair(text_under(fields, found[0]), text_under(fields, found[1]))


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


def pair_names(names: Sequence[str], asked: Names) -> tuple[str, str] | None:
    """Those of a pair's two columns or keys, if they are there: as asked for, else usual ones."""
    for source, target in asked:
        places = place_of(source, names), place_of(target, names)
        if places[0] is not None and places[1] is not None:
            return names[places[0]], names[places[1]]
        if places != (None, None) or source.isdecimal():
            return None
    small = {name.strip().lower(): name for name in reversed(names)}
    known = _SAME if asked else USUAL_PAIRS
    usual = (pair for pair in known if pair[0] in small and pair[1] in small)
    return next(((small[source], small[target]) for source, target in usual), None)


def refuse_unknown_order(where: str, languages: Sequence[str], asked: Names) -> None:
    """Stop for good where languages are named and the user has not said which: none can be read."""
    if len(languages) > 1 and not asked:
        raise DataError(
            f"{where} has {shown_keys(languages)}: say which is the source: {order_hint(languages)}"
        )


def _lacking(fields: dict[str, Any], asked: Names) -> str:
    names = asked[0] if asked else USUAL_PAIRS[0]
    lacking = " and ".join(repr(name) for name in names if place_of(name, list(fields)) is None)
    hint = "" if asked else "; name yours with --source and --target"
    return f"missing key: no {lacking}; it has {shown_keys(fields)}{hint}"


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
    likely = sorted(languages, key=lambda name: (language_of(name) != "en", name))
    source, target = (quote(n[:80]) if n.isprintable() else repr(n[:40]) for n in likely[:2])
    return f"--source {source} --target {target}"
