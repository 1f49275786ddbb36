"""Learning curves: the held-out figure of runs over their updates, finished or not.

Nothing but the recipe and the diary of a run is needed. Runs that differ in nothing but the seed
are one curve, as far as all of them have come: their mean, with the smallest and the largest.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from saccade.app.compare.seeds import by_seed, shared_name
from saccade.errors import ConfigError, RunError
from saccade.printable import printable
from saccade.train.recipe import Recipe
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.log import read_validations


@dataclass(frozen=True)
class RunCurve:
    """A figure of one run after some of its updates, and whether more of it is better."""

    path: Path
    recipe: Recipe
    figure: str
    label: str
    higher: bool
    values: dict[int, float]


def read_curve(path: Path, *, figure: str) -> RunCurve:
    """The figure that decides, as a checkpoint says, or the one that is named."""
    run = RunFolder(path)
    recipe, deciding = run.load_recipe(), run.newest_state().get("deciding")
    if not run.metrics.exists():
        raise RunError(
            f"{printable(path)} has no metrics.jsonl, which tells how it learnt; copy the run again"
            " as a whole, or leave it out"
        )
    found = read_validations(run.metrics)
    known = ", ".join(
        printable(name) for name in dict.fromkeys(n for f in found.values() for n in f)
    )
    if not found:
        raise RunError(
            f"{printable(path)} has no validation in its metrics.jsonl yet; wait for the first, or "
            "leave it out"
        )
    figure = figure or (deciding["figure"] if deciding else "")
    if not figure:
        raise RunError(
            f"{printable(path)} has no checkpoint that says which figure decides; add --figure, "
            f"with one of: {known}"
        )
    values = {step: figures[figure] for step, figures in found.items() if figure in figures}
    if not values:
        raise ConfigError(
            f"{printable(path)} has no figure {printable(figure)!r} in its metrics.jsonl; there "
            f"are: {known}; name one with --figure"
        )
    if deciding is not None and deciding["figure"] == figure:
        return RunCurve(path, recipe, figure, deciding["label"], deciding["higher"], values)
    return RunCurve(path, recipe, figure, figure, figure not in recipe.task.lower_is_better, values)


class CurvePoint(NamedTuple):
    """After an update: the mean over some runs, the smallest and the largest."""

    update: int
    mean: float
    smallest: float
    largest: float


@dataclass(frozen=True)
class SeedCurve:
    """The curve of one run, or of several that differ in nothing but the seed."""

    runs: tuple[RunCurve, ...]

    @property
    def data(self) -> tuple[str, str]:
        task = self.runs[0].recipe.task
        return task.data, task.data_name

    @property
    def name(self) -> str:
        return shared_name(self.runs)

    @cached_property
    def points(self) -> list[CurvePoint]:
        """After every update that all of its runs were validated after."""
        shared = set.intersection(*(set(run.values) for run in self.runs))
        every = ((step, [run.values[step] for run in self.runs]) for step in sorted(shared))
        return [
            CurvePoint(step, math.fsum(values) / len(values), min(values), max(values))
            for step, values in every
        ]

    @property
    def best(self) -> CurvePoint:
        """The first of those with the best mean."""
        choose = max if self.runs[0].higher else min
        return choose(self.points, key=lambda point: point.mean)

    @property
    def last(self) -> CurvePoint:
        return self.points[-1]


def curves_of(runs: Iterable[RunCurve]) -> list[SeedCurve]:
    """Runs by what but the seed sets them apart, in the order of data and of the first of each."""
    curves = [SeedCurve(group) for group in by_seed(runs)]
    for curve in curves:
        if not curve.points:
            told = ", ".join(printable(run.path) for run in curve.runs)
            raise ConfigError(
                f"{told} differ in their seeds alone but have no validation after the same update; "
                "wait for one, or leave some out"
            )
    where = list(dict.fromkeys(curve.data for curve in curves))
    return sorted(curves, key=lambda curve: where.index(curve.data))
