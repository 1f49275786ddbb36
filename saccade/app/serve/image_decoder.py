"""Images of strangers are decoded in a process of their own, which may be killed.

Nothing can end a thread that decodes: a small file may keep it for minutes, and one that is made
for it may bring the process down. Here the kernel ends the process when its time is over, and
another takes its place. What comes back is plain bytes, never anything that is unpickled.
"""

import json
import signal
import subprocess
import sys
import threading
from multiprocessing.connection import Connection, Pipe
from typing import Any

import numpy as np
from jaxtyping import UInt8

from saccade.data.images.pixels import ImageError, decode_pixels

CHILD = "import sys; from saccade.app.serve import image_decoder as d; d.work(int(sys.argv[1]))"
SLACK = 2.0  # seconds that a process may need beyond its time, to be started or to be ended


class ImageDecoder:
    """One process, begun when it is first wanted and again whenever it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._wire: Connection | None = None

    def decode(
        self, raw: bytes, *, short: int, most: int, seconds: float
    ) -> UInt8[np.ndarray, "3 H W"]:
        """As `decode_pixels`; raises TimeoutError when it takes longer than so many seconds."""
        wire = self.begin()
        try:
            wire.send_bytes(json.dumps([short, most, seconds]).encode())
            wire.send_bytes(raw)
            if not wire.poll(seconds + SLACK):
                raise TimeoutError
            told = json.loads(wire.recv_bytes(100_000))
            if isinstance(told, str):
                raise ImageError("the image", told)
            return np.frombuffer(wire.recv_bytes(), np.uint8).reshape(told).copy()
        except (EOFError, OSError) as error:  # TimeoutError is an OSError
            slow = self.end() in (-signal.SIGALRM, -signal.SIGKILL)
            if slow:
                raise TimeoutError from error
            raise ImageError("the image", "damaged image: no decoder can read it") from error

    def begin(self) -> Connection:
        """The way to the process; starts it, unless it runs."""
        with self._lock:
            if self._wire is None:
                ours, theirs = Pipe()
                command = [sys.executable, "-c", CHILD, str(theirs.fileno())]
                # A session of its own: Ctrl-C is for the server, which finishes what it has begun.
                self._process = subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
                theirs.close()
                self._wire = ours
            return self._wire

    def end(self) -> int | None:
        """Kill the process; gives back how it ended, also if it had already."""
        with self._lock:
            process, wire, self._process, self._wire = self._process, self._wire, None, None
        if wire is not None:
            wire.close()
        if process is None:
            return None
        try:
            return process.wait(0.1)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def work(number: int) -> None:
    """What the process does, until nobody is at the other end. Its alarm is not to be caught."""
    wire: Any = Connection(number)
    try:
        while True:
            short, most, seconds = json.loads(wire.recv_bytes())
            raw = wire.recv_bytes()
            signal.setitimer(signal.ITIMER_REAL, seconds)
            try:
                pixels = decode_pixels(raw, short=short, most=most)
            except ImageError as error:
                wire.send_bytes(json.dumps(error.reason).encode())
            else:
                wire.send_bytes(json.dumps(pixels.shape).encode())
                wire.send_bytes(pixels.ravel().data)
            signal.setitimer(signal.ITIMER_REAL, 0)
    except (EOFError, OSError):
        return
