"""The Python API: train a run, load one, predict with it, look at what it looked at."""

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from saccade.app.cli.progress import training_shown
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.make import checked_exporter, export_run
from saccade.app.kinds import kind_for
from saccade.app.kinds.base import Engine, LoadedRun
from saccade.app.kinds.soundness import check_weights
from saccade.config import from_dict, to_dict
from saccade.errors import ConfigError
from saccade.train import run as training
from saccade.train.devices.distributed import choose_device
from saccade.train.recipe import Recipe
from saccade.train.recipes import recipe as recipe_named
from saccade.train.settings import TrainSettings
from saccade.train.starting.start import adopted
from saccade.train.storage.folder import RunFolder

Settings = TypeVar("Settings")
Table = Mapping[str, Any]


def train(
    recipe: str | Recipe,
    *,
    data: str | Path = "",
    out: str | Path = "",
    model: Table | None = None,
    train: Table | None = None,
    init: str | os.PathLike[str] = "",
    change: bool = False,
    start_over: bool = False,
    quiet: bool = False,
    **task: Any,
) -> training.TrainingOutcome:
    """Train a recipe, a model preset or a .toml file, as `saccade train` does.

        saccade.train("transformer", data="corpus/", source="en", target="de",
                      model={"width": 256}, train={"steps": 1000})

    Settings have their names from the command line: those of the task are keywords, --model.width
    is in `model` and --train.steps in `train`. Without `data` the built-in ones are learnt, and
    without `out` the run is runs/RECIPE. `init` is a run, a folder, hf:owner/name or a file whose
    weights it starts from; all but a file also give the sizes that `model` does not, and the
    tokenizer. Stopped or killed, the same call goes on. What it returns can be given to
    `saccade.load`.
    """
    chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe
    if not out and not isinstance(recipe, str):
        raise ConfigError("out='' names no folder; give one, such as out='runs/mine'")
    given = {**task, **({"data": os.fspath(data)} if data else {})}
    folder = Path(out or Path("runs") / Path(str(recipe)).stem)
    chosen = replace(chosen, init=os.fspath(init) or chosen.init)
    chosen = adopted(chosen, folder, start_over=start_over)
    chosen = replace(
        chosen,
        task=_with(chosen.task, given, "task"),
        model=_with(chosen.model, model or {}, "model"),
        train=_with(chosen.train, train or {}, "train"),
    )
    with training_shown(chosen, quiet=quiet) as watch:
        return training.train(chosen, folder, watch, change=change, start_over=start_over)


def _with(settings: Settings, given: Table, where: str) -> Settings:
    """Settings with some of other values, of which nobody knows the types yet."""
    elsewhere = {field.name for field in fields(TrainSettings)} if where == "task" else set[str]()
    for name in given:
        if name in elsewhere and name not in vars(settings):
            raise ConfigError(f"{name} says how to train; give train={{{name!r}: …}}")
    return from_dict(type(settings), _merged(to_dict(settings), given), where=where)


def _merged(values: Table, given: Table) -> dict[str, Any]:
    """Tables within tables are merged too."""
    both = {name for name in given if isinstance(values.get(name), dict)}
    nested = {n: _merged(values[n], v) for n, v in given.items() if n in both and v is not values}
    return {**values, **given, **nested}


def load(
    run: str | os.PathLike[str],
    *,
    device: str = "auto",
    engine: Engine = "saccade",
    engine_precision: Quantization = "float32",
) -> Any:
    """The best weights of a run, ready to use: a model of the run's own kind.

    With engine="ctranslate2" they are exported into the run's folder if no fresh export is there,
    and that engine decodes; `engine_precision` is how it holds the weights.
    """
    for name, value, known in (
        ("engine", engine, get_args(Engine)),
        ("engine_precision", engine_precision, get_args(Quantization)),
    ):
        if value not in known:
            raise ConfigError(f"{name}={value!r} is not one of {', '.join(known)}")
    if engine == "saccade" and engine_precision != "float32":
        raise ConfigError(
            f"engine_precision={engine_precision!r} is for engine='ctranslate2'; our own decoder "
            "has precision"
        )
    folder = RunFolder(Path(run))
    recipe = folder.load_recipe()
    kind = kind_for(recipe.task)
    if engine == "ctranslate2" and kind.with_engine is None:
        raise ConfigError(
            f"engine='ctranslate2' decodes text alone, and this run is of {kind.name}; leave the "
            "engine out"
        )
    if engine == "ctranslate2":
        checked_exporter(recipe, "ctranslate2")  # before weights are read
    network = folder.load_model(choose_device(device))
    loaded = LoadedRun(folder, recipe, network)
    check_weights(loaded)
    model = kind.load(loaded)
    if engine == "saccade" or kind.with_engine is None:
        return model
    exported, _ = export_run(folder, "ctranslate2", quantization=engine_precision, model=network)
    return kind.with_engine(model, exported)
