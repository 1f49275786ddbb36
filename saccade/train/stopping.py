"""Being asked to stop, and keeping others out: signals and the lock of a run folder."""

import fcntl
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TextIO

from saccade.errors import RunError, WriteError

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class StopRequest:
    """Set by the first signal; training then saves at the next step. A second signal ends at once.

    Nothing is lost by that either: checkpoints are whole at every instant.
    """

    def __init__(self) -> None:
        self.signal = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            os._exit(128 + number)
        self.signal = number


@contextmanager
def stop_on_signals() -> Generator[StopRequest, None, None]:
    """Turn SIGTERM, SIGINT and SIGHUP into a request while the block runs.

    One that the process was started to ignore, as `nohup` does with SIGHUP, stays ignored.
    """
    request = StopRequest()
    heard = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, request) for number in heard}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def locked(folder: Path) -> Generator[None, None, None]:
    """Own a run folder. The kernel lets go of the lock even after kill -9."""
    with _lock_file(folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            owner = file.read().strip() or "another process"
            raise RunError(
                f"{folder} is being trained by {owner}; wait for it, or use another --out"
            ) from error
        file.seek(0)
        file.truncate()
        file.write(f"pid {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield


def _lock_file(folder: Path) -> TextIO:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / ".lock").open("a+")
    except OSError as error:
        raise WriteError(
            f"cannot write {folder}: {error.strerror}; choose another folder with --out"
        ) from error
