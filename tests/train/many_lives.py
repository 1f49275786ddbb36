"""Runs of every kind that are killed at any instant: their processes count, and die at a count.

What is counted is an update that begins, what the user is told, a file that is written through to
the disk, and a name that is given or taken away. A process dies before it; and of the file that it
writes the last bytes are gone. Called with a folder, how many lives a run has and the names of
kinds; all lives of a kind are forked from the process that has trained it once undisturbed.
"""

import json
import os
import random
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from saccade.tasks.images import CACHE
from saccade.train import run
from saccade.train.fit import Trainer
from saccade.train.recipe import Recipe
from tests.train.every_kind import every_kind, hold_back_few

TORN = 5  # bytes


class Count:
    """Of all that has happened, and at which of them to die."""

    done, last = 0, 0

    @classmethod
    def happens(cls, file: int | None = None) -> None:
        cls.done += 1
        if cls.done != cls.last:
            return
        if file is not None:
            with suppress(OSError):  # it is open to be read: a folder
                os.ftruncate(file, max(os.fstat(file).st_size - TORN, 0))
        os.kill(os.getpid(), signal.SIGKILL)


def counted(home: Any, name: str, *, file: bool = False) -> None:
    real = vars(home)[name]

    def counting(*given: Any, **more: Any) -> Any:
        Count.happens(given[0] if file else None)
        return real(*given, **more)

    setattr(home, name, counting)


def live(recipe: Recipe, folder: Path, cache: Path) -> None:
    os.environ[CACHE] = str(cache)
    run.train(recipe, folder, lambda event: Count.happens())


def forked(recipe: Recipe, folder: Path, cache: Path, *, last: int) -> int:
    """The exit code of a life that is to end there."""
    child = os.fork()
    if not child:
        Count.done, Count.last = 0, last
        try:
            live(recipe, folder, cache)
        except BaseException as error:
            print(f"{folder}: {error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    folder, lives, names = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    torch.set_num_threads(1)
    hold_back_few(pytest.MonkeyPatch())
    for name in ("rename", "replace", "unlink", "rmdir"):
        counted(os, name)
    counted(os, "fsync", file=True)
    counted(shutil, "rmtree")
    counted(Trainer, "advance")
    for name in names:
        Count.done, recipe, home = 0, every_kind(name), folder / name
        live(recipe, home / "alone", home / "cache")
        total, drawn = Count.done, random.Random(name)
        kills = [drawn.randint(1, total // 2) for _ in range(lives)]
        ended = [forked(recipe, home / "killed", home / "other", last=last) for last in [*kills, 0]]
        (home / "ended.json").write_text(json.dumps(ended))


if __name__ == "__main__":
    main()
