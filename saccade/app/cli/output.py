"""What commands print: results on standard output, progress and notes on standard error."""

import json
import sys
import threading
import time
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from saccade.printable import printable


def say(text: str) -> None:
    """A line for the person in front of the screen."""
    print(text, file=sys.stderr, flush=True)


def print_json(values: Any) -> None:
    """For programs."""
    print(json.dumps(values, ensure_ascii=False, indent=2))


@contextmanager
def counting(what: str) -> Generator[Callable[[int, int], None], None, None]:
    """Progress of work whose amount is known: a bar on a terminal, else a line now and then."""
    if Console(stderr=True).is_terminal:
        columns = TextColumn(what), BarColumn(), TextColumn("{task.completed}/{task.total}")
        with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    last = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last > 5:
            last = time.monotonic()
            say(f"{what} {done}/{total}")

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
    """Scores in two columns, each in one line; scores by band or site follow their name."""
    lines: list[tuple[str, str]] = []
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            lines += [(f"{label}: {key}", _shown(part)) for key, part in value.items()]
        elif isinstance(value, list):
            lines += [(label, str(part)) for part in value]
        else:
            lines.append((label, _shown(value)))
    width = max((cell_len(label) for label, _ in lines), default=0)
    for label, text in lines:
        print(f"{label}{' ' * (width - cell_len(label))}  {printable(text)}")


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """4:05, or 1:04:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
