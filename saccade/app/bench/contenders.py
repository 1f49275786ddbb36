"""Who takes part in a race of updates: ours as `saccade train` has them, and plain training."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from saccade.app.bench.ours import mean_loss, updates
from saccade.app.bench.peers.plain_training import training_steps
from saccade.app.bench.race import SACCADE, CheckedWork, Contender
from saccade.app.bench.settings import RaceSettings
from saccade.tasks.base import Task


@dataclass(frozen=True)
class TrainContenders:
    """What all that train on one batch share: ours, and modules that give a mean loss."""

    bench: RaceSettings
    model: nn.Module
    task: Task[Any]
    batch: tuple[Tensor, ...]
    padding: float

    @cached_property
    def loss(self) -> float:
        return mean_loss(self.model, self.task, self.bench.where)

    def ours(self) -> list[Contender]:
        def make(compiled: bool) -> Callable[[], CheckedWork]:
            return lambda: CheckedWork(
                updates(self.bench, self.model, self.task, compiled=compiled)
            )

        return [
            Contender(SACCADE, make(False), padding=self.task.padding),
            Contender(f"{SACCADE}-compiled", make(True), padding=self.task.padding),
        ]

    def peer(self, name: str, build: Callable[[], nn.Module], needs: str = "") -> Contender:
        """A module whose forward pass gives the mean loss; compiled where its name says so."""

        def make() -> CheckedWork:
            with self.bench.where:  # fresh weights are drawn there
                model = build()
            differs = abs(model.eval()(*self.batch).item() - self.loss)
            run = torch.compile(model.train()) if name.endswith("compiled") else model.train()
            return CheckedWork(training_steps(self.bench, model, lambda: run(*self.batch)), differs)

        return Contender(name, make, needs, self.padding)
