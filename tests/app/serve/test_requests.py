"""Images of strangers are decoded apart from everything else, one at a time, and for a while."""

import base64
import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.app.look.images import ShownImage
from saccade.app.serve import requests as reading
from saccade.app.serve.image_decoder import ImageDecoder
from saccade.tasks.captioning.captioner import ImageCaptioner
from tests.app.serve.captioners import as_json, images, make_captioners, upload
from tests.app.serve.serving import LocalServer, eventually, refusal
from tests.data.images_made import picture

RAW = images(1)[0]
PLAIN = ImageDecoder.decode


class Gate:
    """Decoding that waits, and is watched."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.threads: list[str] = []
        self.now = self.most = 0

    def __call__(self, decoder: ImageDecoder, raw: bytes, **options: Any) -> Any:
        self.threads.append(threading.current_thread().name)
        self.now += 1
        self.most = max(self.most, self.now)
        self.open.wait(20)
        self.now -= 1
        return PLAIN(decoder, raw, **options)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_captioners(tmp_path_factory.mktemp("captioners"))["teller"]


@pytest.fixture
def server(path: Path) -> Iterator[LocalServer]:
    limits = {"queue": 4, "image_bytes": 200_000, "held_bytes": 400_000}
    with LocalServer([path], **limits) as running:
        yield running


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()

    def decode(self: ImageDecoder, raw: bytes, **options: Any) -> Any:
        return made(self, raw, **options)

    monkeypatch.setattr(ImageDecoder, "decode", decode)
    yield made
    made.open.set()


def test_one_image_is_decoded_at_a_time_and_never_in_the_event_loop(
    server: LocalServer, gate: Gate
) -> None:
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(upload, server, RAW), pool.submit(as_json, server, RAW)]
        eventually(lambda: gate.now == 1 and server.metric("queue_depth") == 1)
        begun = time.monotonic()
        assert server.get("/health").status_code == 200
        assert time.monotonic() - begun < 1
        gate.open.set()
        assert [one.result().status_code for one in asked] == [200, 200]
    assert set(gate.threads) == {"saccade reader"}
    assert gate.most == 1


def test_images_that_wait_to_be_decoded_are_among_those_who_wait(
    server: LocalServer, gate: Gate
) -> None:
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(upload, server, RAW) for _ in range(5)]
        eventually(lambda: server.metric("queue_depth") == 4 and gate.now == 1)
        refused = upload(server, RAW)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "busy")
        gate.open.set()
        assert [one.result().status_code for one in asked] == [200] * 5  # none is refused later


@pytest.mark.slow
def test_the_deadline_holds_while_an_image_is_decoded(path: Path, gate: Gate) -> None:
    with LocalServer([path], deadline_s=3.0) as server:
        begun = time.monotonic()
        answer = upload(server, RAW)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "deadline")
        assert 2.5 < time.monotonic() - begun < 5
        gate.open.set()
        eventually(lambda: upload(server, RAW).status_code == 200)


def test_an_image_of_one_who_left_is_not_decoded(server: LocalServer, gate: Gate) -> None:
    with ThreadPoolExecutor() as pool:
        first = pool.submit(upload, server, RAW)
        eventually(lambda: gate.now == 1)
        wire = server.send({"image": RAW.hex()})
        eventually(lambda: server.metric("queue_depth") == 1)
        wire.close()
        eventually(lambda: server.metric("queue_depth") == 0)
        gate.open.set()
        assert first.result().status_code == 200
    assert len(gate.threads) == 1
    eventually(lambda: server.metric("in_flight") == 0)


def half_sent(server: LocalServer) -> socket.socket:
    wire = server.connect()
    head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    wire.sendall(head + b"Content-Length: 199999\r\n\r\n" + b" " * 150_000)
    return wire


def test_no_more_bodies_are_held_than_may_be(server: LocalServer) -> None:
    guard: Any = server.server.config.app
    wires = [half_sent(server) for _ in range(2)]
    eventually(lambda: guard._held == 300_000)
    with half_sent(server) as third:
        assert refusal(third) == (429, "busy")
    for wire in wires:
        wire.close()
    eventually(lambda: guard._held == 0)
    with half_sent(server) as wire:  # what was held is free again
        wire.sendall(b" " * 49_999)
        assert refusal(wire) == (400, "bad_json")


def test_told_to_stop_the_server_finishes_what_it_is_reading(
    server: LocalServer, gate: Gate
) -> None:
    with ThreadPoolExecutor() as pool:
        asked = [pool.submit(upload, server, RAW) for _ in range(2)]
        eventually(lambda: gate.now == 1 and server.metric("queue_depth") == 1)
        server.server.handle_exit(signal.SIGTERM, None)
        refused = upload(server, RAW)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
        gate.open.set()
        assert [one.result().status_code for one in asked] == [200, 200]
        server.thread.join(10)
    assert not server.thread.is_alive()


def test_a_run_is_given_the_pixels_that_the_library_gives_it(server: LocalServer) -> None:
    raw, tool = picture(3, side=600, form="JPEG"), server.runs["teller"].tool
    assert isinstance(tool, ImageCaptioner)
    body = json.dumps({"image": base64.b64encode(raw).decode()}).encode()
    service = server.service
    for schema in (service.schemas.predict, service.schemas.look):
        kind = "application/json"
        limits = service.settings
        asked = reading.RequestBody(body, kind, schema, service.runs, limits, service.decoder)()
        (given,) = asked.given
        seen = given.seen_by(tool) if isinstance(given, ShownImage) else given
        assert torch.equal(seen, tool.prepare(raw))
