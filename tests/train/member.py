"""One process of a run of many: trains the runs of a plan, one after another, in float64.

Started by torch.distributed.run with a corpus and a plan: a list of lives in JSON, each with a
`folder`, a `kind` of task and settings to `change`; `wrong` counts each process's own tokens only,
`kill` is the step at which the last process kills itself. `kills` are for each start by torchrun
either such a step or, below zero, that of a checkpoint during whose writing it does so, when
training has gone on; what the user is told is then added to `FOLDER.notes`.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from saccade.train import run
from saccade.train.devices.distributed import World
from saccade.train.events import Note
from saccade.train.fit import Trainer
from saccade.train.recipe import Recipe
from tests.train.small import small_language, small_recipe


def recipe_of(data: Path | str, kind: str, change: dict[str, Any]) -> Recipe:
    """No dropout and double precision: many processes are then one, but for rounding."""
    fixed = {"steps": 20, "precision": "float64", "save_every": 4, "validate_every": 10}
    if kind == "language":
        return small_language(**{**fixed, **change})
    recipe = small_recipe(data, **{**fixed, **change})
    return replace(recipe, model=replace(recipe.model, dropout=0.0))  # type: ignore[call-arg]


class Gone:
    """How far training has come, for the thread that writes."""

    step = 0


def die_writing(step: int) -> None:
    """Half of the last process's part is written, and others have written theirs."""
    from saccade.train.storage.split_checkpoint import SplitSaver

    complete = SplitSaver._complete

    def dying(self: Any, written: Any, temporary: Path, checkpoint: Any) -> None:
        rank = dist.get_rank()
        if checkpoint.step == step and rank == dist.get_world_size() - 1:
            written.result()
            (part,) = temporary.glob(f"shard-{rank + 1:05d}-*")
            os.truncate(part, part.stat().st_size // 2)
            while Gone.step <= step:
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        complete(self, written, temporary, checkpoint)

    SplitSaver._complete = dying  # type: ignore[method-assign]


def live(data: str, life: dict[str, Any]) -> None:
    total, advance = World.sum, Trainer.advance
    kills = dict(enumerate(life.get("kills", [])))
    kill = kills.get(int(os.environ["TORCHELASTIC_RESTART_COUNT"]), life.get("kill"))

    def wrong(self: World, value: float) -> float:
        return value * self.size if value > 1 and value.is_integer() else total(self, value)

    def dying(self: Trainer) -> Any:
        if self.step == kill and self.world.rank == self.world.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        Gone.step = self.step
        return advance(self)

    def note(event: object) -> None:
        if isinstance(event, Note) and kills:
            with Path(f"{life['folder']}.notes").open("a") as file:
                file.write(event.text + "\n")

    World.sum = wrong if life.get("wrong") else total  # type: ignore[method-assign]
    Trainer.advance = dying  # type: ignore[method-assign]
    if kill is not None and kill < 0:
        die_writing(-kill)
    recipe = recipe_of(data, life["kind"], life["change"])
    run.train(recipe, Path(life["folder"]), note)
    World.sum, Trainer.advance = total, advance  # type: ignore[method-assign]


@contextmanager
def stay(_: str) -> Iterator[World]:
    """For many runs in a row: processes that have parted cannot meet again."""
    yield World(dist.get_rank(), dist.get_world_size(), torch.device("cpu"))


def main() -> None:
    torch.set_num_threads(1)
    plan = json.loads(sys.argv[2])
    if len(plan) > 1:
        dist.init_process_group("gloo")
        run.join_world = stay
    for life in plan:
        live(sys.argv[1], life)
    if len(plan) > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
