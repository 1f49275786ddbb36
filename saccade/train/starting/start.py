"""Where a run starts from: another run, a folder of Hugging Face's or timm's, a file of weights.

A folder gives its sizes and its tokenizer as well; a file gives weights alone.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from saccade.config import ModelConfig
from saccade.data.tokens.foreign_tokenizer import read_tokenizer
from saccade.errors import CheckpointError, ConfigError, SaccadeError
from saccade.models import PRESETS
from saccade.models.names.described import described
from saccade.models.names.pretrained import (
    compare,
    load_pretrained,
    load_weights,
    read_weights,
    renamed,
    weight_files,
)
from saccade.models.outline import outline
from saccade.models.protocol import StartsFromPublished
from saccade.printable import printable
from saccade.tasks.base import Task
from saccade.tasks.tokenizer import TOKENIZER
from saccade.train.recipe import Recipe, on_hub, shown
from saccade.train.resume import has_begun
from saccade.train.starting.hub import local_folder
from saccade.train.storage.folder import RunFolder
from saccade.train.storage.manifest import MANIFEST, Manifest

OWN = frozenset({"weights"})  # of a model's settings, what no start decides: files of its own
GENERATIONS = 20  # kept of a lineage


def adopted(recipe: Recipe, out: Path, *, start_over: bool = False) -> Recipe:
    """The recipe with the model that its start tells, where that is of its family or stands in.

    A run that was begun has them already, and its start may be gone.
    """
    if not recipe.init:
        return recipe
    run = RunFolder(out)
    if not start_over and run.config.is_file() and has_begun(run):
        before = run.load_recipe()
        told = before.model if before.init == recipe.located().init else None
    else:
        told = described(local_folder(recipe.init))
    told = _suited(told, recipe)
    if told is None:
        return recipe
    own = {name: value for name, value in vars(recipe.model).items() if name in OWN}
    return replace(recipe, model=replace(told, **own))


def _suited(told: ModelConfig | None, recipe: Recipe) -> ModelConfig | None:
    """What a start tells, or the part of it that is kept, if the recipe is one for that."""
    found = () if told is None else (told, told.kept)
    return next((one for one in found if one.stands_in_for(recipe.model)), None)


def check_start(recipe: Recipe) -> Path:
    """Where the start lies; refuses, before any data are read, one that is missing or damaged."""
    path = local_folder(recipe.init)
    if not path.exists():
        raise ConfigError(
            f"init={printable(recipe.init)} is not there; name a run, a folder with "
            "model.safetensors, or a file of weights (.safetensors, .pth)"
        )
    weight_files(path)
    if (path / MANIFEST).is_file():
        Manifest(path).check()
    _check_tokenizer(recipe, path)
    return path


def _check_tokenizer(recipe: Recipe, path: Path) -> None:
    """Refuse a tokenizer with more or fewer tokens than the weights have rows for."""
    fitted = "vocabulary" in recipe.task.fitted & vars(recipe.model).keys()
    tokenizer = read_tokenizer(path) if fitted else None
    if tokenizer is None:
        return
    tokens = len(tokenizer)
    model, smallest = (outline(_of(recipe.model, vocabulary=n)) for n in (tokens, 1))
    shapes = {name: tensor.shape for name, tensor in smallest.state_dict().items()}
    by_word = {n for n, tensor in model.state_dict().items() if tensor.shape != shapes[n]}
    found = renamed(model, read_weights(path))
    for name in sorted(by_word & found.keys()):
        rows = len(found[name])
        if rows != tokens:
            files = printable(weight_files(path)[0])
            raise ConfigError(
                f"the tokenizer of {printable(recipe.init)} has {tokens:,} tokens, and its weights "
                f"have {rows:,} rows for them ({name}); put the tokenizer that they were trained "
                f"with there, or take the weights alone and learn another: --init {files}"
            )


def start(model: nn.Module, recipe: Recipe, task: Task[Any]) -> list[str]:
    """Give a new run the weights that it is to start from, if any; lines about them."""
    notes = list[str]()
    if isinstance(model, StartsFromPublished) and model.published is not None:
        notes.append(str(load_pretrained(model.slow_part, model.published)))
    if recipe.init:
        path = local_folder(recipe.init)
        notes += _load(model, recipe, path)
        notes += [*_sizes(recipe, path), *_tokenizer(task, path)]
        notes += recipe.task.notes_on_start(path if path.is_dir() else path.parent)
    return notes


def lineage(init: str) -> tuple[str, ...]:
    """What a run starts from, and where a run that it starts from came from itself."""
    path = local_folder(init)
    name = f"{init}@{path.name}" if on_hub(init) else init  # a snapshot lies under its revision
    try:
        before = RunFolder(path).load_recipe()
    except SaccadeError:  # none of ours
        return (name,)
    return (name, *(before.lineage or ((before.init,) if before.init else ())))[:GENERATIONS]


def _load(model: nn.Module, recipe: Recipe, path: Path) -> list[str]:
    given = read_weights(path)
    better = _better_preset(model, recipe, given)
    try:
        report = load_weights(model, given, Path(recipe.init))
    except CheckpointError as error:
        if better is None:
            raise
        raise CheckpointError(f"{error} (`saccade train {better}` has it)") from error
    notes = [f"starting from {report.lines[0]}", *(f"  {line}" for line in report.lines[1:])]
    return notes + ([f"  the whole of it would fit `saccade train {better}`"] if better else [])


def _sizes(recipe: Recipe, path: Path) -> list[str]:
    """Whether the model is as large as the start tells, and in what it is not."""
    try:
        told = _suited(described(path), recipe)
    except SaccadeError:  # the sizes were given in spite of it
        return []
    if told is None or type(told) is not type(recipe.model):
        return []
    now, free = vars(recipe.model), recipe.task.fitted | OWN
    others = [
        f"{name} {shown(now[name])}, there {shown(value)}"
        for name, value in vars(told).items()
        if name not in free and now[name] != value
    ]
    apart = f", but for {'; '.join(others)}" if others else ""
    return [f"  sizes as there{apart}"]


def _tokenizer(task: Task[Any], path: Path) -> list[str]:
    """Whether its tokenizer was taken."""
    tokenizer, kept = read_tokenizer(path), task.assets().get(TOKENIZER)
    if tokenizer is None or kept != tokenizer.to_json().encode():
        return []
    return [f"  its tokenizer of {len(tokenizer):,} tokens, whatever the options say of tokens"]


def _better_preset(model: nn.Module, recipe: Recipe, given: dict[str, Tensor]) -> str | None:
    """The preset of this family that a file fits, where it does not fit the model as well."""

    def misfit(network: nn.Module) -> tuple[int, int]:
        _, report = compare(network, given, Path(recipe.init))
        return len(report.missing) + len(report.mismatched), len(report.unexpected)

    now = misfit(model)
    if now == (0, 0):
        return None
    alike = {name: one for name, one in PRESETS.items() if type(one) is type(recipe.model)}
    found = {name: misfit(_outlined(one, recipe)) for name, one in alike.items()}
    best = min(found, key=lambda name: found[name], default="")
    return best if best and found[best][0] == 0 and found[best] < now else None


def _outlined(preset: ModelConfig, recipe: Recipe) -> nn.Module:
    """A preset with what the data have decided, where it can be of those sizes."""
    there = recipe.task.fitted & vars(preset).keys()
    try:
        return outline(_of(preset, **{name: vars(recipe.model)[name] for name in there}))
    except ConfigError:
        return outline(preset)


def _of(model: ModelConfig, **sizes: Any) -> ModelConfig:
    return replace(model, **sizes)
