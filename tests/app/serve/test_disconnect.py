"""S3: for a client that has gone nothing is done, and its batch mates do not notice."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.app.serve.faults import Faults, faulty
from tests.app.serve.serving import LocalServer, eventually

pytestmark = pytest.mark.slow  # waits for deadlines, or starts processes

TEXT = "We eat the old bread."


@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[LocalServer]:
    paths = [runs["translator"], runs["writer"]]
    with LocalServer(paths, deadline_s=20.0, body_s=3.0) as running:
        yield running


@pytest.fixture
def slow(server: LocalServer) -> Iterator[Faults]:
    with faulty(server, "translator") as faults:
        yield faults
    eventually(lambda: server.metric("in_flight") == 0)


def test_what_is_still_queued_never_runs(server: LocalServer, slow: Faults) -> None:
    slow.gate.clear()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(server.predict, TEXT, beam=1)
        eventually(lambda: slow.texts == [TEXT])
        leavers = [server.send({"text": f"Gone {i}.", "beam": 2}) for i in range(5)]
        eventually(lambda: server.metric("queue_depth") == 5)
        for wire in leavers:
            wire.close()
        eventually(lambda: server.metric("queue_depth") == 0)
        slow.gate.set()
        assert first.result().status_code == 200
    assert server.predict("She sleeps.", beam=1).status_code == 200
    assert slow.texts == [TEXT, "She sleeps."]


def test_what_runs_stops_at_the_next_step_and_its_mates_go_on(
    server: LocalServer, slow: Faults
) -> None:
    alone = server.predict(TEXT, beam=2).json()["predictions"]
    slow.gate.clear()
    with ThreadPoolExecutor() as pool:
        blocker = pool.submit(server.predict, "She sleeps.", beam=1)
        eventually(lambda: "She sleeps." in slow.texts)
        leaver = server.send({"text": "The dog that we see eats the bread and sleeps.", "beam": 2})
        eventually(lambda: server.metric("queue_depth") == 1)
        mate = pool.submit(server.predict, TEXT, beam=2)
        eventually(lambda: server.metric("queue_depth") == 2)
        slow.step_seconds = 0.02
        slow.gate.set()
        eventually(lambda: len(slow.batches[-1]) == 2)
        before = server.metric("cancelled_total")
        leaver.close()
        eventually(lambda: server.metric("cancelled_total") == before + 1)
        (beside,), (lone,) = mate.result().json()["predictions"], alone
        assert beside["text"] == lone["text"]
        assert beside["score"] == pytest.approx(lone["score"], abs=1e-4)
        assert blocker.result().status_code == 200


def test_a_batch_that_nobody_waits_for_ends_within_two_steps(
    server: LocalServer, slow: Faults
) -> None:
    slow.step_seconds = 0.05
    leaver = server.send({"text": TEXT, "beam": 1})
    eventually(lambda: slow.texts == [TEXT])
    time.sleep(0.3)
    leaver.close()
    eventually(lambda: server.metric("in_flight") == 0)
    steps = server.metric("steps_total")
    time.sleep(0.5)  # ten steps' time
    assert server.metric("steps_total") <= steps + 2


def test_a_stream_stops_when_its_reader_leaves(server: LocalServer) -> None:
    with faulty(server, "writer") as faults:
        faults.step_seconds = 0.05
        body = {"run": "writer", "text": "We", "most_tokens": 200, "stream": True}
        wire = server.send(body)
        received = b""
        while received.count(b"data:") < 3:
            received += wire.recv(65536)
        wire.close()
        eventually(lambda: server.metric("in_flight") == 0)
        steps = server.metric("steps_total")
        time.sleep(0.5)
        assert server.metric("steps_total") <= steps + 2


def test_a_client_that_leaves_while_it_sends_is_forgotten(server: LocalServer) -> None:
    wire = server.connect()
    wire.sendall(b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n")
    wire.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
    eventually(lambda: server.metric("in_flight") == 1)
    wire.close()
    eventually(lambda: server.metric("in_flight") == 0, seconds=2)
