"""Training as it goes: a live bar on a terminal, plain lines elsewhere."""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from saccade.app.cli.pace import Pace, duration
from saccade.printable import printable
from saccade.train.events import (
    DataProgress,
    Event,
    Note,
    Skipped,
    Update,
    Validated,
    ValidationProgress,
)
from saccade.train.recipe import Recipe
from saccade.train.run import Watch

LINE_EVERY = 10.0  # seconds between plain lines


@contextmanager
def training_shown(chosen: Recipe, *, quiet: bool = False) -> Generator[Watch, None, None]:
    """Show a training; of many processes the first one does."""
    if quiet or os.environ.get("RANK", "0") != "0":
        yield lambda event: None
        return
    with TrainingProgress(chosen.train.steps, chosen.task.budget_unit) as progress:
        yield progress


class TrainingProgress:
    """Shows events. As a context it owns the terminal's bar."""

    def __init__(self, steps: int, unit: str = "tokens") -> None:
        self._steps, self._unit = steps, unit
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None
        self._pace = Pace()
        if self._console.is_terminal:
            columns = (
                TextColumn("{task.percentage:>3.0f}%"),
                BarColumn(),
                TextColumn("{task.fields[now]}"),
            )
            self._bar = Progress(*columns, console=self._console, transient=True)
            self._task = self._bar.add_task("train", total=steps, now="starting")
        self._last_line = time.monotonic() - LINE_EVERY + 3  # the first line after three seconds

    def __enter__(self) -> "TrainingProgress":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, event: Event | Note | DataProgress | ValidationProgress) -> None:
        match event:
            case Note(text):
                self._print(text)
            case DataProgress(done, total):
                self._tell(self._pace.told("data", done, total), done, total)
            case ValidationProgress(done, total):
                self._tell(self._pace.told("validation", done, total), done, total)
            case Update():
                self._update(event)
            case Validated(step, figures, best):
                shown = "  ".join(f"{name} {value:.4g}" for name, value in figures.items())
                mark = "  (best so far)" if best else ""
                self._print(f"step {step:>6,}  validation: {shown}{mark}")
            case Skipped(step, positions):
                self._print(f"step {step:>6,}  skipped: not finite (micro-batches {positions})")

    def _update(self, event: Update) -> None:
        self._steps = event.steps or self._steps
        now = f"step {event.step:>6,}/{self._steps:,}  loss {event.loss:.3f}"
        if event.tokens_per_second:  # not known in the first two seconds
            left = duration(event.seconds_left)
            now += f"  {event.tokens_per_second:,.0f} {self._unit}/s  {left} left"
        self._tell(now, event.step, self._steps)

    def _tell(self, now: str, done: int, total: int) -> None:
        """In the bar at once, as a plain line now and then."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, now=now)
        elif time.monotonic() - self._last_line >= LINE_EVERY:
            self._last_line = time.monotonic()
            self._print(now)

    def _print(self, text: str) -> None:
        self._console.print(printable(text, lines=True), markup=False, soft_wrap=True)
