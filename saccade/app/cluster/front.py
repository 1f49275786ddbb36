"""The door of a server whose work is done by replicas elsewhere.

Every limit of a single server holds here too, for the same guard stands at it, and again at each
replica, whose line is as long as a single server's. An answer depends on nothing but its request,
so that one which a lost replica had taken is asked of another, unless part of it is out already.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

from saccade.app.serve.http.errors import GoneError, RequestError
from saccade.app.serve.http.guard import POSTS, Message, Receive, Scope, Send

log = logging.getLogger("saccade.serve")

# A replica's answer to a scope and a body.
Ask = Callable[[dict[str, Any], bytes], AsyncIterator[Message]]
PLAIN = (
    "type",
    "http_version",
    "method",
    "scheme",
    "path",
    "raw_path",
    "query_string",
    "root_path",
    "headers",
    "client",
    "server",
)
AGAIN_S = 0.2  # seconds before another replica is asked
LATE_S = 5.0  # seconds beyond the deadline that a replica has to tell of it


class Forwarding:
    """An ASGI application; `lost` are the errors of a replica that is no more, `full` of none free.

    A request is asked again until `deadline` seconds are over, and given up soon after, even if its
    replica says nothing. No more than `room` are under way at once: one more is refused here, which
    is sooner than a replica can. Questions after health and the like take no room.
    """

    def __init__(
        self,
        ask: Ask,
        *,
        lost: tuple[type[BaseException], ...],
        full: tuple[type[BaseException], ...] = (),
        deadline: float = 30.0,
        room: int = 100,
    ) -> None:
        self._room, self._under_way = room, 0
        self._ask, self._lost, self._full, self._deadline = ask, lost, full, deadline

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] not in POSTS:
            await self._forward(scope, receive, send)
            return
        if self._under_way >= self._room:
            why = f"{self._under_way} requests are under way already; try again later"
            raise RequestError(429, "busy", why, retry_after=1)
        self._under_way += 1
        try:
            await self._forward(scope, receive, send)
        finally:
            self._under_way -= 1

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise GoneError
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        plain = {name: scope[name] for name in PLAIN if name in scope}
        leaves = asyncio.ensure_future(_left(receive))
        answers = asyncio.ensure_future(self._answer(plain, bytes(body), send))
        try:
            first = asyncio.FIRST_COMPLETED
            most = self._deadline + LATE_S
            await asyncio.wait({leaves, answers}, timeout=most, return_when=first)
            if answers.done():
                await answers
            elif leaves.done():
                raise GoneError
            else:
                why = f"no replica answered within {most:g} s (deadline_s and {LATE_S:g} s more)"
                raise RequestError(504, "deadline", why)
        finally:
            leaves.cancel()
            answers.cancel()

    async def _answer(self, scope: dict[str, Any], body: bytes, send: Send) -> None:
        loop = asyncio.get_running_loop()
        begun, ends = False, loop.time() + self._deadline
        while True:
            try:
                held: Message | None = None  # a start goes out with what follows it, or not at all
                async for message in self._ask(scope, body):
                    if message["type"] == "http.response.start":
                        held = message
                        continue
                    begun = True
                    if held is not None:
                        await send(held)
                        held = None
                    await send(message)
                return
            except self._full:
                why = "every replica is busy; try again later"
                raise RequestError(503, "busy", why, retry_after=1) from None
            except self._lost as error:
                log.warning("a replica was lost: %s", str(error).partition("\n")[0][:200])
                if begun or loop.time() + AGAIN_S > ends:
                    why = "the replica that answered was lost; ask again"
                    raise RequestError(503, "replica_lost", why, retry_after=1) from None
                await asyncio.sleep(AGAIN_S)


async def _left(receive: Receive) -> None:
    """Until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
