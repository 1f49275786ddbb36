"""What a command is given: texts on the command line, in a file, or on standard input."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from saccade.app.cli.output import say
from saccade.app.look.settings import LookSettings
from saccade.data.readers import read_texts
from saccade.errors import ConfigError, DataError


def texts_of(given: tuple[str, ...]) -> Iterator[str]:
    """Every text; a file gives its lines, and - standard input's."""
    for text in given:
        if text == "-":
            yield from _standard_input()
        elif _is_file(text):
            yield from read_texts(Path(text), "train").texts
        else:
            yield text


def one_text(given: tuple[str, ...]) -> str:
    """A single text; a file is read whole: its lines are one text."""
    if len(given) != 1:
        raise ConfigError(f"give one text to look at, not {len(given)}; put it in quotes")
    (text,) = given
    return "\n".join(read_texts(Path(text), "train").texts) if _is_file(text) else text


def _is_file(text: str) -> bool:
    return len(text) < 256 and Path(text).is_file()


def _standard_input() -> Iterator[str]:
    for number, line in enumerate(sys.stdin.buffer, start=1):
        try:
            text = line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise DataError(f"standard input:{number}: not UTF-8 ({error.reason})") from error
        if not text.strip():
            raise DataError(f"standard input:{number}: empty line")
        yield text


def with_zoom(settings: LookSettings, zoom: tuple[str, ...]) -> LookSettings:
    """Heads that are to be kept exactly, as the command line names them."""
    heads: list[tuple[str, int]] = []
    for one in zoom:
        site, _, head = one.rpartition(":")
        if not site or not head.isdecimal():
            raise ConfigError(f"--zoom {one}: name a site and a head, as decoder.3.self:7")
        heads.append((site, int(head)))
    return replace(settings, zoom=tuple(heads))


def say_written(path: Path) -> None:
    """What was made, and how large it is."""
    say(f"wrote {path} ({path.stat().st_size / 1e6:.2f} MB)")
