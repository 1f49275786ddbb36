"""S2: clients that are slow to send or to read lose their connection, and no one else does."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPResponse
from pathlib import Path

import pytest

from tests.app.serve.serving import LocalServer, eventually, refusal

pytestmark = pytest.mark.slow  # waits for deadlines, or starts processes

PATIENCE = 1.0
SLACK = 1.5  # this machine may be busy
HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[LocalServer]:
    waits = {"header_s": PATIENCE, "body_s": PATIENCE, "write_s": PATIENCE}
    with LocalServer([runs["writer"]], **waits, connections=300) as running:
        yield running


def seconds_until_closed(wire: socket.socket, trickle: bytes = b"") -> float:
    """How long the server keeps a connection on which now and then a byte comes, or none."""
    begun, pieces = time.monotonic(), iter(trickle)
    wire.settimeout(0.1)
    while time.monotonic() - begun < 20:
        try:
            if not wire.recv(65536):
                break
        except TimeoutError:
            pass
        except ConnectionError:
            break
        for piece in pieces:
            try:
                wire.sendall(bytes([piece]))
            except ConnectionError:
                return time.monotonic() - begun
            break
    return time.monotonic() - begun


def test_a_client_that_says_nothing_is_closed(server: LocalServer) -> None:
    with server.connect() as wire:
        assert PATIENCE * 0.8 < seconds_until_closed(wire) < PATIENCE + SLACK


def test_a_byte_now_and_then_buys_no_time_for_headers(server: LocalServer) -> None:
    with server.connect() as wire:
        wire.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        assert seconds_until_closed(wire, b"y" * 200) < PATIENCE + SLACK


def test_a_byte_now_and_then_buys_no_time_for_a_body(server: LocalServer) -> None:
    with server.connect() as wire:
        wire.sendall(HEAD + b"Content-Length: 1000\r\n\r\n")
        assert seconds_until_closed(wire, b"y" * 200) < PATIENCE + 1 + SLACK


def test_a_slow_body_is_told_so(server: LocalServer) -> None:
    with server.connect() as wire:
        wire.sendall(HEAD + b'Content-Length: 1000\r\n\r\n{"text')
        assert refusal(wire) == (408, "slow_body")


def test_the_rest_of_a_refused_body_is_not_waited_for_without_end(server: LocalServer) -> None:
    with server.connect() as wire:
        wire.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
        assert refusal(wire) == (413, "too_large")
        assert seconds_until_closed(wire, b"y" * 200) < PATIENCE + 1 + SLACK


def test_a_connection_that_is_kept_alive_is_closed_when_it_is_idle(server: LocalServer) -> None:
    with server.connect() as wire:
        for _ in range(2):
            wire.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            answer = HTTPResponse(wire)
            answer.begin()
            assert b"alive" in answer.read()
        assert PATIENCE * 0.8 < seconds_until_closed(wire) < PATIENCE + SLACK


def test_two_hundred_idle_sockets_do_not_stop_anyone(server: LocalServer) -> None:
    with ExitStack() as sockets:
        idle = [sockets.enter_context(server.connect()) for _ in range(200)]
        for half in idle[::2]:
            half.sendall(b"GET / HTT")
        for _ in range(10):
            begun = time.monotonic()
            assert server.get("/health").status_code == 200
            assert time.monotonic() - begun < 1
        assert server.predict("We", most_tokens=2).status_code == 200
        assert all(seconds_until_closed(one) < PATIENCE + SLACK for one in idle[:5])


def test_beyond_the_most_connections_the_longest_idle_makes_room(server: LocalServer) -> None:
    with ExitStack() as sockets:
        idle = [sockets.enter_context(server.connect()) for _ in range(310)]
        assert server.get("/health").status_code == 200
        assert seconds_until_closed(idle[0]) < PATIENCE * 0.8
        open_now = server.server.server_state.connections
        assert len(open_now) <= 300


def test_a_client_that_does_not_read_its_answer_is_dropped(server: LocalServer) -> None:
    """Forty looks are asked for on one connection, and none is read."""
    body = json.dumps({"text": "We eat " * 30, "most_tokens": 0}).encode()
    ask = HEAD.replace(b"predict", b"look") + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with socket.socket() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wire.connect(("127.0.0.1", server.port))
        sender = threading.Thread(target=lambda: _send_all(wire, ask * 40))
        sender.start()
        eventually(lambda: _paused(server), seconds=30)
        eventually(lambda: not _paused(server), seconds=PATIENCE + 2 * SLACK)
        sender.join(10)
        assert server.get("/health").status_code == 200
        eventually(lambda: server.metric("in_flight") == 0)


def _send_all(wire: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        wire.sendall(data)


def _paused(server: LocalServer) -> bool:
    """Whether there is a connection on which more was written than the client reads."""
    open_now = list(server.server.server_state.connections)
    return any(one.flow.write_paused for one in open_now if one.flow is not None)
