"""Folders that appear at once and whole, or not at all; one process makes one while others wait.

What is in a folder is said by its index, which is sealed by its own SHA-256.
"""

import fcntl
import hashlib
import json
import logging
import os
import shutil
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from saccade.printable import printable

INDEX = "index.json"
TOLD_EVERY = 10.0  # seconds between lines of who waits
_ASKED_EVERY = 0.1  # seconds
_HOLDER = 200  # bytes that say who holds a lock
_log = logging.getLogger(__name__)  # of what takes a while; without a handler it goes to stderr

Opened = TypeVar("Opened")


def whole_folder(
    home: Path,
    opens: Callable[[Path], Opened],
    fill: Callable[[Path], dict[str, Any]],
    *,
    goes_on: bool = False,
) -> Opened:
    """What `opens` makes of a folder, which `fill` makes first if it is not there or is damaged.

    `fill` writes into an empty folder and gives the index. Where it `goes_on`, it is given what one
    that was killed has left, or what is damaged, instead. An OSError is the caller's.
    """
    ready = _opened(home, opens)
    if ready is not None:
        return ready
    home.parent.mkdir(parents=True, exist_ok=True)
    with _alone(home.with_suffix(".lock")):
        ready = _opened(home, opens)  # another process may have made it while we waited
        if ready is None:
            _make(home, fill, goes_on=goes_on)
    return opens(home) if ready is None else ready


def sealed_index(folder: Path) -> dict[str, Any]:
    """The index of a folder; a ValueError if it is damaged."""
    seal, _, raw = (folder / INDEX).read_bytes().partition(b"\n")
    if seal.decode() != hashlib.sha256(raw).hexdigest():
        raise ValueError(f"{folder / INDEX} is damaged, or of an earlier version")
    return json.loads(raw)


def sync(file: BinaryIO) -> None:
    """Have the disk hold what was written."""
    file.flush()
    os.fsync(file.fileno())


def _opened(home: Path, opens: Callable[[Path], Opened]) -> Opened | None:
    """The folder, if it is there and whole. One that was cut short is made anew."""
    try:
        return opens(home)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


@contextmanager
def _alone(lock: Path) -> Generator[None]:
    """Wait for whoever holds the lock, and say so; the kernel frees it when its holder dies."""
    no_link = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    with open(lock, "r+b", opener=lambda path, _: os.open(path, no_link, 0o666)) as file:
        _wait(file, lock)
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}"[:_HOLDER].encode())
        file.flush()
        yield


def _wait(file: BinaryIO, lock: Path) -> None:
    """Until the lock is ours; now and then it says for whom, and how much there is by then."""
    making, begun, told = lock.with_suffix(".tmp"), time.monotonic(), 0.0
    first = 0
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        waited = time.monotonic() - begun
        if not told or waited - told >= TOLD_EVERY:
            file.seek(0)
            holder = printable(file.read(_HOLDER).decode(errors="replace")) or "another process"
            size = _size(making)
            line = f"waiting for {holder}, which makes {printable(lock.with_suffix(''))}"
            if told:
                rate = max(0, size - first) / waited / 1e6
                line += f": {size / 1e6:,.0f} MB are there, {rate:,.1f} MB/s, {waited:,.0f} s"
            _log.warning("%s", line)
            first, told = (first, waited) if told else (size, max(waited, 1e-9))
        time.sleep(_ASKED_EVERY)


def _size(folder: Path) -> int:
    """Bytes of its files, as far as they can be seen: who writes them may take them away."""
    total = 0
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                total += path.stat().st_size
    return total


def _make(home: Path, fill: Callable[[Path], dict[str, Any]], *, goes_on: bool) -> None:
    temporary = home.with_suffix(".tmp")
    if not goes_on:
        shutil.rmtree(temporary, ignore_errors=True)  # left by one that was killed
    elif home.is_dir() and not temporary.exists():
        home.rename(temporary)
    temporary.mkdir(exist_ok=goes_on)
    try:
        index = fill(temporary)
        with (temporary / INDEX).open("wb") as file:
            raw = json.dumps(index).encode()
            file.write(hashlib.sha256(raw).hexdigest().encode() + b"\n" + raw)
            sync(file)
        shutil.rmtree(home, ignore_errors=True)  # what could not be opened
        temporary.replace(home)
    except BaseException as error:
        if isinstance(error, Exception) or not goes_on:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
