"""One process of a run of many: trains the runs of a plan, one after another, in float64.

Started by torch.distributed.run with a corpus and a plan: a list of lives in JSON, each with a
`folder`, a `kind` of task and settings to `change`; `wrong` counts each process's own tokens only,
`kill` is the step at which the last process kills itself.
"""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from small import small_language, small_recipe

from saccade.train import run
from saccade.train.distributed import World
from saccade.train.fit import Trainer
from saccade.train.recipe import Recipe


def recipe_of(data: Path | str, kind: str, change: dict[str, Any]) -> Recipe:
    """No dropout and double precision: many processes are then one, but for rounding."""
    fixed = {"steps": 20, "precision": "float64", "save_every": 4, "validate_every": 10}
    if kind == "language":
        return small_language(**{**fixed, **change})
    recipe = small_recipe(data, **{**fixed, **change})
    return replace(recipe, model=replace(recipe.model, dropout=0.0))  # type: ignore[call-arg]


def live(data: str, life: dict[str, Any]) -> None:
    total, advance = World.sum, Trainer.advance

    def wrong(self: World, value: float) -> float:
        return value * self.size if value > 1 and value.is_integer() else total(self, value)

    def dying(self: Trainer) -> Any:
        if self.step == life.get("kill") and self.world.rank == self.world.size - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self)

    World.sum = wrong if life.get("wrong") else total  # type: ignore[method-assign]
    Trainer.advance = dying  # type: ignore[method-assign]
    recipe = recipe_of(data, life["kind"], life["change"])
    run.train(recipe, Path(life["folder"]), lambda event: None)
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
