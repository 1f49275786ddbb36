"""What a command is given: texts on the command line, in a file, or on standard input.

An argument that looks like a path must be a file: a mistyped name is not a sentence. Lines stay
aligned: a blank line is None here, and so is a bad one that was to be skipped.
"""

import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from saccade.app.cli.output import say, warnings_said
from saccade.app.look.settings import LookSettings
from saccade.data.readers.report import BadRow, Problem, counted
from saccade.data.readers.text.lines import BOM, MAX_LINE, filled, text_of
from saccade.data.readers.text.read import text_rows
from saccade.errors import ConfigError, DataError, WriteError

STANDARD_INPUT = "-"
LOOKS = (".html", ".svg", ".png", ".json")
FIRST_WINDOW = 64  # lines that are answered together: soon at first, then more at a time
WINDOW = 2048
WINDOW_CHARACTERS = 1 << 22  # of long lines fewer
_READ = 1 << 20  # bytes of standard input that are taken at once, if so many are ready
_FILE_LIKE = re.compile(r"\S+\.[A-Za-z][A-Za-z0-9]{1,6}")
Line = str | None
Check = Callable[[str], object]
Piece = TypeVar("Piece")


def unchecked(text: str) -> None:
    """Any text will do."""


class BadLines:
    """Lines that cannot be used: so many are skipped, one more stops."""

    def __init__(self, allowed: int) -> None:
        if allowed < 0:
            raise ConfigError(f"skip_bad={allowed} is below 0; give the number of lines to allow")
        self.allowed, self.count = allowed, 0
        self.first: Problem | None = None

    def take(self, row: str | Problem, number: int = 0, check: Check = unchecked) -> Line:
        """The text of a row; None for a blank one, and for a bad one, which is counted."""
        try:
            if isinstance(row, str):
                check(row)
                return row
        except DataError as error:
            row = Problem("text", number, str(error))
        if row.reason != "empty":
            self.count += 1
            self.first = self.first or row
        return None

    def stop(self, what: str = "") -> None:
        """Refuse to go on with too many."""
        if self.count > self.allowed:
            raise DataError(
                f"{self.first} ({counted(self.count, 'bad line')}{what}); mend it, or pass "
                f"--skip-bad {self.count} to answer with a blank line"
            )

    def tell(self) -> None:
        if self.count:
            say(f"{counted(self.count, 'bad line')} skipped")


class GivenTexts:
    """Texts of the command line."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    @property
    def total(self) -> int | None:
        return len(self.texts)

    def windows(self, bad: BadLines, check: Check) -> Iterator[list[Line]]:
        return _checked(iter(self.texts), bad, check)


class LinesOfFile:
    """Lines of a file. A first pass counts them and refuses bad ones; a second gives them."""

    def __init__(self, path: Path, bad: BadLines) -> None:
        self.path, self.total = path, 0
        for self.total, row in enumerate(text_rows(path), start=1):
            bad.take(row)

    def windows(self, bad: BadLines, check: Check) -> Iterator[list[Line]]:
        texts = (row if isinstance(row, str) else None for row in text_rows(self.path))
        return _checked(texts, bad, check)


def _checked(texts: Iterator[Line], bad: BadLines, check: Check) -> Iterator[list[Line]]:
    """What is known to be text in windows, as far as `check` lets it pass."""
    first = 1
    for window in in_windows(texts, size=lambda text: len(text or "")):
        numbered = enumerate(window, start=first)
        some = [
            None if text is None else bad.take(text, number, check) for number, text in numbered
        ]
        bad.stop(" so far" if len(window) >= FIRST_WINDOW else "")
        yield some
        first += len(window)


def in_windows(texts: Iterable[Piece], *, size: Callable[[Piece], int]) -> Iterator[list[Piece]]:
    """Ever more of them together, up to WINDOW, and to WINDOW_CHARACTERS of a `size` for each."""
    window, most, characters = list[Piece](), FIRST_WINDOW, 0
    for text in texts:
        window.append(text)
        characters += size(text)
        if len(window) >= most or characters >= WINDOW_CHARACTERS:
            yield window
            window, most, characters = [], min(2 * most, WINDOW), 0
    if window:
        yield window


@dataclass(frozen=True)
class InputLines:
    """Texts in the order in which they were given; `total` is None if that is not known yet.

    Of a file or of standard input never more than a window is held.
    """

    parts: list["GivenTexts | LinesOfFile | StandardInput"]
    bad: BadLines

    @property
    def total(self) -> int | None:
        known = [part.total for part in self.parts]
        return None if None in known else sum(total or 0 for total in known)

    def batches(self, check: Check = unchecked) -> Iterator[list[Line]]:
        """Many lines at once where many are there, each at once where each is waited for."""
        for part in self.parts:
            yield from part.windows(self.bad, check)
        self.bad.tell()


class StandardInput:
    """Lines as they come in."""

    total: int | None = None

    def windows(self, bad: BadLines, check: Check) -> Iterator[list[Line]]:
        if sys.stdin.isatty():
            say("a text a line; Ctrl-D ends")
        numbers = count(1)
        for ready in ready_lines():
            for window in in_windows(ready, size=len):
                batch: list[Line] = []
                for line in window:
                    number = next(numbers)
                    batch.append(bad.take(_row(line, number), number, check))
                    if bad.count > bad.allowed:
                        yield batch[:-1]
                        bad.stop(" so far")
                yield batch


def _row(line: bytes, number: int) -> str | Problem:
    try:
        line = line.removeprefix(BOM) if number == 1 else line
        return filled(text_of(line if len(line) <= MAX_LINE else None))
    except BadRow as bad:
        return Problem("standard input", number, str(bad))


def ready_lines(begun: bytes = b"") -> Iterator[list[bytes]]:
    """All lines that are there, as soon as there are any; `begun` was read of them before."""
    stream: Any = sys.stdin.buffer
    rest, piece = b"", begun or stream.read1(_READ)
    while piece:
        *whole, rest = (rest + piece).split(b"\n")
        rest = rest[: MAX_LINE + 1]  # too long already: no need to hold all of it
        if whole:
            yield [line.removesuffix(b"\r") for line in whole]
        piece = stream.read1(_READ)
    if rest:
        yield [rest.removesuffix(b"\r")]


def input_lines(given: tuple[str, ...], text: tuple[str, ...], *, skip_bad: int = 0) -> InputLines:
    """Every text; a file gives its lines, and - standard input's, as does nothing at all."""
    bad = BadLines(skip_bad)
    parts: list[GivenTexts | LinesOfFile | StandardInput] = []
    for one in given or (() if text else (STANDARD_INPUT,)):
        path = None if one == STANDARD_INPUT else file_named(one)
        if one == STANDARD_INPUT:
            parts.append(StandardInput())
        elif path is not None:
            parts.append(LinesOfFile(path, bad))
        else:
            _add(parts, one)
    for one in text:
        _add(parts, one)
    if sum(isinstance(part, StandardInput) for part in parts) > 1:
        raise ConfigError("standard input is there once; name - once")
    bad.stop()
    return InputLines(parts, bad)


