"""Ten times more than two replicas of Ray can do: as with a single server, nothing breaks."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.serve.load import hammer, measure_rate
from tests.app.serve.serving import ServerProcess

pytest.importorskip("ray.serve")
pytestmark = pytest.mark.slow
SECONDS, DEADLINE, BATCH = 5.0, 20.0, 8
ENOUGH = 400.0  # requests a second that are more than two replicas can answer
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


def test_too_much_is_refused_clearly_and_nothing_breaks(server: ServerProcess) -> None:
    able = asyncio.run(measure_rate(server.port, BODIES, seconds=3))
    known = processes(server)
    before = [one.memory_info().rss for one in known]
    rate = max(10 * able, ENOUGH)  # what is possible may have been measured beside other work
    flood = hammer(server.port, BODIES, rate=rate, seconds=SECONDS)
    load = asyncio.run(asyncio.wait_for(flood, SECONDS + 3 * DEADLINE))
    grown = [one.memory_info().rss - past for one, past in zip(known, before, strict=True)]
    assert server.post("/v1/predict", BODIES[0]).status_code == 200
    print(f"\n{able:.0f}/s possible\n{load}\nmemory {[round(one / 1e6, 1) for one in grown]} MB")
    assert len(known) == 3
    assert {200, 429} <= set(load.seconds) <= {200, 429, 503, 504}
    assert load.count(504) <= 2 * BATCH, "no more than was being computed"
    assert load.without_retry_after == 0
    assert max(grown) < 50_000_000
    server.process.terminate()
    _, log = server.process.communicate(timeout=30)
    assert (server.process.returncode, log) == (0, "")
