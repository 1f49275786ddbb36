"""A replica of the server in a process of a Ray cluster: the whole application, without sockets.

It is the same program with the same limits as `saccade serve` alone. A request comes in as a scope
and a body, and its answer goes back as the messages of ASGI.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from saccade.app.serve.app import Service, make_app
from saccade.app.serve.http.guard import Message
from saccade.app.serve.jobs import Decoder
from saccade.app.serve.requests import READER, read_jobs
from saccade.app.serve.runs import find_runs
from saccade.app.serve.settings import ServeSettings
from saccade.app.serve.worker import Worker

IDLE = 3600.0  # seconds that a replica waits for nobody


class Replica:
    """Loads its runs when it is made, so that a replica that is there is ready."""

    def __init__(
        self, paths: tuple[str, ...], settings: ServeSettings, host: str, token: str, device: str
    ) -> None:
        self._service = Service(find_runs(paths), settings, host, token)
        for run in self._service.runs.values():
            run.load(device)
        self._app = make_app(self._service)
        self._watch: asyncio.Task[None] | None = None

    def _begin(self) -> None:
        """What needs the loop that requests are answered in."""
        service = self._service
        service.batcher.open(READER, read_jobs, Worker("reader"), fills=False)
        if service.takes_images:
            service.decoder.begin()
        for run in service.runs.values():
            decode = Decoder(run, service.settings, service.metrics)
            service.batcher.open(run.name, decode, run.worker)
        self._watch = asyncio.create_task(service.batcher.watch())

    async def answer(self, scope: dict[str, Any], body: bytes) -> AsyncGenerator[Message, None]:
        """The messages of an answer, as they are made; whoever stops listening has gone."""
        if self._watch is None:
            self._begin()
        messages: asyncio.Queue[Message | None] = asyncio.Queue()
        gone, asked = asyncio.Event(), False

        async def receive() -> Message:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": body, "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            await messages.put(dict(message))

        async def work() -> None:
            try:
                await self._app({**scope, "state": {}}, receive, send)
            finally:
                await messages.put(None)

        task = asyncio.create_task(work())
        try:
            while (message := await messages.get()) is not None:
                yield message
            await task
        finally:
            gone.set()
