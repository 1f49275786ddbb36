"""Waiting for an answer, at once or as it grows, as long as there is someone to give it to."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from saccade.app.serve.batcher import Batcher, Job
from saccade.app.serve.http.errors import GoneError, RequestError, to_json
from saccade.app.serve.settings import ServeSettings


class Waiting:
    """A job, and the client who waits for it."""

    def __init__(
        self, run: str, job: Job, batcher: Batcher, settings: ServeSettings, ends: float
    ) -> None:
        self._run, self._job, self._batcher, self._settings = run, job, batcher, settings
        self._ends = ends  # by the clock of the event loop

    async def answer(self, receive: Receive) -> Any:
        """The whole answer, or the reason why there is none."""
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await self._until(gone)
            return self._job.answer.result()
        finally:
            self._leave(gone)

    async def events(self, receive: Receive) -> AsyncGenerator[dict[str, Any], None]:
        """The newest draft whenever there is one, then the answer."""
        job, gone = self._job, asyncio.create_task(_disconnected(receive))
        try:
            while not job.answer.done():
                news = asyncio.create_task(job.news.wait())
                try:
                    await self._until(gone, news)
                finally:
                    news.cancel()
                if job.news.is_set() and job.draft is not None:
                    job.news.clear()
                    yield job.draft
            yield {"done": True, **job.answer.result()[0]}
        finally:
            self._leave(gone)

    async def _until(self, gone: asyncio.Task[None], *further: asyncio.Task[Any]) -> None:
        """Wait for the answer or something further, but no longer than the client does."""
        left = self._ends - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait(
            {self._job.answer, gone, *further},
            timeout=max(left, 0),
            return_when=asyncio.FIRST_COMPLETED,
        )
        if gone in done:
            raise GoneError
        if not done:
            message = f"there was no answer within {self._settings.deadline_s:g} s"
            raise RequestError(504, "deadline", message)

    def _leave(self, gone: asyncio.Task[None]) -> None:
        """Whoever leaves before the answer is there gives the job up."""
        gone.cancel()
        if not self._job.answer.done():
            self._batcher.give_up(self._run, self._job)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class EventStream(Response):
    """Server-sent events. An error after the beginning is an event too, and the last."""

    def __init__(self, waiting: Waiting, request: Request) -> None:
        super().__init__(media_type="text/event-stream")
        self._waiting, self._request = waiting, request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        try:
            async with aclosing(self._waiting.events(self._request.receive)) as events:
                async for event in events:
                    await send(_event(event))
        except GoneError:
            self._request.state.gone = True
            return
        except RequestError as error:
            await send(_event(error.body(self._request.state.request_id)))
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _event(value: dict[str, Any]) -> dict[str, Any]:
    body = b"data: " + to_json(value) + b"\n\n"
    return {"type": "http.response.body", "body": body, "more_body": True}
