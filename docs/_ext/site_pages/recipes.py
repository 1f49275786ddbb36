"""Every recipe with its command, what it is, its data, its size, and what was measured of it."""

import re
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from saccade.tasks import kind_of
from saccade.train.devices.memory import count_parameters
from saccade.train.recipe import Recipe
from saccade.train.recipes import MEASURED, RECIPES

DOCS = Path(__file__).parents[2]
FIGURES = ("results.md", "captioning.md")  # where tables have rows of recipes
GUIDES = {
    "translation": "translation.md",
    "language": "translation.md",
    "captioning": "captioning.md",
    "classification": "classification.md",
    "detection": "detection.md",
    "masked": "pretraining.md",
    "understanding": "understanding.md",
    "reconstruction": "generation.md",
    "matching": "joint.md",
    "text-to-image": "text-to-image.md",
}
_WORLDS = {"language": "three-sentences", "masked": "lingua"}  # whose tasks do not name it
_NAME = re.compile(r"`([a-z][\w-]+)[ `]")


class Measured(NamedTuple):
    """A row of a table that is about a recipe."""

    page: str
    section: str
    anchor: str
    figures: str


def recipes_markdown() -> str:
    """A section for each system, in the order of the lectures."""
    systems: dict[tuple[int, str, str], list[str]] = defaultdict(list)
    for name, one in RECIPES.items():
        systems[int(one.system[1:]), one.system, one.lecture].append(name)
    return "\n\n".join(
        f"## {lecture} ({system})\n\n" + "\n\n".join(map(_recipe, names))
        for (_, system, lecture), names in sorted(systems.items())
    )


def _recipe(name: str) -> str:
    one = RECIPES[name]
    rows = [("what it is", one.about), ("data", _data(name, one)), ("size", _size(name, one))]
    rows += [("training", _training(one))]
    rows += [("start", f"`{one.init}`")] if one.init else []
    rows += [
        (
            "measured",
            f"{row.figures} ([{row.section}]({row.page}#{row.anchor}))",
        )
        for row in measured().get(name, [])
    ]
    table = "\n".join(f"| {label} | {text} |" for label, text in rows)
    given = " --data …" if name in MEASURED else ""
    guide = GUIDES.get(kind_of(one.task), "joint.md")
    return (
        f"### {name}\n\n```sh\nsaccade train {name}{given}\n```\n\n"
        f"| | |\n|---|---|\n{table}\n| guide | [{_title(guide)}]({guide}) |"
    )


def _title(page: str) -> str:
    """What a page calls itself."""
    return (DOCS / page).read_text().partition("\n")[0].lstrip("# ")


def _data(name: str, one: Recipe) -> str:
    if name in MEASURED:
        return "your own, `--data`"
    settings = vars(one.task)
    world = next((name for name in ("lingua", "shapes") if name in settings), "")
    return f"built in: {world or _WORLDS[kind_of(one.task)]}; your own with `--data`"


def _size(name: str, one: Recipe) -> str:
    task = replace(one.task, data="your own") if name in MEASURED else one.task
    sizes: dict[str, Any] = task.fitted_sizes()
    count = count_parameters(replace(one.model, **sizes))
    told = [f"{count:,} parameters"]
    told += [f"{name} {value:,}" for name, value in sizes.items() if isinstance(value, int)]
    return ", ".join(told)


def _training(one: Recipe) -> str:
    train = one.train
    length = f"{train.steps:,} updates" if train.steps else f"{train.epochs} epochs"
    return f"{length}, {train.optimizer}, learning rate {train.learning_rate:g}"


@cache
def measured() -> dict[str, list[Measured]]:
    """What the tables of results say of each recipe."""
    found: dict[str, list[Measured]] = defaultdict(list)
    for page in FIGURES:
        section, head = "", list[str]()
        for line in (DOCS / page).read_text().splitlines():
            if line.startswith("#"):
                section = line.lstrip("# ")
            cells = [cell.strip() for cell in line.strip("|").split("|")] if "|" in line else []
            if not cells:
                head = []
            elif not head:
                head = cells
            elif not set(line) <= set("|-: "):
                for name in _rows_of(cells):
                    found[name].append(
                        Measured(page, section, _anchor(section), _told(head, cells))
                    )
    return found


def _rows_of(cells: list[str]) -> list[str]:
    """The recipe that a row is about, if its first cells name one and nothing beside it."""
    names = [name for cell in cells[:2] for name in _NAME.findall(cell)[:1] if name in RECIPES]
    return names[:1]


def _told(head: list[str], cells: list[str]) -> str:
    pairs = [(label, cell) for label, cell in zip(head, cells) if cell not in ("", "–")]
    return "; ".join(f"{label}: {cell}" if label else cell for label, cell in pairs)


def _anchor(title: str) -> str:
    """As MyST and GitHub make it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
