"""The life of the server: bind, answer, load, serve, and stop without dropping anyone."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import Protocol, runtime_checkable

import uvicorn

from saccade.app.cli.output import tell
from saccade.app.serve.app import Service, make_app
from saccade.app.serve.http.access import token_for
from saccade.app.serve.http.guard import Application
from saccade.app.serve.http.logs import log_plainly
from saccade.app.serve.http.protocol import protocol_class
from saccade.app.serve.jobs import Decoder
from saccade.app.serve.listening import At, address, bind, room_for
from saccade.app.serve.requests import READER, read_jobs
from saccade.app.serve.runs import ServedRun, find_runs
from saccade.app.serve.settings import ServeSettings
from saccade.app.serve.worker import Worker
from saccade.errors import ConfigError, SaccadeError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FAREWELL = 1.0  # seconds for connections to close once there is nothing left to answer
LAST_S = 5.0  # seconds beyond the grace after which the process ends, whatever holds it
QUEUE = 1024  # connections that the kernel holds until they are accepted

log = logging.getLogger("saccade.serve")


def serve(
    paths: tuple[str, ...],
    settings: ServeSettings,
    at: At,
    *,
    device: str = "auto",
    verbose: bool = False,
    browser: bool = False,
) -> None:
    """Serve until told to stop. Mistakes that can be seen at once are raised at once."""
    runs = find_runs(paths)
    listener = bind(at.host, at.port)
    lines = log_plainly(verbose=verbose)
    token = token_for(listener.getsockname()[0], at.token)
    server = SteadyServer(Service(runs, settings, at.host, token), device=device, browser=browser)
    server.run(sockets=[listener])
    lines.drain()
    if any(run.worker.busy for run in runs.values()):
        _leave_now(0)  # a decoding that hangs would hold the process
    if server.failure is not None and not any(run.model for run in runs.values()):
        raise server.failure


def _has_screen() -> bool:
    """Without one, a browser of text would take over the terminal."""
    return sys.platform != "linux" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))


@runtime_checkable
class Elsewhere(Protocol):
    """Where models are loaded and requests answered, if not in this process."""

    def application(self) -> Application: ...

    async def start(self) -> None: ...


class SteadyServer(uvicorn.Server):
    """uvicorn's server, but it loads models while it answers and ends only when all is answered."""

    def __init__(
        self,
        service: Service,
        *,
        device: str = "auto",
        browser: bool = False,
        replicas: Elsewhere | None = None,
    ) -> None:
        room = room_for(service.settings.connections)
        if room.connections < service.settings.connections:
            log.warning("%d connections at most, for so few files may be open", room.connections)
        service.settings = replace(service.settings, connections=room.connections)
        app = make_app(service) if replicas is None else replicas.application()
        super().__init__(_config(app, service, at_a_time=room.at_a_time))
        self._replicas = replicas
        self._browser = browser
        self.failure: SaccadeError | None = None
        self._service, self._device = service, device
        self._stop_at: float | None = None
        self._last: threading.Timer | None = None
        self._tasks: list[asyncio.Task[None]] = []

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            super().run(sockets)
        finally:
            if self._last is not None:
                self._last.cancel()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.batcher.open(READER, read_jobs, Worker("reader"), fills=False)
        if self._service.takes_images:
            self._service.decoder.begin()
        await super().startup(sockets)
        assert sockets
        sockets[0].listen(QUEUE)  # uvicorn has one number for this and for what it accepts at once
        self._tasks.append(asyncio.create_task(self._service.batcher.watch()))
        self._tasks.append(asyncio.create_task(self._load(self._link(sockets[0]))))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        self._service.decoder.end()

    def _link(self, listener: socket.socket) -> str:
        """What opens the page."""
        if not self._service.token:
            return address(listener)
        log.warning(
            "others can reach this server: whoever has its token can use it, and who listens on "
            "the way can read it, for nothing is encrypted"
        )
        return f"{address(listener)}/?token={self._service.token}"

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second: whether to end. The doors stay open until all is answered."""
        if await super().on_tick(counter):
            return True
        if self._stop_at is None:
            return False
        if time.monotonic() > self._stop_at:
            self._service.batcher.abandon()
            await asyncio.sleep(0.1)  # for the answers to go out
            return True
        return not self._service.batcher.busy and not self._service.metrics.working

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A first signal stops, a second ends at once; a stop is not an error."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread hears of signals
            return
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._stop_at is not None:
            _leave_now(128 + sig)
        self._service.batcher.stopping = True
        grace = self._service.settings.grace_s
        self._stop_at = time.monotonic() + grace
        # Whatever holds the event loop, such as a write that nobody reads, does not hold this.
        self._last = threading.Timer(grace + LAST_S, _leave_now, [128 + sig])
        self._last.daemon = True
        self._last.start()

    async def _load(self, url: str) -> None:
        served = await self._loaded()
        if served:
            tell(f"serving {', '.join(served)} at {url}")
            if self._browser and _has_screen():
                await asyncio.to_thread(webbrowser.open, url)
        else:
            self.should_exit = True

    async def _loaded(self) -> list[str]:
        """The names of the runs that can be asked for."""
        if self._replicas is not None:
            try:
                await self._replicas.start()
            except Exception as error:
                log.error("no replica could be started", exc_info=error)
                self.failure = ConfigError("no replica could be started; the lines above say why")
                return []
            return list(self._service.runs)
        for run in self._service.runs.values():
            await self._load_one(run)
        return [run.name for run in self._service.runs.values() if run.model is not None]

    async def _load_one(self, run: ServedRun) -> None:
        begun = time.monotonic()
        error = await run.worker.call(run.load, self._device)
        if error is None:
            decode = Decoder(run, self._service.settings, self._service.metrics)
            self._service.batcher.open(run.name, decode, run.worker)
            log.warning("loaded %s in %.1f s", run.name, time.monotonic() - begun)
            return
        run.failed = str(error) if isinstance(error, SaccadeError) else "see the server's log"
        if isinstance(error, SaccadeError) and len(self._service.runs) == 1:
            self.failure = error  # which is then said as the end of the command
            return
        log.error("%s could not be loaded: %s", run.name, run.failed, exc_info=_unless_plain(error))
        names = " and ".join(self._service.runs)
        self.failure = ConfigError(f"{names} could not be loaded; the lines above say why")


def _config(app: Application, service: Service, *, at_a_time: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol_class(service.settings, service.metrics),
        backlog=at_a_time,
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(FAREWELL),
        timeout_keep_alive=max(1, round(service.settings.header_s)),
    )


def _unless_plain(error: Exception) -> Exception | None:
    """Mistakes of a person's need no traceback."""
    return None if isinstance(error, SaccadeError) else error


def _leave_now(code: int) -> None:
    """Without waiting for anyone: not for a decoding, nor for whoever reads our output."""
    os._exit(code)
