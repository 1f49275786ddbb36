"""A thread that does one thing after another for the event loop."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any


class Worker:
    """Owned by one run: it loads the run's model, then decodes with it.

    The thread is a daemon, for nothing can end a decoding that hangs but the end of the process.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.busy = False
        Thread(target=self._work, name=f"saccade {name}", daemon=True).start()

    async def call(self, function: Callable[..., None], *arguments: Any) -> Exception | None:
        """Run a function in the thread; gives back the exception that it raised, if any."""
        loop = asyncio.get_running_loop()
        over: asyncio.Future[Exception | None] = loop.create_future()

        def end(error: Exception | None) -> None:
            if not over.done():
                over.set_result(error)

        def work() -> None:
            error: Exception | None = None
            try:
                function(*arguments)
            except Exception as raised:
                error = raised
            self.busy = False
            with suppress(RuntimeError):  # the loop has ended: the server was stopped meanwhile
                loop.call_soon_threadsafe(end, error)

        self.busy = True
        self._calls.put(work)
        return await over

    def _work(self) -> None:
        while True:
            self._calls.get()()
