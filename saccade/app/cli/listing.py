"""`saccade list` and `saccade describe`: what there is, and what it is made of."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Table

from saccade.app.cli.output import print_json, say, show_table, tell
from saccade.errors import ConfigError
from saccade.models import PRESETS, family
from saccade.train.devices.memory import count_parameters
from saccade.train.recipe import Recipe, save_recipe, shown, to_table
from saccade.train.recipes import MEASURED, RECIPES, recipe
from saccade.train.storage.folder import RunFolder, changes


def list_command(*, json: bool = False) -> None:
    """List every recipe under its lecture: what it is, and its size.

    Args:
        json: print as JSON.
    """
    rows: list[dict[str, Any]] = [
        {
            "recipe": name,
            "system": one.system,
            "about": one.about,
            "lecture": one.lecture,
            **_sizes(name, one),
        }
        for name, one in RECIPES.items()
    ]
    if json:
        print_json(rows)
        return
    console = Console(highlight=False)
    rows.sort(key=lambda row: (len(row["system"]), row["system"]))  # S9 before S10
    for system, lecture in dict.fromkeys((row["system"], row["lecture"]) for row in rows):
        console.print(f"{system}  {lecture}", style="bold", markup=False)
        console.print(_under([row for row in rows if row["system"] == system]))
    say(
        "Sizes are those on the built-in data; of recipes for data of your own, those with the "
        "largest vocabulary that they take."
    )


def _sizes(name: str, chosen: Recipe) -> dict[str, int]:
    """Parameters of a model as it is trained on the built-in data, or on some that fill it."""
    task = replace(chosen.task, data="your own") if name in MEASURED else chosen.task
    sizes: dict[str, Any] = task.fitted_sizes()
    return {"parameters": count_parameters(replace(chosen.model, **sizes)), **sizes}


def _under(rows: list[dict[str, Any]]) -> Table:
    """The recipes of a lecture, in columns that are as wide under every lecture."""
    table = Table(box=None, show_header=False, pad_edge=False)
    # A name must be whole to be typed.
    table.add_column(no_wrap=True, min_width=2 + max(map(len, RECIPES)))
    table.add_column(no_wrap=True, justify="right", min_width=6)
    table.add_column()
    for row in rows:
        count = row["parameters"]
        size = f"{count / 1e6:.1f} M" if count >= 1e6 else f"{count / 1e3:.0f} k"
        table.add_row(f"  {row['recipe']}", size, row["about"])
    return table


def describe_command(
    name: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="NAME")],
    /,
    *,
    toml: bool = False,
    json: bool = False,
) -> None:
    """Print the settings of a recipe or a model preset and its size, or what became of a run.

    Args:
        name: a recipe such as transformer, a preset such as gpt2, or the folder of a run.
        toml: print a recipe as TOML, to be changed and trained: saccade train my-recipe.toml.
        json: print as JSON.
    """
    if toml and json:
        raise ConfigError("--toml and --json are two forms; give one of them")
    run = RunFolder(Path(name))
    chosen = run.load_recipe() if run.config.is_file() else recipe(name)
    if toml:
        tell(save_recipe(chosen).rstrip("\n"))
        return
    if run.config.is_file():
        described = describe_run(run)
    elif name in PRESETS and name not in RECIPES:
        described = {"family": family(chosen.model), **vars(chosen.model)}
        described |= {"parameters": count_parameters(chosen.model), "trains as": chosen.about}
    else:
        described = {**to_table(chosen), **_sizes(name, chosen)}
    if json:
        print_json(described)
    else:
        _print_tables(described)


def describe_run(run: RunFolder) -> dict[str, Any]:
    """What a run was trained from, how far it has come, and how well it does."""
    chosen = run.load_recipe()
    alike = {n: list(changes(one, chosen)) for n, one in RECIPES.items()}
    nearest = min(alike, key=lambda name: len(alike[name]))
    state = run.newest_state()
    train = chosen.train
    if batches := state.get("batches_per_epoch"):
        train = train.definite(batches)
    return {
        "run": str(run.path),
        "about": chosen.about,
        "data": chosen.task.data or "built-in",
        "parameters": count_parameters(chosen.model),
        **{
            name: vars(chosen.model)[name]
            for name in sorted(chosen.task.fitted & vars(chosen.model).keys())
        },
        "step": f"{state.get('step', 0):,} of {train.steps:,}",
        "best": state.get("best", {}),
        "best step": state.get("best_step", 0),
        "weights": "model.safetensors" if run.weights.is_file() else "none yet",
        "nearest recipe": nearest,
        "unlike it": {name: new for name, _, new in alike[nearest]},
        "changed": {f"{one.name} (step {one.step:,})": one.new for one in chosen.changes},
    }


def _print_tables(described: dict[str, Any]) -> None:
    show_table(
        (name, shown(value) if name in ("parameters", "vocabulary") else str(value))
        for name, value in _flat("", described)
    )


def _flat(above: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings within settings by the names that the command line has for them."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{above}{name}.", value)
        else:
            yield f"{above}{name}", value
