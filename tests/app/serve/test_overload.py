"""S1: ten times more than the server can do; what it takes on it does, the rest hears at once."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.serve.load import hammer, measure_rate
from tests.app.serve.serving import ServerProcess

pytestmark = pytest.mark.slow
SECONDS = float(os.environ.get("SACCADE_OVERLOAD_SECONDS", "6"))
RUN = os.environ.get("SACCADE_OVERLOAD_RUN", "")  # a run of a real size
DEADLINE = 20.0
LONG = "The old dog eats the bread that we see. " * 3  # work for the model, not for the wire
BODIES = [{"text": LONG + name, "beam": 12} for name in ("She sleeps.", "We eat.", "He sees us.")]


@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[ServerProcess]:
    run = RUN or str(runs["translator"])
    with ServerProcess(run, "--deadline-s", str(DEADLINE), "--queue", "32") as running:
        yield running


def test_too_much_is_refused_at_once_and_nothing_breaks(server: ServerProcess) -> None:
    process = psutil.Process(server.process.pid)
    able = asyncio.run(measure_rate(server.port, BODIES, seconds=min(SECONDS, 4.0)))
    before = process.memory_info().rss
    load = asyncio.run(hammer(server.port, BODIES, rate=10 * able, seconds=SECONDS))
    grown = process.memory_info().rss - before
    begun = time.monotonic()
    assert server.post("/v1/predict", BODIES[0]).status_code == 200
    recovered = time.monotonic() - begun
    print(f"\n{able:.0f}/s possible, {10 * able:.0f}/s asked for {SECONDS:g} s")
    print(f"{load}\nmemory {grown / 1e6:+.1f} MB, next answer after {recovered:.2f} s")
    assert {200, 429} <= set(load.seconds) <= {200, 429, 503}
    assert load.count(429) > load.count(200) > 0
    assert load.without_retry_after == 0
    assert load.percentile(429, 0.99) < 0.2 + load.noise
    assert max(load.seconds[200]) < DEADLINE
    assert grown < 50_000_000
    assert recovered < 5
    assert server.metric("in_flight") == 0
