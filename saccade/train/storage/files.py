"""Writing files so that a reader sees either the old or the new content, whatever happens.

Nothing is written through a symbolic link: a run folder may come from somebody else, and a link in
it would lead our writing to a file of their choice.
"""

import hashlib
import json
import math
import os
import shutil
import stat
from pathlib import Path
from typing import Any

from saccade.errors import CheckpointError, WriteError
from saccade.printable import printable
from saccade.regular import regular_file


def sync_folder(folder: Path) -> None:
    """Make renames and new names in a folder survive a power cut."""
    sync_file(folder)


def sync_file(path: Path) -> None:
    """Make what somebody has written to a file survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file through to the disk. What has its name already is not touched."""
    with open(path, "xb") as file:  # a link is there already, wherever it leads
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def clear(path: Path) -> None:
    """Take away what is at a path: a file, a folder with all in it, or a link but not its end."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def replace_file(path: Path, content: bytes) -> None:
    """Put new content in place of old at one instant; a link in its place gives way to a file."""
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        clear(temporary)  # left by one that was killed
        write_synced(temporary, content)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        if temporary.is_file():
            temporary.unlink(missing_ok=True)
        raise WriteError(explain(error, path, len(content))) from error


def open_own(path: Path | str, flags: int) -> int:
    """Open or make a file of ours; a link, a FIFO or a device in its place is refused."""
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if os.path.islink(path):
            raise WriteError(_linked(path)) from error
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise WriteError(f"{printable(path)} is not a regular file; remove it")
    return handle


def refuse_link(path: Path) -> None:
    """A folder of ours must be one, for what is in it gets deleted in time."""
    if path.is_symlink():
        raise WriteError(_linked(path))


def _linked(path: Path | str) -> str:
    return (
        f"{printable(path)} is a symbolic link, and a run is not written through one; remove it, "
        "or link the whole run folder instead"
    )


def explain(error: OSError, path: Path, size: int) -> str:
    """Why a file could not be written, with what it needs and what there is."""
    try:
        free = f", {shutil.disk_usage(path.parent).free:,} free"
    except OSError:
        free = ""
    return f"cannot write {printable(path)}: {error.strerror} ({size:,} bytes needed{free})"


def sha256(path: Path) -> str:
    """The digest of a file; some 1.7 GB a second on a processor that has instructions for it."""
    regular_file(path, CheckpointError)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{printable(path)} cannot be read: {error.strerror}") from error


def read_json(path: Path) -> Any:
    """Parse a small JSON file that nobody vouches for."""
    if regular_file(path, CheckpointError).st_size > 16 << 20:
        raise CheckpointError(f"{printable(path)} is too large to be what it should be")
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{printable(path)} cannot be read: {type(error).__name__} {printable(error)}"
        ) from error


def finite(values: dict[str, Any]) -> dict[str, Any]:
    """The values as JSON knows them: a number that is none is null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
