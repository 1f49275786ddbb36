"""Being asked to stop, and keeping others out: signals and the lock of a run folder."""

import fcntl
import os
import signal
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from saccade.errors import RunError, WriteError
from saccade.printable import printable
from saccade.train.files import open_own

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
    handle = _lock_file(folder)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = printable(os.pread(handle, 200, 0).decode(errors="replace"))
            raise RunError(
                f"{folder} is being trained by {owner or 'another process'}; wait for it, or use "
                "another --out"
            ) from error
        with suppress(OSError):  # without a byte free the lock holds all the same
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def _lock_file(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return open_own(folder / ".lock", os.O_RDWR)
    except OSError as error:
        raise WriteError(
            f"cannot write {printable(folder)}: {error.strerror}; choose another folder with --out"
        ) from error
