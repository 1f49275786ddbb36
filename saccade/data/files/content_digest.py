"""What is in files, as a number: SHA-256 of their bytes, remembered for as long as nobody writes.

A file of gigabytes is hashed once. Its size, its times and its place on the disk say whether it may
have changed since; a file so young that another write could bear the same time is not remembered.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from saccade.data.files.whole_files import write_whole

YOUNG = 2_000_000_000  # nanoseconds: coarser than the clock of any file system in use


def content_digest(paths: Iterable[Path], memory: Path) -> str:
    """Of all files in this order; `memory` is a folder, which need not be writable."""
    return hashlib.sha256(" ".join(_digest(path, memory) for path in paths).encode()).hexdigest()


def state(paths: Iterable[Path]) -> list[Any]:
    """Changes whenever a file is written or replaced."""
    stats = [path.stat() for path in paths]
    return [[s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_dev] for s in stats]


def _digest(path: Path, memory: Path) -> str:
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]
    note, now, hashed_at = memory / f"digest-{name}.json", state([path]), time.time_ns()
    with suppress(OSError, ValueError, KeyError, TypeError):
        remembered = json.loads(note.read_bytes())
        if remembered["state"] == now:
            return str(remembered["sha256"])
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    _, written, changed, *_ = now[0]
    if max(written, changed) + YOUNG < hashed_at and state([path]) == now:
        _remember(note, {"state": now, "sha256": digest})
    return digest


def _remember(note: Path, what: dict[str, Any]) -> None:
    """As well as can be: where nothing can be written, the file is hashed again."""
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        write_whole(note, json.dumps(what).encode())
