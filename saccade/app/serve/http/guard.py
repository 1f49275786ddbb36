"""What every request passes before anything is done for it, and every answer on its way out.

Refused here, before a byte of the body is kept: foreign host names and pages, who lacks the token,
bodies that are too large, of the wrong type or packed, and whatever comes when the line is full.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from saccade.app.serve.batcher import Batcher
from saccade.app.serve.http.access import Hosts, Token, client_of
from saccade.app.serve.http.errors import GoneError, RequestError, internal, to_json
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.settings import ServeSettings

log = logging.getLogger("saccade.serve")

Header = tuple[bytes, bytes]
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON, FORM = b"application/json", b"multipart/form-data"
POSTS = ("/v1/predict", "/v1/look")
REQUEST_ID = b"x-request-id"
ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """An ASGI application around another."""

    def __init__(
        self,
        inner: Application,
        settings: ServeSettings,
        batcher: Batcher,
        metrics: Metrics,
        *,
        host: str,
        token: str = "",
        images: bool = False,
    ) -> None:
        self._inner, self._settings, self._batcher = inner, settings, batcher
        self._metrics, self._hosts = metrics, Hosts(host, settings.hosts)
        self._token = Token(token)
        self._kinds = (JSON, FORM) if images else (JSON,)
        self._most = max(settings.body_bytes, settings.image_bytes if images else 0)
        self._held = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        passage = _Passage(scope, send)
        work = scope["path"] in POSTS and scope["method"] == "POST"
        if work:
            self._metrics.working += 1
        try:
            await self._pass(scope, receive, passage, work)
        except RequestError as error:
            self._metrics.refusals.labels(error.code).inc()
            await passage.refuse(error)
        except GoneError:
            passage.status = 499
        except Exception as error:
            log.error("%s %s failed", passage.id, scope["path"], exc_info=error)
            if not passage.started:
                await passage.refuse(internal())
        finally:
            if work:
                self._metrics.working -= 1
            self._metrics.answered(scope["path"], passage.status)
            passage.log()

    async def _pass(self, scope: Scope, receive: Receive, passage: "_Passage", work: bool) -> None:
        headers = {name.decode("latin-1"): value for name, value in scope["headers"]}
        self._hosts.check(headers.get("host", b"").decode("latin-1"))
        scope.setdefault("state", {})["request_id"] = passage.id
        if cookie := self._token.cookie(scope):
            await passage.redirect("/", {"Set-Cookie": cookie})
            return
        self._token.check(scope, headers)
        if work:
            self._hosts.check_page(headers)
            if refusal := self._crowded(scope) or self._batcher.refusal(client_of(scope)):
                raise refusal
            check_headers(headers, self._most, self._kinds)
            body = bytearray()
            try:
                await self._read(receive, body)
                await self._inner(scope, _replay(bytes(body), receive), passage.send)
            finally:
                self._held -= len(body)
        else:
            await self._inner(scope, receive, passage.send)
        if scope["state"].get("gone"):
            raise GoneError

    def _crowded(self, scope: Scope) -> RequestError | None:
        if "crowded" not in scope["state"]:
            return None
        why = f"{self._settings.connections} connections are open (connections); try again later"
        return RequestError(503, "busy", why, retry_after=1, headers={"Connection": "close"})

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """The whole body, unless it is too large or too slow, or others are large already."""
        settings = self._settings
        try:
            async with asyncio.timeout(settings.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise GoneError
                    part: bytes = message.get("body", b"")
                    self._held += len(part)
                    body += part
                    if len(body) > self._most:
                        raise too_large(self._most)
                    if self._held > settings.held_bytes:
                        why = f"{settings.held_bytes} bytes of requests are held; try again later"
                        raise RequestError(429, "busy", why, retry_after=1)
                    if not message.get("more_body", False):
                        return
        except TimeoutError as error:
            message = f"the body did not come within {settings.body_s:g} s"
            headers = {"Connection": "close"}
            raise RequestError(408, "slow_body", message, headers=headers) from error


def check_headers(headers: dict[str, bytes], most: int, kinds: tuple[bytes, ...]) -> None:
    """Refuse a body by what its headers say of it."""
    kind = headers.get("content-type", b"").split(b";")[0].strip().lower()
    if kind not in kinds:
        shown = kind.decode("latin-1")[:60] or "nothing"
        known = b" or ".join(kinds).decode()
        message = f"Content-Type must be {known}, not {shown}"
        raise RequestError(415, "content_type", message)
    packed = headers.get("content-encoding", b"identity").strip().lower()
    if packed != b"identity":
        shown = packed.decode("latin-1")[:60]
        message = f"Content-Encoding {shown} is not taken; send the body as it is"
        raise RequestError(415, "content_encoding", message)
    if "content-length" in headers:
        length = int(headers["content-length"])  # the protocol has checked that it is a number
        if length > most:
            raise too_large(most)
    elif "transfer-encoding" not in headers:
        raise RequestError(411, "length_required", "send a body with its Content-Length")


def too_large(most: int) -> RequestError:
    return RequestError(413, "too_large", f"the body may have at most {most} bytes")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Hand a body on that was read already; after it comes what comes, such as a disconnect."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


class _Passage:
    """One request's way through, and what is known of its answer."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self.id, self.status = secrets.token_hex(8), 499
        self._scope, self._send, self._begun = scope, send, time.monotonic()
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started, self.status = True, message["status"]
            message["headers"] = self._with_ours(message.get("headers", []))
        await self._send(message)

    def _with_ours(self, headers: Sequence[Header]) -> list[Header]:
        """An answer of a replica has been through a guard: nothing is said twice, its id stays."""
        given = dict(headers)
        self.id = given.get(REQUEST_ID, self.id.encode()).decode()
        ours = {name.lower().encode(): value.encode() for name, value in ALWAYS.items()}
        ours[REQUEST_ID] = self.id.encode()
        return [*(one for one in headers if one[0] not in ours), *ours.items()]

    async def refuse(self, error: RequestError) -> None:
        headers = {"Content-Type": "application/json", **error.headers}
        await self._answer(error.status, headers, to_json(error.body(self.id)))

    async def redirect(self, path: str, headers: dict[str, str]) -> None:
        await self._answer(303, {"Location": path, **headers}, b"")

    async def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        headers = {**headers, "Content-Length": str(len(body))}
        encoded = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": encoded})
        await self.send({"type": "http.response.body", "body": body})

    def log(self) -> None:
        scope, seconds = self._scope, time.monotonic() - self._begun
        path = ascii(scope["path"])[1:-1][:100]
        log.info("%s %s %s %d %.3f s", self.id, scope["method"], path, self.status, seconds)
