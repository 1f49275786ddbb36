"""Whether a command of a page is one: read by what reads it, with every option, and not run."""

import tomllib
from collections.abc import Callable, Iterable
from functools import cache, wraps
from importlib import import_module
from typing import Any
from unittest.mock import patch

from packaging.requirements import Requirement

from saccade.app.cli import COMMANDS
from saccade.app.cli.bench import BENCHES, bench_command
from saccade.app.cli.options import call
from saccade.app.cli.plan import plan_command
from saccade.app.cli.train import train_command
from saccade.app.cluster.predicting import predict_with_ray
from saccade.app.kinds import HOMES, kind_named
from saccade.errors import SaccadeError
from saccade.models import PRESETS
from saccade.tasks import kind_of
from saccade.train.recipes import RECIPES, recipe
from tests.docs.blocks import ROOT

OTHERS = {"curl", "find", "zcat", "head", "tail", "mkdir", "pytest"}
PLACEHOLDERS = ("…", "NAME", "RECIPE", "WHAT", "my-recipe.toml")
OF_EACH_KIND = list({kind_of(one.task): name for name, one in RECIPES.items()}.values())
OF_RUNS = {"predict": "predict", "eval": "evaluate", "look": "look"}


def check_program(given: tuple[str, ...]) -> None:
    """Fail if a program of a page does not exist, or would not understand its arguments."""
    name, *rest = given
    if name.endswith("saccade"):
        check_saccade(tuple(rest))
    elif name == "torchrun":
        check_saccade(given[given.index("saccade") + 1 :])
    elif name == "make":
        targets = [one for one in rest if "=" not in one]
        rules = (ROOT / "Makefile").read_text()
        assert all(f"\n{target}: " in rules for target in targets), given
    elif name == "pip":
        _check_install(rest)
    elif name.startswith("python") and rest[0] == "-c":
        compile(rest[1], "a command", "exec")
    else:
        assert name in OTHERS, f"{name} is no command that we know; say what the block is"


def _check_install(given: list[str]) -> None:
    assert given[0] == "install", given
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for one in given[1:]:
        asked = Requirement(one.replace(".", "saccade", 1) if one.startswith(".") else one)
        assert asked.name != "saccade" or asked.extras <= set(extras), one


@cache
def check_saccade(given: tuple[str, ...]) -> None:
    """Fail if `saccade` would refuse the options."""
    if not given or given[0] in ("--help", "--version", "COMMAND"):
        return
    name, *rest = given
    rest = [one for one in rest if one != "--help"]
    assert name in COMMANDS, f"there is no saccade {name}"
    if not rest or rest == ["…"]:  # a sentence speaks of the command
        return
    try:
        if name == "predict" and "--ray" in rest:
            call(_unrun(predict_with_ray), rest, prog="saccade predict")
        elif name in OF_RUNS:
            _check_of_run(OF_RUNS[name], rest)
        elif name == "train":
            _check_training(rest)
        elif name == "bench":
            _check_bench(rest)
        elif name == "plan":
            _check_plan(rest)
        else:
            module, _, function = COMMANDS[name].home.partition(":")
            call(_unrun(vars(import_module(module))[function]), rest, prog=f"saccade {name}")
    except SaccadeError as error:
        raise AssertionError(f"saccade {' '.join(given)}: {error}") from error


def _unrun(command: Callable[..., Any]) -> Callable[..., None]:
    """What has a command's signature, and does nothing."""

    @wraps(command)
    def nothing(*given: Any, **named: Any) -> None: ...

    return nothing


def _any_of(names: Iterable[str], rest: list[str], check: Callable[[list[str]], object]) -> None:
    """What is meant for any of several must do for one."""
    refused: list[SaccadeError] = []
    for name in names:
        try:
            check([name, *rest])
        except SaccadeError as error:
            refused.append(error)
        else:
            return
    raise refused[0]


def _check_training(rest: list[str]) -> None:
    name, *rest = rest
    names = OF_EACH_KIND if name in PLACEHOLDERS else [name]
    if rest and rest[-1] == "…" and not rest[-2:-1][0].startswith("--"):
        rest.pop()
    with (
        patch("saccade.app.cli.train.adopted", _same),
        patch("saccade.app.cli.train.run_training", _done),
        patch("saccade.app.cluster.training.train_on_ray", _done),
    ):
        _any_of(names, rest, train_command)


def _check_plan(rest: list[str]) -> None:
    with (
        patch("saccade.app.cli.plan.adopted", _same),
        patch("saccade.app.cli.plan.make_plan", _done),
        patch("saccade.app.cli.plan.print_json", _done),
        patch("saccade.app.cli.plan._show", _done),
    ):
        plan_command(rest)


def _same(chosen: Any, *given: Any, **named: Any) -> Any:
    return chosen


class _Outcome:
    signal = 0


def _done(*given: Any, **named: Any) -> Any:
    return _Outcome


def _check_bench(rest: list[str]) -> None:
    name, *rest = rest
    rest = ["cpu" if one == "cuda" else one for one in rest]  # which may not be here
    with (
        patch("saccade.app.cli.bench.run_races", _done),
        patch("saccade.app.cli.bench.run_look", _done),
    ):
        _any_of(BENCHES if name in PLACEHOLDERS else [name], rest, bench_command)


def _check_of_run(verb: str, rest: list[str]) -> None:
    """The options of the run's kind of work; of a run that is not named as a recipe, of any."""
    name = rest[0].removeprefix("runs/")
    if name.startswith("-"):
        rest = ["RUN", *rest]
    known = name in RECIPES or name in PRESETS
    kinds = {kind_of(recipe(name).task)} if known else HOMES

    def check(given: list[str]) -> None:
        kind, *options = given
        call(_unrun(getattr(kind_named(kind), verb)), options, prog=f"saccade {verb}")

    _any_of(kinds, rest, check)
