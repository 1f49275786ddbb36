"""S10: told to stop, the server finishes what it has taken on, and nothing else."""

import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import psutil
import pytest

from saccade.app.serve.listening import bind
from tests.app.serve.faults import faulty
from tests.app.serve.serving import LocalServer, ServerProcess, eventually

TEXT = "We eat the old bread."


@pytest.fixture
def paths(runs: dict[str, Path]) -> list[Path]:
    return [runs["translator"], runs["writer"]]


def stream(server: LocalServer) -> list[dict[str, object]]:
    body = {"run": "writer", "text": "We", "most_tokens": 30, "stream": True}
    with httpx.stream("POST", f"{server.url}/v1/predict", json=body, timeout=20) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    return [json.loads(line) for line in lines]


@pytest.mark.slow
def test_what_was_taken_on_is_finished_and_nothing_new_is_taken(paths: list[Path]) -> None:
    with LocalServer(paths) as server, ExitStack() as held:
        faults = held.enter_context(faulty(server, "translator"))
        writer = held.enter_context(faulty(server, "writer"))
        with ThreadPoolExecutor() as pool:
            faults.gate.clear()
            writer.gate.clear()
            running = pool.submit(server.predict, TEXT, beam=1)
            eventually(lambda: faults.texts == [TEXT])
            queued = pool.submit(server.predict, TEXT, beam=2)
            streamed = pool.submit(stream, server)
            eventually(lambda: server.metric("queue_depth") == 1 and writer.texts != [])
            server.server.handle_exit(signal.SIGTERM, None)
            assert server.get("/ready").status_code == 503
            assert server.get("/health").status_code == 200
            refused = server.predict(TEXT)
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "stopping")
            assert "Retry-After" in refused.headers
            faults.gate.set()
            writer.gate.set()
            assert running.result().status_code == queued.result().status_code == 200
            assert streamed.result()[-1]["done"] is True
            server.thread.join(10)
    bind("127.0.0.1", server.port).close()


@pytest.mark.slow
def test_what_takes_longer_than_the_grace_is_told_so(paths: list[Path]) -> None:
    with LocalServer(paths, grace_s=1.0) as server, faulty(server, "writer") as faults:
        faults.step_seconds = 0.2
        with ThreadPoolExecutor() as pool:
            plain = pool.submit(server.predict, "We", run="writer", most_tokens=100)
            eventually(lambda: faults.texts == ["We"])
            streamed = pool.submit(stream, server)
            eventually(lambda: server.metric("queue_depth") == 1)
            begun = time.monotonic()
            server.server.handle_exit(signal.SIGTERM, None)
            answer = plain.result()
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
            last = streamed.result()[-1]["error"]
            assert isinstance(last, dict)
            assert last["code"] == "stopping"
            server.thread.join(10)
            assert time.monotonic() - begun < 4


@pytest.fixture
def process(paths: list[Path]) -> Iterator[ServerProcess]:
    with ServerProcess(*map(str, paths), "--grace-s", "60") as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_is_no_error_and_leaves_nothing(
    process: ServerProcess, number: signal.Signals
) -> None:
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(process.predict, TEXT * 2, beam=5) for _ in range(8)]
        eventually(lambda: process.metric("in_flight") == 8)
        family = psutil.Process(process.process.pid).children(recursive=True)
        process.process.send_signal(number)
        assert [one.result().status_code for one in asked] == [200] * 8
    assert process.process.wait(10) == 0
    assert psutil.wait_procs(family, timeout=5)[1] == []
    bind("127.0.0.1", process.port).close()
    assert process.process.stderr
    assert "Traceback" not in process.process.stderr.read()


@pytest.mark.slow
def test_a_second_signal_ends_it_at_once(process: ServerProcess) -> None:
    wire = process.send({"text": TEXT * 10, "beam": 16})
    eventually(lambda: process.metric("in_flight") == 1)
    process.process.send_signal(signal.SIGINT)
    eventually(lambda: process.get("/ready").status_code == 503)
    begun = time.monotonic()
    process.process.send_signal(signal.SIGINT)
    assert process.process.wait(5) == 130
    assert time.monotonic() - begun < 1
    wire.close()
