"""Being asked to stop, and keeping others out: signals and the lock of a run folder."""

import fcntl
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TypeVar

from saccade.errors import RunError, WriteError
from saccade.printable import printable
from saccade.train.storage.files import open_own

Made = TypeVar("Made")
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


LOCK = ".lock"
PATIENCE = 0.5  # seconds; whoever pressed Ctrl-C waits no longer than a second


class Stopped(KeyboardInterrupt):
    """A signal that came where there is nothing to save."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.signal = number


class StopRequest:
    """What a first signal does: it raises `Stopped`; while `saving`, it is only remembered.

    Training then saves at the next step. A second signal ends at once, and nothing is lost by that
    either: checkpoints are whole at every instant.
    """

    def __init__(self) -> None:
        self.signal, self.saving, self.told = 0, False, False
        self._repeatable = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signal:
            leave(number)
        self.signal = number
        if self._repeatable or not self.saving:
            raise Stopped(number)

    def unless_asked(self, work: Callable[[], Made], *, wanted: bool) -> Made | None:
        """What `work` makes, which changes nothing; with `wanted`, None where a signal ended it."""
        if wanted and self.signal:
            return None
        try:
            try:
                self._repeatable = wanted
                return work()
            finally:
                self._repeatable = False
        except Stopped:
            if not (wanted and self.saving):
                raise
            return None


def leave(number: int) -> None:
    """End this process now, with a cursor that can be seen; an orderly end may take seconds."""
    if sys.stderr.isatty():
        os.write(sys.stderr.fileno(), b"\x1b[?25h\n")
    os._exit(128 + number)


@contextmanager
def stop_on_signals() -> Generator[StopRequest, None, None]:
    """Have SIGTERM, SIGINT and SIGHUP obeyed while the block runs; only a main thread hears them.

    One that the process was started to ignore, as `nohup` does with SIGHUP, stays ignored.
    """
    request = StopRequest()
    main = threading.current_thread() is threading.main_thread()
    heard = [n for n in SIGNALS if main and signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, request) for number in heard}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def obey_within_a_second() -> Generator[StopRequest, None, None]:
    """For a whole command: signals stop it even in a call that does not come back to Python.

    Such as an import, or the training of a tokenizer. Another thread hears of each signal too, and
    ends the process where the first has not; what is `saving`, and handlers of others, it leaves
    alone. Whoever says that the command was stopped sets `told`.
    """
    with stop_on_signals() as request:
        if threading.current_thread() is not threading.main_thread():
            yield request
            return
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        threading.Thread(target=_leave_late, args=(reading, request), daemon=True).start()
        try:
            yield request
        finally:
            signal.set_wakeup_fd(before)
            os.close(writing)


def _leave_late(reading: int, request: StopRequest) -> None:
    while heard := os.read(reading, 1):
        handler = signal.getsignal(heard[0])
        if isinstance(handler, StopRequest) and not handler.saving:
            time.sleep(PATIENCE)
            if not request.told:
                os.write(sys.stderr.fileno(), b"saccade: stopped\n")
            leave(heard[0])
    os.close(reading)


@contextmanager
def locked(folder: Path) -> Generator[bool, None, None]:
    """Own a run folder, and say whether it was made for that.

    The kernel lets go of the lock even after kill -9.
    """
    made = not folder.exists()
    handle = _own(folder)
    try:
        with suppress(OSError):  # without a byte free the lock holds all the same
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"pid {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield made
    finally:
        os.close(handle)


def _own(folder: Path) -> int:
    while True:
        handle = _lock_file(folder)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = printable(os.pread(handle, 200, 0).decode(errors="replace"))
            os.close(handle)
            raise RunError(
                f"{folder} is being trained by {owner or 'another process'}; wait for it, or use "
                "another --out"
            ) from error
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), (folder / LOCK).stat()):
                return handle
        os.close(handle)  # its last owner has just taken the folder away


def _lock_file(folder: Path) -> int:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return open_own(folder / LOCK, os.O_RDWR)
    except OSError as error:
        raise WriteError(
            f"cannot write {printable(folder)}: {error.strerror}; choose another folder with --out"
        ) from error
