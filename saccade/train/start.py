"""Where a run starts from: another run, a folder of Hugging Face's or timm's, a file of weights."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.errors import CheckpointError, ConfigError
from saccade.models import PRESETS
from saccade.models.names.pretrained import (
    compare,
    load_weights,
    read_weights,
    weight_files,
)
from saccade.models.protocol import StartsFromPublished
from saccade.printable import printable
from saccade.train.fit import Trainer
from saccade.train.manifest import MANIFEST, Manifest
from saccade.train.memory import outline
from saccade.train.recipe import Recipe


def check_start(init: str) -> None:
    """Refuse, before any data are read, weights that are not there or are damaged."""
    path = Path(init)
    if not path.exists():
        raise ConfigError(
            f"init={printable(init)} is not there; name a run, a folder with model.safetensors, or "
            "a file of weights (.safetensors, .pth)"
        )
    weight_files(path)
    if (path / MANIFEST).is_file():
        Manifest(path).check()


def start(trainer: Trainer, recipe: Recipe) -> list[str]:
    """Give a new run the weights that it is to start from, if any; lines about them."""
    model, notes = trainer.model, list[str]()
    published = model.load_published() if isinstance(model, StartsFromPublished) else None
    if published is not None:
        notes.append(str(published))
    if recipe.init:
        notes += _load(trainer, recipe)
    if notes and trainer.average is not None:  # it began with the fresh ones
        trainer.average.model.load_state_dict(model.state_dict())
    return notes


def _load(trainer: Trainer, recipe: Recipe) -> list[str]:
    path = Path(recipe.init)
    given = read_weights(path)
    better = _better_preset(trainer.model, recipe, given)
    try:
        report = load_weights(trainer.model, given, path)
    except CheckpointError as error:
        if better is None:
            raise
        raise CheckpointError(f"{error} (`saccade train {better}` has it)") from error
    notes = [f"starting from {report.lines[0]}", *(f"  {line}" for line in report.lines[1:])]
    notes += [] if better is None else [f"  the whole of it would fit `saccade train {better}`"]
    return notes + recipe.task.notes_on_start(path if path.is_dir() else path.parent)


def _better_preset(model: nn.Module, recipe: Recipe, given: dict[str, Tensor]) -> str | None:
    """The preset of this family that a file fits, where it does not fit the model as well."""

    def misfit(network: nn.Module) -> tuple[int, int]:
        _, report = compare(network, given, Path(recipe.init))
        return len(report.missing) + len(report.mismatched), len(report.unexpected)

    now = misfit(model)
    if now == (0, 0):
        return None
    alike = {name: one for name, one in PRESETS.items() if type(one) is type(recipe.model)}
    found = {name: misfit(outline(_sized(one, recipe))) for name, one in alike.items()}
    best = min(found, key=lambda name: found[name], default="")
    return best if best and found[best][0] == 0 and found[best] < now else None


def _sized(preset: ModelConfig, recipe: Recipe) -> ModelConfig:
    """A preset with what the data have decided, where it can be of those sizes."""
    there = recipe.task.fitted & vars(preset).keys()
    sizes: dict[str, Any] = {name: vars(recipe.model)[name] for name in there}
    try:
        return replace(preset, **sizes)
    except ConfigError:
        return preset
