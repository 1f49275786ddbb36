"""What commands print: results on standard output, progress and notes on standard error."""

import json
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table


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


def print_scores(found: dict[str, Any]) -> None:
    """Scores as a table; scores by band or site indented under their name."""
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in found.items():
        label = name.replace("_", " ")
        if isinstance(value, dict):
            for key, part in value.items():
                table.add_row(f"{label}: {key}", _shown(part))
        elif isinstance(value, list):
            for part in value:
                table.add_row(label, str(part))
        else:
            table.add_row(label, _shown(value))
    Console(highlight=False).print(table)


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """4:05, or 1:04:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
