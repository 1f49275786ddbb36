"""A recipe: a model, a task and a way to train it; and its way to and from TOML."""

import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

import tomli_w

from saccade.config import ModelConfig, from_dict, to_dict
from saccade.errors import ConfigError
from saccade.models import FAMILIES, family
from saccade.printable import printable
from saccade.tasks import KINDS, kind_of
from saccade.tasks.base import TaskSettings
from saccade.train.settings import TrainSettings

HUB = "hf:"


@dataclass(frozen=True, kw_only=True)
class Change:
    """A setting that a run has gone on with another value of, from the update after `step`."""

    step: int
    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name} was {shown(self.old)}, now {shown(self.new)}"


@dataclass(frozen=True, kw_only=True)
class Stage:
    """What is trained before a recipe that needs it: the run that the task's `option` then names.

    Both learn from the same data, on the same device, from the same seed: of the task's settings
    that are `shared` the stage has those of the recipe.
    """

    option: str
    recipe: "Recipe"
    shared: tuple[str, ...] = ("data",)

    def before(self, later: "Recipe") -> "Recipe":
        """The recipe of the stage, for one that comes after it."""
        same = {name: vars(later.task)[name] for name in self.shared}
        where = {"device": later.train.device, "seed": later.train.seed}
        return replace(
            self.recipe,
            task=replace(self.recipe.task, **same),
            train=replace(self.recipe.train, **where),
        )

    def named(self, task: TaskSettings, run: Path) -> TaskSettings:
        """The task with that run."""
        given: dict[str, Any] = {self.option: str(run.absolute())}
        return replace(task, **given)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What `saccade train NAME` does.

    `init` is where its weights come from when it starts: a run, a folder or a file; fresh without.
    `lineage` is what a run has started from, with what that came from, and so on; `changes` are
    those that it has seen on its way. `stages` come before it, each unless its option names a run.
    """

    about: str
    system: str  # its number in the list of systems
    lecture: str
    model: ModelConfig
    task: TaskSettings
    train: TrainSettings
    init: str = ""
    lineage: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    stages: tuple[Stage, ...] = ()

    def located(self) -> "Recipe":
        """With the places of data and weights from the root: a run is used from anywhere."""
        here = self.init and not on_hub(self.init)
        init = str(Path(self.init).absolute()) if here else self.init
        return replace(self, task=self.task.located(), init=init)


def on_hub(init: str) -> bool:
    """Whether it names a model on the Hugging Face Hub: hf:owner/name."""
    return init.startswith(HUB)


def shown(value: Any) -> str:
    """A setting's value for people."""
    return f"{value:,}" if type(value) is int else printable(value)


def to_table(chosen: Recipe) -> dict[str, Any]:
    """A recipe as plain values, for JSON and TOML."""
    changes = {"changes": [to_dict(one) for one in chosen.changes]} if chosen.changes else {}
    return {
        "about": chosen.about,
        "system": chosen.system,
        "lecture": chosen.lecture,
        "model": {"family": family(chosen.model), **to_dict(chosen.model)},
        "task": {"kind": kind_of(chosen.task), **to_dict(chosen.task)},
        "train": to_dict(chosen.train),
        **({"init": chosen.init} if chosen.init else {}),
        **({"lineage": list(chosen.lineage)} if chosen.lineage else {}),
        **changes,
        **({"stages": [_stage_table(one) for one in chosen.stages]} if chosen.stages else {}),
    }


def _stage_table(stage: Stage) -> dict[str, Any]:
    recipe = to_table(stage.recipe)
    return {"option": stage.option, "shared": list(stage.shared), "recipe": recipe}


def from_table(table: Any, *, where: str) -> Recipe:
    """A recipe from plain values that nobody vouches for."""
    if not isinstance(table, dict) or not {"model", "task", "train"} <= set(table):
        raise ConfigError(
            f"{where} must have the tables model, task and train, as `saccade train` writes them; "
            "weights of others are what --init starts from"
        )
    model_kind = _pick(FAMILIES, table["model"], "family", where=f"{where}: model")
    task_kind = _pick(KINDS, table["task"], "kind", where=f"{where}: task")
    return Recipe(
        about=str(table.get("about", "")),
        system=str(table.get("system", "")),
        lecture=str(table.get("lecture", "")),
        model=from_dict(model_kind, _without(table["model"], "family"), where=f"{where}: model"),
        task=from_dict(task_kind, _without(table["task"], "kind"), where=f"{where}: task"),
        train=from_dict(TrainSettings, table["train"], where=f"{where}: train"),
        init=str(table.get("init", "")),
        lineage=_lineage(table.get("lineage", []), where=f"{where}: lineage"),
        changes=_changes(table.get("changes", []), where=f"{where}: changes"),
        stages=_stages(table.get("stages", []), where=f"{where}: stages"),
    )


def _lineage(names: Any, *, where: str) -> tuple[str, ...]:
    match names:
        case list() if all(isinstance(name, str) for name in cast(list[Any], names)):
            return tuple(cast(list[str], names))
        case _:
            raise ConfigError(f"{where} must be a list of names")


def _changes(table: Any, *, where: str) -> tuple[Change, ...]:
    found: list[Change] = []
    for one in cast(list[Any], table) if isinstance(table, list) else [table]:
        match one:
            case {"step": int(step), "name": str(name), "old": old, "new": new}:
                found.append(Change(step=step, name=name, old=old, new=new))
            case _:
                raise ConfigError(f"{where} must be a list of tables of step, name, old and new")
    return tuple(found)


def _stages(table: Any, *, where: str) -> tuple[Stage, ...]:
    found: list[Stage] = []
    for one in cast(list[Any], table) if isinstance(table, list) else [table]:
        match one:
            case {"option": str(option), "shared": [*shared], "recipe": recipe}:
                earlier = from_table(recipe, where=f"{where}: {option}")
                found.append(Stage(option=option, recipe=earlier, shared=tuple(map(str, shared))))
            case _:
                raise ConfigError(f"{where} must be a list of tables of option, shared and recipe")
    return tuple(found)


def save_recipe(chosen: Recipe) -> str:
    """A recipe as TOML, which has no None: such a setting is left out, and so has its default."""
    return tomli_w.dumps(_said(to_table(chosen)))


def _said(value: Any) -> Any:
    """Without what is None in tables, and in tables within."""
    match value:
        case dict():
            table = cast(dict[str, Any], value)
            return {key: _said(x) for key, x in table.items() if x is not None}
        case list():
            return [_said(x) for x in cast(list[Any], value)]
        case _:
            return value


def load_recipe(path: Path) -> Recipe:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read the recipe {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 ({error.reason}); save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    known = [field.name for field in fields(Recipe)]
    for name in table:
        if name not in known:
            raise ConfigError(
                f"{path}: {printable(name)} stands in none of the tables model, task and train; "
                f"put it into its table, for beside them there are only: {', '.join(known)}"
            )
    return from_table(table, where=str(path))


def _pick(known: dict[str, Any], table: Any, key: str, *, where: str) -> Any:
    name = table.get(key) if isinstance(table, dict) else None
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"{where}.{key}={name!r} must be one of: {', '.join(known)}")
    return known[name]


def _without(table: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name != key}
