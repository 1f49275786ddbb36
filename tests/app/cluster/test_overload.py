"""Ten times more than two replicas of Ray can do: as with a single server, nothing breaks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.serve.load import hammer, measure_rate
from tests.app.serve.serving import ServerProcess, eventually

pytest.importorskip("ray.serve")
pytestmark = pytest.mark.slow
SECONDS, DEADLINE, BATCH = 5.0, 20.0, 8
LONG = "The old dog eats the bread that we see. " * 2  # work for the model, not for the wire
BODIES = [{"text": LONG + name, "beam": 4} for name in ("She sleeps.", "We eat.", "He sees us.")]


@pytest.fixture(scope="module")
def server(translator: Path) -> Iterator[ServerProcess]:
    ray = ("--ray", "--ray-workers", "2", "--queue", str(BATCH), "--batch", str(BATCH))
    with ServerProcess(str(translator), *ray, "--deadline-s", str(DEADLINE)) as running:
        yield running


def processes(server: ServerProcess) -> list[psutil.Process]:
    """The door, and its replicas."""
    door = psutil.Process(server.process.pid)
    below = door.children(recursive=True)
    return [door, *(one for one in below if "ServeReplica" in " ".join(one.cmdline()))]


def test_who_leaves_is_computed_for_no_longer(server: ServerProcess) -> None:
    """The counters are those of either replica, whichever answers."""
    with server.send({"text": [LONG * 8] * BATCH, "beam": 16}):
        eventually(lambda: server.metric("in_flight") > 0, seconds=30)
    gone = 'route="/v1/predict",status="499"'  # what lasts to its deadline would be 504
    eventually(lambda: gone in server.get("/metrics").text, seconds=30)
    for _ in range(6):
        assert server.metric("in_flight") == 0


def test_too_much_is_refused_clearly_and_nothing_breaks(server: ServerProcess) -> None:
    able = asyncio.run(measure_rate(server.port, BODIES, seconds=3))
    known = processes(server)
    before = [one.memory_info().rss for one in known]
    flood = hammer(server.port, BODIES, rate=10 * able, seconds=SECONDS)
    load = asyncio.run(asyncio.wait_for(flood, SECONDS + 3 * DEADLINE))
    grown = [one.memory_info().rss - past for one, past in zip(known, before, strict=True)]
    assert server.post("/v1/predict", BODIES[0]).status_code == 200
    print(f"\n{able:.0f}/s possible\n{load}\nmemory {[round(one / 1e6, 1) for one in grown]} MB")
    assert len(known) == 3
    assert {200, 429} <= set(load.seconds) <= {200, 429, 503, 504}
    assert load.count(504) <= 2 * BATCH, "no more than was being computed"
    assert load.count(429) + load.count(503) > load.count(200)
    assert load.without_retry_after == 0
    assert max(grown) < 50_000_000
    server.process.terminate()
    _, log = server.process.communicate(timeout=30)
    assert (server.process.returncode, log) == (0, "")
