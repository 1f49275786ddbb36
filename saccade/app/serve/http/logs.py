"""Log lines on standard error that never hold the server up.

Whoever started the server may not read what it says. Then a pipe fills, and a plain write waits
for ever; here a thread waits instead, and lines that find its queue full are lost.
"""

import logging
import queue
import sys
import threading
import time
from contextlib import suppress

from saccade.printable import printable

MOST_LINES = 1000
SELDOM_S = 10.0


class Seldom(logging.Filter):
    """What is said again within seconds is not written again."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message, now = record.getMessage().partition("\n")[0], record.created
        self._said = {said: at for said, at in self._said.items() if now - at < SELDOM_S}
        fresh = message not in self._said
        self._said.setdefault(message, now)
        return fresh


class SideHandler(logging.Handler):
    """Hands each line to a thread that writes it."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("saccade: %(message)s"))
        self._lines: queue.Queue[str] = queue.Queue(MOST_LINES)
        threading.Thread(target=self._write, name="saccade log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        with suppress(queue.Full):
            self._lines.put_nowait(self.format(record))

    def drain(self, seconds: float = 1.0) -> None:
        """Wait until all is written, but not for ever."""
        end = time.monotonic() + seconds
        while self._lines.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.01)

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            with suppress(OSError, ValueError):  # nobody is there to read, or it was closed
                print(printable(line, lines=True), file=sys.stderr, flush=True)
            self._lines.task_done()


def log_plainly(*, verbose: bool) -> SideHandler:
    """A line each: what went wrong always, every request when asked for.

    The event loop itself complains here too: else its complaints go to standard error directly, and
    where nobody reads that, the loop waits there for ever.
    """
    handler = SideHandler()
    loop = logging.getLogger("asyncio")
    loop.handlers, loop.filters, loop.propagate = [handler], [Seldom()], False
    log = logging.getLogger("saccade.serve")
    log.handlers, log.propagate = [handler], False
    log.setLevel(logging.INFO if verbose else logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # the guard tells it better
    return handler
