"""`saccade plan transformer --data my-corpus/ --gpus 8`: what training would cost."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Generic

import tyro

from saccade.app.cli.options import parse, value_of
from saccade.app.cli.output import busy, print_json, say, show_help, show_table
from saccade.app.cli.train import HELP_ASKED, M, T, run_folder
from saccade.errors import ConfigError
from saccade.train.devices.hardware import Hardware
from saccade.train.plan import Plan, make_plan
from saccade.train.recipe import Recipe
from saccade.train.recipes import recipe
from saccade.train.settings import TrainSettings
from saccade.train.starting.start import adopted

HELP = """usage: saccade plan RECIPE [OPTIONS]

Tell what training would cost, before it starts: memory of each GPU, updates,
tokens, hours, disk. The data are read as for training; a few updates are made
on the device that is here, and thrown away.

  saccade plan transformer --data corpus/ --source en --target de
  saccade plan gpt2 --data book.txt --gpus 8 --gpu h200
                                   hours are then an estimate, and said to be
  saccade plan transformer --gpus 64 --rate 4000000
                                   tokens a second of all, if you know them

`saccade plan RECIPE --help` lists the options, which are those of training."""


@dataclass(frozen=True)
class PlanOptions(Generic[M, T]):
    """Options of a recipe, and what to plan for."""

    task: Annotated[T, tyro.conf.arg(name="")]
    model: M
    train: TrainSettings
    hardware: Annotated[Hardware, tyro.conf.arg(name="")]
    init: str = ""
    """What training would start from."""
    json: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Print the plan as JSON, in bytes."""


def plan_command(arguments: list[str]) -> int:
    """Plan the recipe that the first argument names, with the options that follow."""
    if not arguments or arguments[0] in HELP_ASKED:
        show_help(HELP)
        return 0 if arguments else 2
    name = arguments[0]
    if name.startswith("-"):
        raise ConfigError(f"name a recipe first: saccade plan RECIPE {' '.join(arguments)}")
    chosen, options = _parsed(name, recipe(name), arguments[1:])
    with busy("planning"):
        plan = make_plan(chosen, options.hardware)
    if options.json:
        print_json(vars(plan))
    else:
        _show(plan, options.hardware, chosen.task.budget_unit)
    return 0


def _parsed(name: str, chosen: Recipe, arguments: list[str]) -> tuple[Recipe, Any]:
    chosen = replace(chosen, init=value_of("--init", arguments) or chosen.init)
    if not HELP_ASKED & set(arguments):
        chosen = adopted(chosen, run_folder(str(Path("runs") / Path(name).stem)), start_over=True)
    kind: Any = PlanOptions[type(chosen.model), type(chosen.task)]  # type: ignore[misc]
    parts: dict[str, Any] = {"task": chosen.task, "model": chosen.model, "train": chosen.train}
    default = PlanOptions(**parts, hardware=Hardware(), init=chosen.init)
    about = f"What it costs to train: {chosen.about} ({chosen.system}: {chosen.lecture})."
    options = parse(
        kind, arguments, default=default, prog=f"saccade plan {name}", description=about
    )
    given = {"model": options.model, "task": options.task, "train": options.train}
    return replace(chosen, **given, init=options.init), options


def _show(plan: Plan, hardware: Hardware, unit: str) -> None:
    each = " of each GPU" if hardware.gpus > 1 else ""
    sent = plan.exchange == plan.gradients
    travels = "gradients on their way" if sent else "whole weights, to validate"
    show_table(
        [
            ("parameters", f"{plan.parameters:,}"),
            (f"memory{each}", _of(plan.memory, plan.memory_there)),
            ("  weights", _size(plan.weights)),
            *([("  their average", _size(plan.average))] if plan.average else []),
            ("  gradients", _size(plan.gradients)),
            *([(f"  {travels}", _size(plan.exchange))] if plan.exchange else []),
            ("  optimizer", _size(plan.optimizer)),
            ("  activations", _size(plan.activations)),
            ("updates", f"{plan.updates:,}, {plan.epochs:,.2f} epochs"),
            (unit, f"{plan.tokens:,}"),
            ("hours", "–" if plan.hours is None else f"{plan.hours:,.2f}"),
            ("  from", plan.hours_from),
            ("disk: checkpoints", f"{_size(plan.checkpoints)}, each {_size(plan.checkpoint)}"),
            ("disk: cache", "–" if plan.cache is None else _size(plan.cache)),
        ]
    )
    for note in plan.notes:
        say(note)


def _of(needed: int, there: int) -> str:
    return f"{_size(needed)} of {_size(there)}"


def _size(count: float) -> str:
    """Decimal, as disks and GPUs are sold."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:,.2f} {name}"
    return f"{count:,.0f} B"
