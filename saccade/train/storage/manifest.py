"""The SHA-256 of a run's files: a flipped bit is found before it is used.

`manifest.json` lists for each file the digests that it may have: one, or two while it is being
replaced. The new one is listed first and the old one taken off last, so that at every instant, and
after any kill, the file that is there is listed.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from saccade.errors import CheckpointError, RunError
from saccade.printable import printable
from saccade.train.storage.files import read_json, replace_file, sha256

MANIFEST = "manifest.json"
_LOOKS = 3  # training may replace a file between our look at the list and our look at the file


class Manifest:
    """What the files of a folder should hold. A run of an earlier version lists none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / MANIFEST

    def replace(self, name: str, content: bytes) -> None:
        """Put new content in place of old at one instant, and list it."""
        digest = hashlib.sha256(content).hexdigest()
        before, path = self._read(), self._folder / name
        known = before.get(name) or ([sha256(path)] if path.is_file() else [])
        during = {**before, name: list(dict.fromkeys([*known, digest]))}
        self._write(before, during)
        replace_file(path, content)
        self._write(during, {**before, name: [digest]})

    def adopt(self, name: str) -> None:
        """List a file as it is, unless it is listed."""
        before = self._read()
        self._write(before, {name: [sha256(self._folder / name)], **before})

    def check(self, *, leaving_out: str = "") -> None:
        """Refuse a folder in which a listed file holds anything else."""
        for name in self._read():
            if name != leaving_out and not self.sound(name):
                path = printable(self._folder / name)
                raise RunError(
                    f"{path} is damaged: its SHA-256 is not the one in {MANIFEST}; restore it from "
                    f"a backup, or, if you changed it yourself, remove {MANIFEST} beside it"
                )

    @property
    def names(self) -> set[str]:
        """What is listed, and the list itself."""
        return {MANIFEST, *self._read()}

    def sound(self, name: str) -> bool:
        """Whether a file is as it was written; one that is missing or not listed is."""
        path = self._folder / name
        for _ in range(_LOOKS):
            listed = self._read().get(name)
            if listed is None or not path.is_file() or sha256(path) in listed:
                return True
        return False

    def _write(self, before: dict[str, list[str]], now: dict[str, list[str]]) -> None:
        if now != before:
            replace_file(self.path, json.dumps(now, indent=2).encode())

    def _read(self) -> dict[str, list[str]]:
        path = self.path
        if not path.exists():
            return {}
        try:
            table: Any = read_json(path)
        except CheckpointError as error:
            raise RunError(f"{error}; remove it to go on without checking") from error
        sound = isinstance(table, dict) and all(
            Path(name).name == name and isinstance(digests, list) for name, digests in table.items()
        )
        if not sound:
            raise RunError(
                f"{printable(path)} is no list of files; remove it to go on without checking"
            )
        return table
