"""Finished runs beside one another: what each cost, and how well it does.

Runs that differ in nothing but the seed are one point, with their mean and their range. What they
are set against is a function of a run, and so is the line that a point is on.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from saccade.app.compare.seeds import by_seed, shared_name
from saccade.errors import ConfigError, RunError
from saccade.models import series
from saccade.printable import printable
from saccade.train.devices.memory import count_parameters
from saccade.train.recipe import Recipe
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.scores import kept_scores

# Forward, and twice as much backward; a multiply-add is two operations.
PASSES, OPERATIONS = 3, 2


@dataclass(frozen=True)
class FinishedRun:
    """A run that has come to its end.

    `seen` is how many images or tokens it learnt from, each as often as it came; None: not counted.
    """

    path: Path
    recipe: Recipe
    parameters: int
    multiply_adds: int | None
    seen: int | None
    figure: str
    label: str
    value: float

    @property
    def compute(self) -> float | None:
        """Floating-point operations of the whole training, without those of validation.

        compute = 3 · 2 · multiply-adds · seen
        """
        if self.multiply_adds is None or self.seen is None:
            return None
        return float(PASSES * OPERATIONS * self.multiply_adds * self.seen)

    @property
    def start(self) -> str:
        """What its weights were before it learnt this."""
        return f"from {Path(self.recipe.init).name}" if self.recipe.init else "from nothing"


def read_finished(path: Path, *, figure: str, split: str) -> FinishedRun:
    """A run by its folder, and one of its figures: the one that decides, where none is named.

    With a `split`, of the scores that were kept of it; else of the best validation.
    """
    run = RunFolder(path)
    recipe, state = run.load_recipe(), run.newest_state()
    check_finished(run, recipe, state)
    deciding = state.get("deciding")
    if deciding is not None:
        figure = figure or deciding["figure"]
    if not figure:
        raise RunError(
            f"{printable(path)} is of an earlier version and does not say which figure decides; "
            f"add --figure, with one of: {', '.join(map(printable, state['best']))}"
        )
    found = kept_scores(run, split) if split else state["best"]
    value = found.get(figure)
    if not isinstance(value, int | float) or not math.isfinite(value):
        known = [name for name, one in found.items() if isinstance(one, int | float)]
        raise ConfigError(
            f"{printable(path)} has no figure {printable(figure)!r} of {split or 'validation'}; "
            f"there are: {', '.join(map(printable, known))}; name one with --figure"
        )
    label = deciding["label"] if deciding and deciding["figure"] == figure else figure
    return FinishedRun(
        path,
        recipe,
        count_parameters(recipe.model),
        recipe.task.multiply_adds(recipe.model),
        state.get("seen"),
        figure,
        label,
        float(value),
    )


def check_finished(run: RunFolder, recipe: Recipe, state: dict[str, Any]) -> None:
    """Refuse a run that has not come to its end; `state` is that of its newest checkpoint."""
    if not state.get("best"):
        raise RunError(
            f"{printable(run.path)} has no checkpoint with a validation, which says how far it has "
            "come; train it further, copy the run again as a whole, or leave it out"
        )
    step, patience = state["step"], recipe.train.patience
    steps = recipe.train.definite(state.get("batches_per_epoch", 1)).steps
    if step < steps and not (patience and state.get("stale", 0) >= patience):
        raise RunError(
            f"{printable(run.path)} is at step {step:,} of {steps:,}: only finished runs compare; "
            "train it to its end, or leave it out"
        )
    if state.get("owed"):
        raise RunError(
            f"{printable(run.path)} still owes its last validation, which was broken off; the "
            "command that trained it makes it up"
        )


@dataclass(frozen=True)
class SeedGroup:
    """One run, or several that differ in nothing but the seed.

    It is set `against` one of the sizes, on a line with all that are alike by one of the series.
    """

    runs: tuple[FinishedRun, ...]
    against: str = "compute"
    by: str = "family"

    @property
    def series(self) -> str:
        return SERIES[self.by](self.runs[0])

    @property
    def data(self) -> tuple[str, str]:
        """Which they learnt, however many of their labels: where they are, and their name."""
        task = self.runs[0].recipe.task
        task = task.with_every_label() if self.against == "labels" else task
        return task.data, task.data_name

    @property
    def name(self) -> str:
        """What the folders of its runs have in common."""
        return shared_name(self.runs)

    @property
    def values(self) -> list[float]:
        return [run.value for run in self.runs]

    @property
    def mean(self) -> float:
        return math.fsum(self.values) / len(self.runs)

    def size(self, of: str) -> float | None:
        """The mean over its runs of what they are set against; None where one has not counted."""
        every = [SIZES[of](run) for run in self.runs]
        known = [one for one in every if one is not None]
        return sum(known) / len(known) if len(known) == len(every) else None


SIZES: dict[str, Callable[[FinishedRun], float | None]] = {
    "compute": lambda run: run.compute,
    "multiply-adds": lambda run: run.multiply_adds,
    "parameters": lambda run: run.parameters,
    "seen": lambda run: run.seen,
    "labels": lambda run: run.recipe.task.labelled_items,
}
SERIES: dict[str, Callable[[FinishedRun], str]] = {
    "family": lambda run: series(run.recipe.model),
    "start": lambda run: run.start,
}


def points_of(
    runs: Iterable[FinishedRun], *, against: str = "compute", by: str = "family"
) -> list[SeedGroup]:
    """Runs by what but the seed sets them apart, in the order of data, series and size."""
    points = [SeedGroup(group, against, by) for group in by_seed(runs)]
    where = list(dict.fromkeys(point.data for point in points))
    return sorted(points, key=lambda p: (where.index(p.data), p.series, _sizes(p), p.name))


def _sizes(point: SeedGroup) -> tuple[float, ...]:
    return tuple(point.size(name) or 0.0 for name in (point.against, "parameters"))
