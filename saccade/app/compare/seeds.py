"""Runs that differ in nothing but the seed: which they are, and what they are called together."""

import json
import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from saccade.errors import ConfigError
from saccade.printable import printable
from saccade.train.recipe import Recipe, to_table
from saccade.train.settings import HARMLESS

_SEED_OF_NAME = re.compile(r"(?:[-_.= ]+(?:seed|run|s)[-_.= ]*\d*)?[-_.= ]*$")


@runtime_checkable
class ComparedRun(Protocol):
    """A run, and the figure by which it is compared."""

    @property
    def path(self) -> Path: ...

    @property
    def recipe(self) -> Recipe: ...

    @property
    def figure(self) -> str: ...


R = TypeVar("R", bound=ComparedRun)


def by_seed(runs: Iterable[R]) -> list[tuple[R, ...]]:
    """Runs by what but the seed sets them apart, each group in the order of its seeds."""
    every = list(runs)
    figures = {run.figure: run.path for run in every}
    if len(figures) > 1:
        told = ", ".join(f"{printable(name)} ({printable(at)})" for name, at in figures.items())
        raise ConfigError(
            f"the runs are decided by different figures: {told}; compare runs of one kind, or name "
            "a --figure that all have"
        )
    groups: dict[str, list[R]] = {}
    for run in every:
        group = groups.setdefault(_key(run.recipe), [])
        for other in group:
            if other.recipe.train.seed == run.recipe.train.seed:
                raise ConfigError(
                    f"{printable(other.path)} and {printable(run.path)} are one run twice: settings"
                    " and seed are equal; leave one out"
                )
        group.append(run)
    return [
        tuple(sorted(group, key=lambda run: run.recipe.train.seed)) for group in groups.values()
    ]


def _key(recipe: Recipe) -> str:
    """Equal for runs that differ in nothing but the seed."""
    table = to_table(recipe)
    harmless = {*HARMLESS, "seed"}
    how = {name: value for name, value in table["train"].items() if name not in harmless}
    parts = table["model"], table["task"], how, table.get("changes"), table.get("init")
    return json.dumps(parts, sort_keys=True, default=str)


def shared_name(runs: Sequence[ComparedRun]) -> str:
    """What the folders of some runs have in common."""
    first, *others = (run.path.resolve().name for run in runs)
    if not others:
        return first
    columns = takewhile(lambda marks: len(set(marks)) == 1, zip(first, *others))
    return _SEED_OF_NAME.sub("", "".join(marks[0] for marks in columns)) or first


def data_titles(data: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What each of the data is called: its name, or where it lies if another has the name too."""
    every = dict.fromkeys(data)
    names = [name for _, name in every]
    return {
        (place, name): name if names.count(name) == 1 else f"{name}: {printable(place)}"
        for place, name in every
    }
