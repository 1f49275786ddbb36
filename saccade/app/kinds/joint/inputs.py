"""What commands are given for models of images and texts: `photo.jpg "a text"`, or lines of pairs.

A .jsonl file has an image and a text in each line, and may have its boxes; on standard input there
is a tab between an image and its text. Where one of several sentences is to be chosen they are one
text, with tabs between them.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

from saccade.app.kinds.image_files import (
    PATTERN,
    STANDARD_INPUT,
    check_images,
    given_images,
)
from saccade.errors import ConfigError, DataError
from saccade.printable import printable
from saccade.tasks.joint.pairs import one_text

TEXTS = ("question", "text", "phrase", "sentence", "caption")
LINES = (".jsonl", ".ndjson")


class AskedPair(NamedTuple):
    """A text about an image, which may not be there; boxes are those that its line gives."""

    name: str
    image: Any
    text: str
    boxes: Any = None


@dataclass(frozen=True)
class AskedPairs:
    """All that is asked; whether there are several images, and several texts, and whether it came
    line by line.
    """

    pairs: list[AskedPair]
    images: bool
    texts: bool
    lines: bool = False

    @property
    def alone(self) -> bool:
        return len(self.pairs) == 1 and not self.images


def asked_pairs(
    given: tuple[str, ...], texts: tuple[str, ...], *, together: bool = False
) -> AskedPairs:
    """Every image with every text, or the pairs of a file or of standard input, line by line.

    All texts `together` are what one is chosen from.
    """
    if not texts and len(given) == 1 and given[0] == STANDARD_INPUT:
        return _of_lines([_tabbed(*one) for one in _typed()], together=together)
    if not texts and len(given) == 1 and Path(given[0]).suffix in LINES:
        return _of_lines(_json_lines(Path(given[0]), together=together), together=together)
    images, asked = images_and_texts(given, texts)
    if together and len(asked) > 1:
        asked = (one_text(asked),)
    every = list(given_images(images))
    pairs = [AskedPair(name, image, text) for name, image in every for text in asked]
    many = len(every) > 1 or Path(images[0]).is_dir() or any(mark in images[0] for mark in PATTERN)
    return AskedPairs(pairs, many, len(asked) > 1)


def images_and_texts(
    given: tuple[str, ...], texts: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which of the arguments are images: all but the last, which is the text, unless --text is."""
    if texts:
        check_images(given)
        return given, texts
    if len(given) < 2:
        raise ConfigError(
            'name an image and write what to ask of it: photo.jpg "TEXT"; or give a .jsonl file '
            "with an image and a text a line, or - for such lines with a tab between"
        )
    if _is_path(given[-1]):
        raise ConfigError(
            f"{printable(given[-1][:60])} is a file, and the last argument is the text; write one "
            "in quotes, or with --text"
        )
    check_images(given[:-1])
    return given[:-1], given[-1:]


def _is_path(argument: str) -> bool:
    try:
        return argument != "" and Path(argument).exists()  # the path '' is the folder one is in
    except (OSError, ValueError):  # too long for a name
        return False


def _of_lines(pairs: list[AskedPair], *, together: bool) -> AskedPairs:
    if not pairs:
        raise DataError("there are no lines to read; give an image and a text in each")
    return AskedPairs(pairs, images=True, texts=not together, lines=True)


def _typed() -> list[tuple[int, str]]:
    text = sys.stdin.buffer.read().decode(errors="replace")
    return [(n, line) for n, line in enumerate(text.splitlines(), start=1) if line.strip()]


def _tabbed(number: int, line: str) -> AskedPair:
    image, tab, text = line.partition("\t")
    if not tab or not image.strip() or not text.strip():
        raise DataError(
            f"standard input, line {number}: {printable(line[:60])!r} is no image and text; put a "
            "tab between them"
        )
    return AskedPair(printable(image), Path(image), text)


def _json_lines(path: Path, *, together: bool) -> list[AskedPair]:
    """Images are named from the folder that the file is in."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise DataError(f"{printable(path)} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise DataError(f"{printable(path)} is no text in UTF-8; store it so") from None
    said = _sentences if together else _text
    return [
        _json_pair(line, path, number, said)
        for number, line in enumerate(lines, start=1)
        if line.strip()
    ]


def _json_pair(
    line: str, path: Path, number: int, said: Callable[[dict[str, Any], str], str]
) -> AskedPair:
    where = f"{printable(path)}:{number}"
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(f"{where} is no JSON: {error}; write one object a line") from None
    fields = cast(dict[str, Any], row) if isinstance(row, dict) else {}
    text = said(fields, where)
    image = path.parent / fields["image"]
    return AskedPair(printable(image), image, text, fields.get("boxes"))


def _text(fields: dict[str, Any], where: str) -> str:
    said = [fields[key] for key in TEXTS if isinstance(fields.get(key), str)]
    if not isinstance(fields.get("image"), str) or not said:
        raise DataError(
            f'{where}: a line has an "image" and a text under one of: {", ".join(TEXTS)}'
        )
    return said[0]


def _sentences(fields: dict[str, Any], where: str) -> str:
    said = fields.get("sentences")
    every = cast(list[object], said) if isinstance(said, list) else []
    if not isinstance(fields.get("image"), str) or not every:
        raise DataError(f'{where}: a line has an "image" and a list of "sentences"')
    try:
        return one_text(every)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
