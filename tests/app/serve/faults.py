"""Faults put into a run of a server: slow steps, errors, and steps that never come."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.app.serve.serving import LocalServer


class Faults:
    """What the run does wrong, and what it was asked to do."""

    def __init__(self) -> None:
        self.step_seconds = 0.0
        self.batches: list[list[str]] = []
        self.release = threading.Event()
        self.gate = threading.Event()  # no step ends while it is closed
        self.gate.set()

    def begin(self, texts: list[str]) -> None:
        self.batches.append(texts)
        if any("BOOM" in text for text in texts):
            raise RuntimeError("a secret of the inside")
        if any("HANG" in text for text in texts):
            self.release.wait(30)

    def slowly(self, on_step: Any) -> Any:
        def tell(step: Any) -> Any:
            self.gate.wait(30)
            time.sleep(self.step_seconds)
            return on_step(step)

        return tell

    @property
    def texts(self) -> list[str]:
        return [text for batch in self.batches for text in batch]


@contextmanager
def faulty(server: LocalServer, run: str) -> Iterator[Faults]:
    """A run that does as the faults say, for a while."""
    tool: Any = server.runs[run].tool
    faults = Faults()
    name = "translate" if hasattr(tool, "translate") else "write"
    plain = getattr(tool, name)

    def instead(texts: Any, how: Any, *, on_step: Any, **more: Any) -> Any:
        faults.begin(texts if isinstance(texts, list) else [texts])
        return plain(texts, how, on_step=faults.slowly(on_step), **more)

    setattr(tool, name, instead)
    try:
        yield faults
    finally:
        faults.release.set()
        faults.gate.set()
        delattr(tool, name)
