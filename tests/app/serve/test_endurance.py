"""S9: after thousands of requests, good, bad and broken off, the server is as it was."""

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.app.serve.serving import ServerProcess, eventually

pytestmark = pytest.mark.slow
REQUESTS = int(os.environ.get("SACCADE_ENDURANCE_REQUESTS", "400"))
MOST_GROWTH = 5_000_000  # bytes for a thousand requests


@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[ServerProcess]:
    with ServerProcess(str(runs["translator"]), str(runs["writer"])) as running:
        yield running


def one(server: ServerProcess, number: int) -> int:
    """One request of some kind; its status, 0 if it was not waited for."""
    rng = random.Random(number)
    kind, text = rng.randrange(10), "We eat. " * rng.randint(1, 3)
    if kind < 3:
        return server.predict(text, beam=rng.choice([1, 2])).status_code
    if kind < 5:
        fields = {"run": "writer", "most_tokens": 8, "stream": kind == 4}
        return server.predict(text, **fields).status_code
    if kind == 5:
        return server.post(
            "/v1/look", {"run": "writer", "text": text, "most_tokens": 2}
        ).status_code
    if kind == 6:
        return server.predict(text, beam=99).status_code
    if kind == 7:
        headers = {"Content-Type": "application/json"}
        return server.post("/v1/predict", content=b"{", headers=headers).status_code
    body = {"run": "writer", "text": text, "most_tokens": 200, "stream": kind == 8}
    with server.send(body) as wire:
        if kind == 8:
            wire.recv(10)
    return 0


def figures(server: ServerProcess) -> tuple[int, int, float]:
    """Open files, threads and tasks, once all is quiet."""
    eventually(lambda: server.metric("in_flight") == server.metric("queue_depth") == 0, seconds=30)
    process = psutil.Process(server.process.pid)
    return process.num_fds(), process.num_threads(), server.metric("tasks")


def test_nothing_is_left_behind(server: ServerProcess) -> None:
    process = psutil.Process(server.process.pid)
    with ThreadPoolExecutor(8) as pool:
        warm = list(pool.map(lambda number: one(server, number), range(REQUESTS // 4)))
        before, begun = process.memory_info().rss, figures(server)
        statuses = list(pool.map(lambda number: one(server, -number), range(1, REQUESTS + 1)))
    eventually(lambda: figures(server) <= begun, seconds=15)
    growth = (process.memory_info().rss - before) * 1000 / REQUESTS
    counted = {status: statuses.count(status) for status in sorted(set(statuses))}
    print(f"\n{counted}, memory {growth / 1e6:+.2f} MB a thousand, {begun} → {figures(server)}")
    assert set(warm) | set(statuses) == {0, 200, 400, 422}
    # In a short run the allocator's own steps are larger than what a thousand requests may leak.
    assert growth < max(MOST_GROWTH, 20e6 * 1000 / REQUESTS)
    assert server.metric("in_flight") == 0
