"""Writing files so that a reader sees either the old or the new content, whatever happens."""

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from saccade.errors import CheckpointError, WriteError


def sync_folder(folder: Path) -> None:
    """Make renames and new names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path, content: bytes) -> None:
    """Write a new file through to the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """Put new content in place of old at one instant."""
    temporary = path.with_name(f".tmp-{path.name}")
    try:
        write_synced(temporary, content)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise WriteError(explain(error, path, len(content))) from error


def explain(error: OSError, path: Path, size: int) -> str:
    """Why a file could not be written, with what it needs and what there is."""
    try:
        free = f", {shutil.disk_usage(path.parent).free:,} free"
    except OSError:
        free = ""
    return f"cannot write {path}: {error.strerror} ({size:,} bytes needed{free})"


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_json(path: Path) -> Any:
    """Parse a small JSON file that nobody vouches for."""
    try:
        if path.stat().st_size > 16 << 20:
            raise CheckpointError(f"{path} is too large to be what it should be")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} cannot be read: {type(error).__name__} {error}") from error
