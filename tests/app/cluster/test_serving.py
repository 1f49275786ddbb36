"""Serving with replicas of Ray on this machine, for real: one is killed under load."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

pytest.importorskip("ray.serve")
pytestmark = pytest.mark.slow


@pytest.fixture
def served(translator: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = ["serve", str(translator), "--ray", "--ray-workers", "2", "--port", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", "saccade", *command, "--queue", "8", "--batch", "8"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        told = child.stdout.readline()
        found = re.search(r"serving translator at (http://127.0.0.1:\d+)", told)
        assert found
        yield found[1], child
        child.kill()


def replicas(child: subprocess.Popen[str]) -> list[psutil.Process]:
    of_it = psutil.Process(child.pid).children(recursive=True)
    return [one for one in of_it if "ServeReplica" in " ".join(one.cmdline())]


async def burst(url: str, count: int, kill: psutil.Process | None = None) -> Counter[Any]:
    """What became of so many requests at once, each with an answer to its own question."""
    limits = httpx.Limits(max_connections=count)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:

        async def ask(number: int) -> Any:
            text = f"the dog eats {number} ."
            answer = await client.post("/v1/predict", json={"text": text, "beam": 4})
            if answer.status_code == 200:
                return 200, answer.json()["predictions"][0]["source"] == text
            assert answer.headers["retry-after"]
            return answer.status_code, answer.json()["error"]["code"]

        waiting = [asyncio.create_task(ask(number)) for number in range(count)]
        if kill is not None:
            await asyncio.sleep(0.1)
            kill.send_signal(signal.SIGKILL)
        return Counter(await asyncio.gather(*waiting))


def test_no_accepted_request_is_lost_with_a_replica_and_overload_is_refused(
    served: tuple[str, subprocess.Popen[str]],
) -> None:
    url, child = served
    assert httpx.get(f"{url}/ready").json() == {"status": "ready"}
    assert httpx.get(f"{url}/info").json()["limits"]["queue"] == 8
    assert "<html" in httpx.get(url).text
    victims = replicas(child)
    assert len(victims) == 2
    became = asyncio.run(burst(url, 14, kill=victims[0]))
    assert became[200, True] >= 8
    assert set(became) <= {(200, True), (429, "busy")}
    became = asyncio.run(burst(url, 160))
    assert became[429, "busy"] >= 80
    assert set(became) <= {(200, True), (429, "busy")}
    os.kill(child.pid, signal.SIGINT)
    out, error = child.communicate(timeout=30)
    assert child.returncode == 0
    assert all("(raylet)" in line for line in out.splitlines()[:1]), "Ray tells of the kill"
    assert "Traceback" not in error
    assert all("a replica was lost" in line for line in error.splitlines() if line)
