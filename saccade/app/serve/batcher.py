"""Waiting lines: requests that can be decoded together are, and no line grows without end.

Each run has a line and a thread that decodes. All lines together hold at most `queue` requests;
one more is refused at once, and so is what could not be answered before its deadline. Where the
lines are full, the client with most requests makes room for one with fewer. What is taken together
has equal keys, so that it could as well have been decoded one by one. Everything here happens in
the event loop, but for `decode` itself and the few methods of `Job` that it calls.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import Any

from saccade.app.serve.http.errors import RequestError, internal, invalid
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.schedule import Schedule
from saccade.app.serve.settings import ServeSettings
from saccade.app.serve.worker import Worker
from saccade.errors import SaccadeError

log = logging.getLogger("saccade.serve")

TICK_S = 0.25

Decode = Callable[[Sequence["Job"], Callable[[], None]], None]


class Job:
    """One request on its way. Jobs with equal keys may be decoded together; None stays alone.

    `units` say how much work it is, compared with others of its sort.
    """

    def __init__(
        self,
        work: Any,
        *,
        key: Hashable = None,
        size: int = 1,
        units: float = 1.0,
        name: str = "",
        client: str = "",
    ) -> None:
        self.work, self.key, self.size, self.units = work, key, size, units
        self.name, self.client, self.ends = name, client, float("inf")
        self.gone = False  # read by the decoding thread after every step
        self.draft: dict[str, Any] | None = None  # of a stream: only the newest is of use
        self.news = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.answer: asyncio.Future[Any] = self._loop.create_future()

    @property
    def sort(self) -> str:
        return type(self.work).__name__

    def finish(self, answer: Any) -> None:
        """Called by the decoding thread with what was asked for."""
        self._later(self._finish, answer)

    def tell(self, draft: dict[str, Any]) -> None:
        """Called by the decoding thread with what there is so far."""
        self._later(self._tell, draft)

    def fail(self, error: RequestError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # seen: nobody may be there to hear of it

    def _finish(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def _tell(self, draft: dict[str, Any]) -> None:
        self.draft = draft
        self.news.set()

    def _later(self, function: Callable[[Any], None], value: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended: the server was stopped meanwhile
            self._loop.call_soon_threadsafe(function, value)


class Line:
    """Those who wait for one run, those whose batch is decoded now, and the thread."""

    def __init__(self, name: str, decode: Decode, worker: Worker, *, fills: bool = True) -> None:
        self.name, self.decode, self.worker = name, decode, worker
        self.fills = fills  # its batches are waited for to fill, and counted
        self.waiting: list[Job] = []
        self.schedule = Schedule()
        self.running: Sequence[Job] = ()
        self.filled = asyncio.Event()
        self.hung = False
        self._last_step = 0.0

    def beat(self) -> None:
        """Called by the decoding thread after every step: it is alive."""
        self._last_step = time.monotonic()

    def silence(self) -> float:
        """Seconds since the last step, while there should be steps."""
        return time.monotonic() - self._last_step if self.running else 0.0

    def take(self, most: int) -> list[Job]:
        """The next job, and those behind it that can be decoded with it, at most `most` texts."""
        batch = next(iter(self.schedule.batches(self.waiting, most)), [])
        self.waiting = [job for job in self.waiting if job not in batch]
        return batch


class Batcher:
    """All lines of a server."""

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self.settings, self.metrics = settings, metrics
        self.stopping = False
        self._lines: dict[str, Line] = {}
        self._tasks: list[asyncio.Task[None]] = []
        metrics.watch_queue(lambda: self.depth)

    @property
    def depth(self) -> int:
        """How many wait."""
        return sum(len(line.waiting) for line in self._lines.values())

    @property
    def busy(self) -> bool:
        return any(line.waiting or line.running for line in self._lines.values())

    @property
    def hung(self) -> list[str]:
        """Runs that make no steps although they should."""
        return [line.name for line in self._lines.values() if line.hung]

    def open(self, name: str, decode: Decode, worker: Worker, *, fills: bool = True) -> None:
        """A line for a run that is ready, or for other work that needs a thread."""
        line = self._lines[name] = Line(name, decode, worker, fills=fills)
        self._tasks.append(asyncio.create_task(self._serve(line)))

    async def watch(self) -> None:
        """Turn a decoding that hangs into answers, for as long as the server lives.

        And tell those who wait as soon as it shows that they would wait in vain.
        """
        while True:
            await asyncio.sleep(min(TICK_S, self.settings.hang_s / 4))
            for line in self._lines.values():
                if line.silence() > self.settings.hang_s:
                    self._give_up_line(line)
                self._refuse_late(line)

    def refusal(self, client: str = "") -> RequestError | None:
        """Why no request of this client can be taken now, whatever it asks for."""
        if self.stopping:
            return RequestError(503, "stopping", "the server is stopping", retry_after=5)
        if self.depth < self.settings.queue:
            return None
        waiting = Counter(job.client for _, job in self._everyone())
        return self._full() if waiting[client] + 1 >= max(waiting.values()) else None

    def _everyone(self) -> list[tuple[Line, Job]]:
        return [(line, job) for line in self._lines.values() for job in line.waiting]

    def _full(self) -> RequestError:
        message = f"{self.depth} requests are waiting already; try again later"
        return RequestError(429, "busy", message, retry_after=self._retry_after())

    def _make_room(self) -> None:
        """Refuse the last request of the client that has most of them waiting."""
        waiting = Counter(job.client for _, job in self._everyone())
        crowd = max(waiting, key=waiting.__getitem__)
        line, last = [(line, job) for line, job in self._everyone() if job.client == crowd][-1]
        last.fail(self._full())
        line.waiting.remove(last)

    def submit(self, run: str, job: Job, *, taken: bool = False) -> None:
        """Into a line; with `taken`, a request that has come out of another one."""
        line = self._lines[run]
        if not taken and (refusal := self.refusal(job.client)):
            raise refusal
        if line.hung:
            raise RequestError(
                503, "hung", f"{run} does not answer; try again later", retry_after=5
            )
        if line.schedule.least(job) > self.settings.deadline_s:
            raise self._too_much(line, job)
        if not taken and self.depth >= self.settings.queue:
            self._make_room()
        line.schedule.enter(job.client)
        line.waiting.append(job)
        self._refuse_late(line)
        if job.answer.done():
            job.answer.result()  # raises why
        line.filled.set()

    def give_up(self, run: str, job: Job) -> None:
        """Nobody waits for this any more: never run it, or stop it after its next step."""
        waiting = self._lines[run].waiting
        self.metrics.cancelled.labels("waiting" if job in waiting else "running").inc()
        job.gone = True
        if job in waiting:
            waiting.remove(job)
        job.answer.cancel()

    def abandon(self) -> None:
        """The time to stop has come: tell those who are still waiting."""
        for line in self._lines.values():
            self._fail_all(line, RequestError(503, "stopping", "the server stopped", retry_after=5))

    def _retry_after(self) -> int:
        """As long as the requests that wait will take, about."""
        seconds = max(map(self._seconds, self._lines.values()))
        return max(1, min(round(seconds), 30))

    def _seconds(self, line: Line) -> float:
        return line.schedule.seconds(line.waiting, self.settings.batch)

    def _refuse_late(self, line: Line) -> None:
        """Whoever could not be answered in time hears it now, and not at his deadline."""
        for job in line.schedule.late(line.waiting, self.settings.batch):
            if job.ends - time.monotonic() > 2 * TICK_S:
                line.waiting.remove(job)
                job.fail(self._too_late(line, job))

    def _too_late(self, line: Line, job: Job) -> RequestError:
        message = (
            f"about {self._seconds(line):.0f} s of work wait for {line.name}, and this takes "
            f"{line.schedule.cost(job):.0f} s; a request has {self.settings.deadline_s:g} s "
            "(deadline_s): try again later"
        )
        return RequestError(503, "busy", message, retry_after=self._retry_after())

    def _too_much(self, line: Line, job: Job) -> RequestError:
        message = (
            f"this would take {line.name} at least {line.schedule.least(job):.0f} s; a request has "
            f"{self.settings.deadline_s:g} s (deadline_s): ask for less"
        )
        return RequestError(422, "too_long", message)

    def _give_up_line(self, line: Line) -> None:
        if not line.hung:
            log.error("%s: no decoding step for %.0f s", line.name, line.silence())
        line.hung = True
        message = f"{line.name} made no step for {self.settings.hang_s:.0f} s; try again later"
        self._fail_all(line, RequestError(504, "hung", message))

    def _fail_all(self, line: Line, error: RequestError) -> None:
        for job in (*line.running, *line.waiting):
            job.gone = True
            job.fail(error)
        line.waiting.clear()

    async def _serve(self, line: Line) -> None:
        while True:
            await line.filled.wait()
            if self.settings.wait_ms and line.fills:
                await asyncio.sleep(self.settings.wait_ms / 1000)
            batch = line.take(self.settings.batch)
            if not line.waiting:
                line.filled.clear()
            if batch:
                await self._decode(line, batch)

    async def _decode(self, line: Line, batch: list[Job]) -> None:
        """Decode a batch; if it fails, each of it alone, so that one cannot spoil the others."""
        line.running = batch
        line.beat()
        line.schedule.begin(batch)
        begun = time.monotonic()
        if line.fills:
            self.metrics.batch_size.observe(sum(job.size for job in batch))
        error = await line.worker.call(line.decode, batch, line.beat)
        line.schedule.end(whole=error is None and not any(job.gone for job in batch))
        if line.fills:
            self.metrics.decode_seconds.observe(time.monotonic() - begun)
        line.running, line.hung = (), False
        if error is not None and len(batch) > 1:
            for job in batch:
                if not job.answer.done():
                    await self._decode(line, [job])
        elif error is not None:
            batch[0].fail(_as_answer(error, batch[0]))


def _as_answer(error: Exception, job: Job) -> RequestError:
    """What the client is told: mistakes of his in full, ours without their inside."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, SaccadeError):
        return invalid(str(error), None)
    log.error("%s: decoding failed", job.name, exc_info=error)
    return internal()
