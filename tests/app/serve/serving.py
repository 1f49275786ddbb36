"""Servers for tests: in a thread of this process, or in a process of their own."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import httpx

from saccade.app.serve.app import Service
from saccade.app.serve.listening import bind
from saccade.app.serve.runs import ServedRun, find_runs
from saccade.app.serve.server import SteadyServer
from saccade.app.serve.settings import ServeSettings

COMMAND = """
import sys, tyro
from saccade.app.cli.serve import serve_command
from saccade.errors import SaccadeError
try:
    tyro.cli(serve_command, args=sys.argv[1:], config=(tyro.conf.OmitArgPrefixes,))
except SaccadeError as error:
    print(f"saccade: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
"""


def eventually(holds: Callable[[], bool], *, seconds: float = 10.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def refusal(wire: socket.socket) -> tuple[int, str]:
    """Status and error code of the answer that comes over a connection."""
    answer = HTTPResponse(wire)
    answer.begin()
    error = json.loads(answer.read())
    assert answer.headers["X-Request-Id"] == error["id"]
    return answer.status, error["error"]["code"]


class Client:
    """Asks a server on loopback, each time over a new connection."""

    def __init__(self, port: int) -> None:
        self.port, self.url = port, f"http://127.0.0.1:{port}"
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self.http = httpx.Client(base_url=self.url, limits=limits, timeout=60, trust_env=False)

    def get(self, path: str, **options: Any) -> httpx.Response:
        return self.http.get(path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return self.http.post(path, json=body, **options)

    def predict(self, text: str | list[str], **fields: Any) -> httpx.Response:
        return self.post("/v1/predict", {"text": text, **fields})

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        found = re.findall(
            rf"^saccade_{name}(?:\{{[^}}]*\}})? ([0-9.e+-]+)$", self.get("/metrics").text, re.M
        )
        return sum(map(float, found))

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=20)

    def raw(self, data: bytes) -> tuple[int, str]:
        """Status and error code of the answer to these bytes."""
        with self.connect() as wire:
            wire.sendall(data)
            return refusal(wire)

    def send(self, body: dict[str, Any], path: str = "/v1/predict") -> socket.socket:
        """A request whose answer is not waited for."""
        wire, data = self.connect(), json.dumps(body).encode()
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        wire.sendall(head.encode() + b"Content-Length: %d\r\n\r\n" % len(data) + data)
        return wire


class LocalServer(Client):
    """The whole server on a real port, in a thread; faults can be put into its runs."""

    def __init__(self, paths: list[Path], *, token: str = "", **settings: Any) -> None:
        self.runs: dict[str, ServedRun] = find_runs(tuple(map(str, paths)))
        self.service = Service(self.runs, ServeSettings(**settings), token=token)
        self.server = SteadyServer(self.service, device="cpu")
        listener = bind("127.0.0.1", 0)
        super().__init__(listener.getsockname()[1])
        self.thread = threading.Thread(target=lambda: self.server.run(sockets=[listener]))
        self.thread.start()

    def __enter__(self) -> "LocalServer":
        eventually(lambda: self.get("/ready").status_code == 200, seconds=60)
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()
        if self.thread.is_alive() and not self.service.batcher.stopping:
            self.server.handle_exit(signal.SIGTERM, None)
        self.thread.join(30)
        assert not self.thread.is_alive()


class ServerProcess(Client):
    """`saccade serve` as a user starts it."""

    def __init__(self, *arguments: str, files: int = 1024) -> None:
        limited = ("sh", "-c", 'ulimit -n "$0" && exec "$@"', str(files), sys.executable)
        self.process = subprocess.Popen(
            [*limited, "-c", COMMAND, *arguments, "--port", "0", "--device", "cpu"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.greeting = self.process.stdout.readline()
        found = re.search(r"http://[\d.]+:(\d+)", self.greeting)
        if found is None:
            raise AssertionError(f"it did not start: {self.process.communicate()[1]}")
        super().__init__(int(found[1]))

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, *error: object) -> None:
        self.http.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