def _add(parts: list[GivenTexts | LinesOfFile | StandardInput], text: str) -> None:
    last = parts[-1] if parts else None
    if not isinstance(last, GivenTexts):
        last = GivenTexts()
        parts.append(last)
    last.texts.append(text)


def one_text(given: tuple[str, ...], text: tuple[str, ...], *, skip_bad: int = 0) -> str:
    """A single text; the lines of a file, or of standard input, are one text."""
    if (texts := len(given) + len(text)) != 1:
        raise ConfigError(f"give one text to look at, not {texts}; put it in quotes")
    lines = input_lines(given, text, skip_bad=skip_bad)
    return "\n".join(line or "" for line in chain.from_iterable(lines.batches())).rstrip("\n")


def file_named(argument: str) -> Path | None:
    """The file that an argument names; None if it is text. What looks like a path must exist."""
    path, as_text = Path(argument), f"give it as text: --text {shlex.quote(argument[:80])}"
    try:
        mode = path.stat().st_mode if argument else None
    except (OSError, ValueError):  # too long for a name, or no name at all
        mode = None
    if mode is None:
        if not any(map(str.isspace, argument)) and (
            "/" in argument or _FILE_LIKE.fullmatch(argument)
        ):
            raise DataError(f"{argument[:200]} does not exist; check the path, or {as_text}")
        return None
    if stat.S_ISDIR(mode):
        raise DataError(f"{argument[:200]} is a folder; name a file in it, or {as_text}")
    return path


def with_zoom(settings: LookSettings, zoom: tuple[str, ...]) -> LookSettings:
    """Heads that are to be kept exactly, as the command line names them."""
    heads: list[tuple[str, int]] = []
    for one in zoom:
        site, _, head = one.rpartition(":")
        if not site or not head.isdecimal():
            raise ConfigError(f"--zoom {one}: name a site and a head, as decoder.3.self:7")
        heads.append((site, int(head)))
    return replace(settings, zoom=tuple(heads))


def is_page(out: Path | None) -> TypeGuard[Path]:
    """Whether a look goes to a page, which has all of it; else it is printed, and may be drawn."""
    return out is not None and out.suffix == ".html"


def check_out(out: Path | None, compare: str | None = None) -> None:
    """Refuse a file that a look cannot be written to, before there is one."""
    if compare is not None and not is_page(out):
        raise ConfigError("--compare is shown on a page; name it with --out x.html")
    if out is None:
        return
    if out.suffix not in LOOKS:
        raise ConfigError(
            f"{out.name}: a look is saved as {', '.join(LOOKS)}, not {out.suffix or 'that'}"
        )
    check_file(out)


def check_file(out: Path) -> None:
    """Refuse what cannot be written."""
    if out.is_dir() or not out.parent.is_dir():
        what = f"{out} is a folder" if out.is_dir() else f"there is no folder {out.parent}"
        raise WriteError(f"cannot write {out}: {what}; name a file in a folder that is there")
    if not os.access(out if out.exists() else out.parent, os.W_OK):
        raise WriteError(f"cannot write {out}: it may not be written to; name another file")


def save_look(save: Callable[..., Path], out: Path | None, **drawn: Any) -> None:
    """Save a look where a file is named for it, and tell that and what its fonts lack."""
    if out is not None:
        with warnings_said():
            written = save(out, **drawn)
        say_written(written)


def say_written(path: Path) -> None:
    """What was made, and how large it is."""
    size = path.stat().st_size
    say(f"wrote {path} ({size / 1e6:.2f} MB)" if size >= 1e5 else f"wrote {path} ({size:,} bytes)")
