"""What is in files, as a number: SHA-256 of their bytes, remembered until somebody writes."""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

from saccade.data.files.file_state import recalled


def content_digest(paths: Iterable[Path], memory: Path) -> str:
    """Of all files in this order; `memory` is a folder, which need not be writable."""
    return hashlib.sha256(" ".join(_digest(path, memory) for path in paths).encode()).hexdigest()


def _digest(path: Path, memory: Path) -> str:
    name = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]
    return str(recalled(memory / f"digest-{name}.json", [path], lambda: _sha256(path)))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
