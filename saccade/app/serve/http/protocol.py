"""HTTP with deadlines: uvicorn alone waits for ever for a client that sends half a request.

A connection has `header_s` for the headers of its next request, `body_s` for the body, and may
leave what it was sent unread for `write_s`. A byte now and then does not buy more time. Where there
are as many connections as may be, whoever has been at it for longest makes room for a new one: in
a flood of slow clients, the quick ones still come through.
"""

import asyncio
import secrets
from functools import partial
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from saccade.app.serve.http.errors import RequestError, to_json
from saccade.app.serve.metrics import Metrics
from saccade.app.serve.settings import ServeSettings

# Where everyone is being answered and nobody can be sent away, so many more are heard, but only to
# be told so; a question after the server's health is answered.
SPARE = 8


class PatientProtocol(H11Protocol):
    """One connection, and how much patience is left with its client."""

    def __init__(
        self, settings: ServeSettings, metrics: Metrics, config: Config, *rest: Any, **named: Any
    ) -> None:
        super().__init__(config, *rest, **named)
        self._settings, self._metrics = settings, metrics
        self._phase = ""
        self._phase_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self.waited_for_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        most = self._settings.connections
        room = len(self.connections) < most or make_room(self.server_state)
        super().connection_made(transport)
        if not room:
            self.app_state = {**self.app_state, "crowded": True}
        if room or len(self.connections) <= most + SPARE:
            self._look_at_phase()
        else:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._phase_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._phase_timer = self._write_timer = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look_at_phase()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look_at_phase()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self._settings.write_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def send_400_response(self, msg: str) -> None:
        """What is not HTTP is answered in the same shape as everything else."""
        self._metrics.refusals.labels("bad_request").inc()
        self._metrics.answered("", 400)
        request_id = secrets.token_hex(8)
        body = to_json(RequestError(400, "bad_request", msg).body(request_id))
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
            ("X-Request-Id", request_id),
            ("Connection", "close"),
        ]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(
                (self.conn.send(h11.Response(status_code=400, headers=headers)) or b"")
                + (self.conn.send(h11.Data(data=body)) or b"")
                + (self.conn.send(h11.EndOfMessage()) or b"")
            )
        self.transport.close()

    def _look_at_phase(self) -> None:
        """Whenever a new phase begins, its time does; while it lasts, nothing is added."""
        if self.transport.is_closing():
            return
        phase = self._phase_now()
        if phase == self._phase:
            return
        self._phase = phase
        if self._phase_timer is not None:
            self._phase_timer.cancel()
            self._phase_timer = None
        self.waited_for_since = None if phase == "answer" else self.loop.time()
        seconds = {"headers": self._settings.header_s, "body": self._settings.body_s + 1}.get(phase)
        if seconds is not None:
            self._phase_timer = self.loop.call_later(seconds, self._close)

    def _phase_now(self) -> str:
        """What is expected of the client."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            return "body"
        answering = self.cycle and not self.cycle.response_complete
        return "headers" if state is h11.IDLE and not answering else "answer"

    def _close(self) -> None:
        self.transport.close()  # what was written still goes out, if the client reads it
        self._phase_timer = self.loop.call_later(self._settings.write_s, self.transport.abort)


def make_room(state: ServerState) -> bool:
    """Close the connection whose client is waited for longest; who waits for us is left alone."""
    slow = [
        (one.waited_for_since, number, one)
        for number, one in enumerate(state.connections)
        if isinstance(one, PatientProtocol) and one.waited_for_since is not None
    ]
    if not slow:
        return False
    longest = min(slow)[2]
    longest.transport.abort()
    state.connections.discard(longest)  # not later: the next may come before it is lost
    return True


def protocol_class(settings: ServeSettings, metrics: Metrics) -> Any:
    """What uvicorn calls for every connection."""
    return partial(PatientProtocol, settings, metrics)
