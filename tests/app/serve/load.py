"""Load for a server from this process: as many requests a second as wanted, at little cost."""

import asyncio
import json
import random
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

Bodies = list[dict[str, Any]]


@dataclass
class Load:
    """What came back, by status: how long each answer took, in seconds.

    `late` is how much later than asked for this process itself woke up: what others on the machine
    cost, whatever the server does.
    """

    seconds: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    without_retry_after: int = 0
    health: list[float] = field(default_factory=list[float])
    late: list[float] = field(default_factory=list[float])

    def add(self, answer: tuple[int, bytes], seconds: float) -> None:
        status, head = answer
        self.seconds.setdefault(status, []).append(seconds)
        if status in (429, 503) and b"retry-after: " not in head:
            self.without_retry_after += 1

    def count(self, status: int) -> int:
        return len(self.seconds.get(status, []))

    def percentile(self, status: int, share: float) -> float:
        return _percentile(self.seconds[status], share)

    @property
    def noise(self) -> float:
        """How late nearly all of what happens here may be, for no fault of the server's."""
        return _percentile(self.late, 0.99)

    def __str__(self) -> str:
        lines = [
            f"{status}: {len(seconds)}, median {statistics.median(seconds) * 1e3:.0f} ms, "
            f"99 % {self.percentile(status, 0.99) * 1e3:.0f} ms, most {max(seconds) * 1e3:.0f} ms"
            for status, seconds in sorted(self.seconds.items())
        ]
        health = f"/health: {len(self.health)}, most {max(self.health) * 1e3:.0f} ms"
        return "\n".join([*lines, health, f"own delay: 99 % {self.noise * 1e3:.0f} ms"])


def _percentile(seconds: list[float], share: float) -> float:
    ordered = sorted(seconds)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


async def ask(port: int, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
    """Status and headers of the answer, over a connection of its own."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        data = b"" if body is None else json.dumps(body).encode()
        kind = "GET" if body is None else "POST"
        head = f"{kind} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        writer.write(head.encode() + data)
        answer = await reader.readuntil(b"\r\n\r\n")
        await reader.read()
        return int(answer.split()[1]), answer
    finally:
        writer.close()


async def hammer(port: int, bodies: Bodies, *, rate: float, seconds: float) -> Load:
    """So many requests a second, whether or not the ones before are answered."""
    load, end, tasks = Load(), time.monotonic() + seconds, set[asyncio.Task[None]]()

    async def one(body: dict[str, Any]) -> None:
        begun = time.monotonic()
        load.add(await ask(port, "/v1/predict", body), time.monotonic() - begun)

    async def watch() -> None:
        while time.monotonic() < end:
            begun = time.monotonic()
            assert (await ask(port, "/health"))[0] == 200
            load.health.append(time.monotonic() - begun)
            await asyncio.sleep(0.2)

    async def listen() -> None:
        while time.monotonic() < end:
            begun = time.monotonic()
            await asyncio.sleep(0.01)
            load.late.append(time.monotonic() - begun - 0.01)

    watchers = [asyncio.create_task(watch()), asyncio.create_task(listen())]
    next_at = time.monotonic()
    while next_at < end:
        tasks.add(asyncio.create_task(one(random.choice(bodies))))
        next_at += 1 / rate
        await asyncio.sleep(max(0, next_at - time.monotonic()))
    await asyncio.gather(*watchers, *tasks)
    return load


async def measure_rate(port: int, bodies: Bodies, *, seconds: float) -> float:
    """Requests a second that the server answers when it is never idle.

    On a slow machine it may refuse some even so: those are asked again.
    """
    begun, done = time.monotonic(), 0

    async def one() -> None:
        nonlocal done
        while time.monotonic() < begun + seconds:
            status, _ = await ask(port, "/v1/predict", random.choice(bodies))
            assert status in (200, 429, 503)
            done += status == 200
            await asyncio.sleep(0 if status == 200 else 0.1)

    await asyncio.gather(*(one() for _ in range(32)))
    return max(1, done) / (time.monotonic() - begun)
