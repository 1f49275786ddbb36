"""A second replica of Ray comes under load and goes without it; meanwhile nobody is refused."""

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.serve import serving
from tests.app.serve.load import ask
from tests.app.serve.serving import ServerProcess, eventually

pytest.importorskip("ray.serve")
# What a server does within minutes, done within seconds.
HASTE = """
from saccade.app.cluster import serving
serving.PACE_S = dict(look_back_period_s=2.0, upscale_delay_s=1.0, downscale_delay_s=2.0)
"""
INTERVALS = ("HANDLE", "REPLICA")
BODY = {"text": "The old dog eats the bread that we see.", "beam": 4}
PATIENCE = 120.0  # seconds for a process to start on a busy machine


@pytest.fixture
def server(translator: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServerProcess]:
    for name in INTERVALS:
        monkeypatch.setenv(f"RAY_SERVE_{name}_AUTOSCALING_METRIC_PUSH_INTERVAL_S", "0.5")
    monkeypatch.setattr(serving, "COMMAND", f"{HASTE}{serving.COMMAND}")
    ray = ("--ray", "--ray-workers", "1", "--ray-most", "2", "--batch", "2", "--queue", "32")
    # Requests that mostly wait are a load that leaves the machine to the replica that starts.
    slow = ("--wait-ms", "500", "--deadline-s", str(PATIENCE))
    with ServerProcess(str(translator), *ray, *slow) as running:
        yield running


def replicas(server: ServerProcess) -> int:
    time.sleep(1)  # to ask of every process takes time that the one which starts would need
    below = psutil.Process(server.process.pid).children(recursive=True)
    return sum("ServeReplica" in _name(one) for one in below)


def answering(server: ServerProcess) -> int:
    """Replicas among whom a few questions were shared out; each knows when it was made."""
    return len({server.metric("batch_size_created") for _ in range(6)})


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""


class Askers(threading.Thread):
    """So many clients, each with one request after another, until told to stop."""

    def __init__(self, port: int, count: int) -> None:
        super().__init__()
        self.port, self.count, self.statuses = port, count, list[int]()
        self.enough = threading.Event()

    def run(self) -> None:
        asyncio.run(self._all())

    async def _all(self) -> None:
        await asyncio.gather(*(self._one() for _ in range(self.count)))

    async def _one(self) -> None:
        while not self.enough.is_set():
            self.statuses.append((await ask(self.port, "/v1/predict", BODY))[0])

    def __enter__(self) -> "Askers":
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.enough.set()
        self.join()


@pytest.mark.slow
def test_a_replica_comes_with_the_load_and_goes_with_it(server: ServerProcess) -> None:
    assert replicas(server) == 1
    with Askers(server.port, 12) as many:
        eventually(lambda: replicas(server) == answering(server) == 2, seconds=PATIENCE)
    with Askers(server.port, 1) as few:
        eventually(lambda: replicas(server) == 1, seconds=PATIENCE)
    assert set(many.statuses) == set(few.statuses) == {200}
    assert server.post("/v1/predict", BODY).status_code == 200
