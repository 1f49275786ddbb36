"""`saccade list` and `saccade describe`: what there is, and what it is made of."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import tyro
from rich.console import Console
from rich.table import Table

from saccade.app.cli.output import print_json, show_table, tell
from saccade.config import ModelConfig
from saccade.models import PRESETS, family, preset
from saccade.train.recipe import save_recipe, to_table
from saccade.train.recipes import RECIPES, recipe


def list_command(*, json: bool = False) -> None:
    """List every recipe under its lecture: what it is, and its size with 8,000 words.

    Args:
        json: print as JSON.
    """
    rows: list[dict[str, Any]] = [
        {
            "recipe": name,
            "system": one.system,
            "about": one.about,
            "lecture": one.lecture,
            "parameters": parameters(one.model),
        }
        for name, one in RECIPES.items()
    ]
    if json:
        print_json(rows)
        return
    console = Console(highlight=False)
    for system, lecture in dict.fromkeys((row["system"], row["lecture"]) for row in rows):
        console.print(f"{system}  {lecture}", style="bold", markup=False)
        console.print(_under([row for row in rows if row["system"] == system]))


def _under(rows: list[dict[str, Any]]) -> Table:
    """The recipes of a lecture, in columns that are as wide under every lecture."""
    table = Table(box=None, show_header=False, pad_edge=False)
    # A name must be whole to be typed.
    table.add_column(no_wrap=True, min_width=2 + max(map(len, RECIPES)))
    table.add_column(no_wrap=True, justify="right", min_width=6)
    table.add_column()
    for row in rows:
        size = f"{row['parameters'] / 1e6:.1f} M"
        table.add_row(f"  {row['recipe']}", size, row["about"])
    return table


def describe_command(
    name: tyro.conf.Positional[str], /, *, toml: bool = False, json: bool = False
) -> None:
    """Print the settings of a recipe or of a model preset, and its size.

    Args:
        name: a recipe such as transformer, or a preset such as gpt2 or transformer-base.
        toml: print a recipe as TOML, to be changed and trained: saccade train my-recipe.toml.
        json: print as JSON.
    """
    if name in PRESETS and name not in RECIPES:
        config = preset(name)
        described: dict[str, Any] = {"family": family(config), **vars(config)}
        described["parameters"] = parameters(config)
    else:
        chosen = recipe(name)
        if toml:
            tell(save_recipe(chosen).rstrip("\n"))
            return
        described = {**to_table(chosen), "parameters": parameters(chosen.model)}
    if json:
        print_json(described)
    else:
        _print_tables(described)


def parameters(config: ModelConfig) -> int:
    """How many weights a model has, counted without making them."""
    with torch.device("meta"):
        return sum(p.numel() for p in replace(config).build().parameters())


def _print_tables(described: dict[str, Any]) -> None:
    show_table(
        (name, f"{value:,}" if name == "parameters" else str(value))
        for name, value in _flat("", described)
    )


def _flat(above: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings within settings by the names that the command line has for them."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat(f"{above}{name}.", value)
        else:
            yield f"{above}{name}", value
