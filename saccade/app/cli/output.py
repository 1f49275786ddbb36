"""What commands print: results on standard output, progress and notes on standard error.

The one door out: text of others is made printable here, whatever the terminal or its encoding.
"""

import io
import json
import math
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from textwrap import indent
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from saccade.app.cli.pace import Pace
from saccade.errors import WriteError
from saccade.printable import printable

# What no line of text contains. Marks of direction and the like are text where no terminal obeys.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_SPECIAL = re.compile(r"[^\n -~]")  # all but ASCII that is seen
_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
_UNWRAPPED = 10_000  # columns
_SHOW_CURSOR = "\x1b[?25h"


class StandardStream(io.BufferedWriter):
    """Standard output, or standard error, which stops no work when it cannot be written.

    A full disk under results is an error like any other; nothing is written after it. Errors are
    met above the buffer: below it the exception of a signal could come when bytes are out and the
    buffer does not know it yet, and they would be written twice.
    """

    def __init__(self, number: int, *, results: bool) -> None:
        super().__init__(io.FileIO(number, "w", closefd=False))
        self._results, self._lost = results, False

    def write(self, content: Any, /) -> int:
        self._unless_lost(partial(super().write, content))
        return memoryview(content).nbytes

    def flush(self) -> None:
        self._unless_lost(super().flush)

    def _unless_lost(self, work: Callable[[], object]) -> None:
        if self._lost:
            return
        try:
            work()
        except OSError as error:
            if not self._results:
                return
            if isinstance(error, BrokenPipeError):
                raise
            self._lost = True
            raise WriteError(
                f"cannot write to standard output: {error.strerror}; make room there, or send it "
                "somewhere else"
            ) from error


def prepare_streams() -> None:
    """Let no encoding stop us: what it cannot write is spelt out. Nor a log that is full."""
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _rewrapped(sys.stdout, results=True)
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _rewrapped(sys.stderr, results=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _rewrapped(stream: io.TextIOWrapper, *, results: bool) -> io.TextIOWrapper:
    raw = StandardStream(stream.fileno(), results=results)
    at_once = stream.line_buffering or stream.write_through  # by a terminal, or PYTHONUNBUFFERED
    return io.TextIOWrapper(raw, stream.encoding, line_buffering=at_once)


def say(text: str) -> None:
    """A line for the person in front of the screen."""
    print(printable(text, lines=True), file=sys.stderr, flush=True)


def fail(message: str) -> None:
    """The line that an error is; a bar that was broken off has left the cursor hidden."""
    if sys.stderr.isatty():
        print(end=_SHOW_CURSOR, file=sys.stderr)
    say(f"saccade: {message}")


def tell(*fields: str) -> None:
    """A result: its fields with tabs between. In a file or a pipe it is the very text."""
    print("\t".join(_field(field) for field in fields), flush=True)


def _field(text: str) -> str:
    if sys.stdout.isatty():
        return "\t".join(printable(part, lines=True) for part in text.split("\t"))
    return _CONTROLS.sub(lambda found: printable(found[0]), text)


def tell_drawing(text: str) -> None:
    """A result drawn for a terminal: colours stay, nothing else that it would obey."""
    parts = _COLOUR.split(text)  # text, colour, text, …
    parts[::2] = [printable(part, lines=True) for part in parts[::2]]
    print("".join(parts), flush=True)


def show_help(text: str) -> None:
    """Words of our own."""
    print(text)


def show_table(rows: Iterable[Sequence[str]], *, head: Sequence[str] = ()) -> None:
    """Columns; under a `head` all but the first hold numbers. Where nobody looks nothing wraps."""
    cells = [[Text(printable(cell)) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, show_header=bool(head))
    for place, name in enumerate(head or [""] * max(map(len, cells), default=0)):
        table.add_column(name, justify="right" if head and place else "left", overflow="fold")
    for row in cells:
        table.add_row(*row)
    width = None if sys.stdout.isatty() else _UNWRAPPED
    Console(highlight=False, width=width).print(table)


def print_json(values: Any) -> None:
    """For programs."""
    print(_json(values))


@contextmanager
def json_list(*, wanted: bool = True) -> Generator[Callable[[Any], None], None, None]:
    """A JSON list, told value by value; nothing if it is not `wanted`."""
    count = 0

    def add(value: Any) -> None:
        nonlocal count
        print("[" if count == 0 else ",")
        print(indent(_json(value), "  "), end="", flush=True)
        count += 1

    yield add
    if wanted:
        print("\n]" if count else "[]")


def _json(values: Any) -> str:
    """As people read it, but for what a terminal would obey or its encoding lacks."""
    text = json.dumps(_finite(values), ensure_ascii=False, indent=2, allow_nan=False)
    return _SPECIAL.sub(lambda found: _json_mark(found[0]), text)


def _finite(values: Any) -> Any:
    """The same with null for numbers that JSON does not have."""
    if isinstance(values, dict):
        return {key: _finite(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_finite(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


def _json_mark(mark: str) -> str:
    try:
        mark.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(mark)[1:-1]
    return mark if printable(mark) == mark else json.dumps(mark)[1:-1]


@contextmanager
def counting(
    what: str, *, shown: bool = True
) -> Generator[Callable[[int, int | None], None], None, None]:
    """Progress of work: a bar on a terminal, else a line now and then. None: who knows how much."""
    if not shown:
        yield lambda done, total: None
        return
    pace, console = Pace(), Console(stderr=True)
    if console.is_terminal:
        columns = BarColumn(), TextColumn("{task.fields[now]}")
        with Progress(*columns, console=console, redirect_stdout=False) as bar:
            task = bar.add_task(what, total=None, now=what)
            yield lambda done, total: bar.update(
                task, completed=done, total=total, now=pace.told(what, done, total)
            )
        return
    last = time.monotonic()

    def line(done: int, total: int | None) -> None:
        nonlocal last
        now = pace.told(what, done, total)
        if time.monotonic() - last > 5:
            last = time.monotonic()
            say(now)

    yield line


@contextmanager
def busy(what: str) -> Generator[None, None, None]:
    """Work whose amount is not known: a sign of life with the time on a terminal, else one line."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = SpinnerColumn(), TextColumn(what), TimeElapsedColumn()
        with Progress(*columns, console=console, transient=True) as bar:
            bar.add_task(what, total=None)
            yield
        return
    patience = threading.Timer(2.0, say, [f"{what} …"])
    patience.start()
    try:
        yield
    finally:
        patience.cancel()


@contextmanager
def warnings_said() -> Generator[None, None, None]:
    """What the block warns of, in a line each, without the place in the code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for one in dict.fromkeys(str(warning.message) for warning in caught):
        say(f"saccade: {one}")


def print_scores(found: dict[str, Any]) -> None:
    """Scores as a table; scores by band or site indented under their name."""
    show_table(_score_rows(found))


def _score_rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{label}: {key}", _shown(part)) for key, part in value.items())
        else:
            for part in value if isinstance(value, list) else [value]:
                yield label, _shown(part)


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
