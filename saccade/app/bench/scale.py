"""`saccade bench scale`: a model as large as one GPU holds, and what it costs to split weights."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch

from saccade.app.bench.floor import Machine, language_flops
from saccade.app.bench.race import SACCADE, CheckedWork, Contender, Race, Tell, Workload
from saccade.app.bench.sentences import language_task
from saccade.app.bench.settings import Entries, RaceSettings
from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.models import PRESETS
from saccade.models.text.gpt import GptConfig
from saccade.tasks.base import Task
from saccade.train.devices.distributed import World, alone
from saccade.train.devices.sharding import WeightLayout
from saccade.train.events import Update
from saccade.train.fit import Trainer
from saccade.train.settings import TrainSettings

LARGE = {"cuda": "gpt2-xl", "cpu": "gpt-nano"}
SMALL = {"cuda": "gpt2", "cpu": "gpt-nano"}
ROWS = {"cuda": 32, "cpu": 2}
LONG = 2  # updates in a run of a large model: each takes a GPU most of a second
MOST_WORDS = 50_304  # of a preset that fits its vocabulary to the data


class LanguageJob(NamedTuple):
    """A batch of texts that is learnt again and again, and by what."""

    workload: Workload
    task: Task[Any]
    config: GptConfig


@dataclass(frozen=True, kw_only=True)
class ScaleBench(RaceSettings):
    """Measure training at size, on one device, as `saccade train` does it.

    First a large GPT whose blocks compute their activations again: tokens a second, memory, and as
    `floor` the share of the rate at which a large product runs here. Counted are 6 operations for
    each weight and token and those of attention, none for what is computed again. Beside it the
    same with weights split by FSDP2 over one process, which is all that FSDP2 costs but for
    traffic. Then an update of a smaller GPT, with whole weights and with split ones. × is to whole
    weights.

    Args:
        part: which of the two; both by default.
        model: a preset of a GPT, for the first; auto is gpt2-xl on a GPU.
        small: one for the second; auto is gpt2 on a GPU.
        rows: windows of a batch.
        window: tokens of a window; by default as many as the model can see.
        recomputed: the share of the first one's blocks that compute their activations again.
        compiled: measure the first also through torch.compile, which is slow to start.
        kept: measure the first also with all activations kept.
    """

    part: Literal["both", "large", "split"] = "both"
    model: str = "auto"
    small: str = "auto"
    rows: int | None = None
    window: int | None = None
    recomputed: float = 1.0
    compiled: bool = False
    kept: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, *(one for one in ("rows", "window") if vars(self)[one] is not None))
        TrainSettings(checkpoint_activations=self.recomputed)  # refuses what is no share
        for name in (self.model, self.small):
            if name != "auto" and not isinstance(PRESETS.get(name), GptConfig):
                known = ", ".join(n for n, one in PRESETS.items() if isinstance(one, GptConfig))
                raise ConfigError(f"{name!r} is no preset of a GPT; try one of: {known}")

    def results(self, machine: Machine, tell: Tell) -> Iterator[Race]:
        with alone(self.where) as world:
            if self.part != "split":
                yield from self.race_all([self._large(machine, world)], tell)
            if self.part != "large":
                yield from self.race_all([self._small(machine, world)], tell)

    def _large(self, machine: Machine, world: World) -> Entries:
        job = self._job(self.model, LARGE, machine, min(LONG, self.repeats))
        again: dict[str, Any] = {"checkpoint_activations": self.recomputed}
        variants: dict[str, tuple[dict[str, Any], bool]] = {
            "recomputed": (again, False),
            "recomputed-split": (again, True),
        }
        if self.compiled:
            variants["compiled"] = {**again, "compile": True}, False
        if self.kept:
            variants["kept"] = {}, False
        return self._entries(job, variants, world)

    def _small(self, machine: Machine, world: World) -> Entries:
        job = self._job(self.small, SMALL, machine, self.repeats)
        return self._entries(job, {"whole": ({}, False), "split": ({}, True)}, world)

    def _entries(
        self, job: LanguageJob, variants: dict[str, tuple[dict[str, Any], bool]], world: World
    ) -> Entries:
        """Each variant is what it changes in the settings, and whether weights are split."""
        losses: list[float] = []  # the first one's
        contenders = [
            Contender(f"{SACCADE}-{name}", self._updates(job, world, change, split, losses))
            for name, (change, split) in variants.items()
        ]
        workload = replace(job.workload, against=contenders[0].name, agreement="Δ loss")
        return workload, contenders

    def _job(
        self, name: str, fitting: dict[str, str], machine: Machine, repeats: int
    ) -> LanguageJob:
        kind = self.where.type
        name = fitting.get(kind, fitting["cpu"]) if name == "auto" else name
        config: Any = PRESETS[name]
        rows, window = self.rows or ROWS.get(kind, 2), self.window or config.longest
        words = min(config.vocabulary, MOST_WORDS)
        config = replace(config, vocabulary=words, longest=window, dropout=0.0)
        task = language_task(rows=rows, window=window, vocabulary=words, seed=self.seed)
        workload = Workload(
            title=f"one update of {name}: {rows} × {window:,} tokens, {words:,} words known, no "
            f"dropout, {self.arithmetic}",
            tokens=rows * window,
            floor_seconds=language_flops(config, rows, window) / machine.flops,
            against="",
            repeats=repeats,
        )
        return LanguageJob(workload, task, config)

    def _updates(
        self,
        job: LanguageJob,
        world: World,
        change: dict[str, Any],
        split: bool,
        losses: list[float],
    ) -> Callable[[], CheckedWork]:
        """The trainer's own updates; after the first, all must have the same loss."""

        def make() -> CheckedWork:
            precision = "bfloat16" if self.arithmetic == "bf16" else "float32"
            settings = TrainSettings(
                steps=1_000_000, learning_rate=1e-4, warmup=0, precision=precision, batches="mixed"
            )
            torch.manual_seed(self.seed)
            with self.where:  # fresh weights are drawn there
                model = job.config.build()
            layout = _split_alone(world) if split else None
            trainer = Trainer(model, job.task, replace(settings, **change), world, layout)
            trainer.update()
            second = trainer.update()
            assert isinstance(second, Update), "a loss that is not finite"
            losses.append(second.loss)

            def work() -> None:
                for _ in range(job.workload.repeats):
                    trainer.advance()
                trainer.settle()

            return CheckedWork(work, abs(second.loss - losses[0]))

        return make


def _split_alone(world: World) -> WeightLayout:
    from saccade.train.devices.split_weights import SplitWeights  # takes a second to import

    return SplitWeights(world, 1)
