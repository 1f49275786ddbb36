"""Recipes: a model, a task and a way to train it, under a name. No name needs any argument."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from saccade.config import ModelConfig, from_dict, to_dict
from saccade.errors import ConfigError
from saccade.models import FAMILIES, family, preset
from saccade.tasks.language import LanguageSettings
from saccade.tasks.translation import TranslationSettings
from saccade.train.settings import TrainSettings

TaskSettings = TranslationSettings | LanguageSettings
TASKS: dict[str, type[TranslationSettings] | type[LanguageSettings]] = {
    "translation": TranslationSettings,
    "language": LanguageSettings,
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What `saccade train NAME` does."""

    about: str
    system: str  # its number in the list of systems
    lecture: str
    model: ModelConfig
    task: TaskSettings
    train: TrainSettings


RECIPES: dict[str, Recipe] = {
    "rnn-lm": Recipe(
        about="RNN language model, one word after another",
        system="S1",
        lecture="A basic neural language model",
        model=preset("rnn-lm"),
        task=LanguageSettings(unit="lines", level="words"),
        train=TrainSettings(steps=300, batch_tokens=1024, warmup=20, validate_every=100),
    ),
    "rnn-seq2seq": Recipe(
        about="encoder RNN to decoder RNN through one vector: the bottleneck",
        system="S2",
        lecture="Sequence to sequence with RNNs",
        model=preset("rnn-seq2seq"),
        task=TranslationSettings(),
        train=TrainSettings(),
    ),
    "rnn-attention": Recipe(
        about="RNN translator that looks at the source at every step",
        system="S3",
        lecture="Sequence to sequence with RNNs and attention",
        model=preset("rnn-attention"),
        task=TranslationSettings(),
        train=TrainSettings(),
    ),
    "conv-seq2seq": Recipe(
        about="gated convolutions with attention in every decoder layer",
        system="S4",
        lecture="Three ways of processing sequences",
        model=preset("conv-seq2seq"),
        task=TranslationSettings(),
        train=TrainSettings(),
    ),
    "transformer": Recipe(
        about="encoder–decoder Transformer",
        system="S7",
        lecture="Attention is all you need",
        model=preset("transformer-nano"),
        task=TranslationSettings(),
        train=TrainSettings(),
    ),
    "gpt": Recipe(
        about="decoder-only Transformer language model",
        system="S8",
        lecture="Pre-training and fine-tuning",
        model=preset("gpt-nano"),
        task=LanguageSettings(unit="lines", level="words"),
        train=TrainSettings(steps=300, batch_tokens=1024, warmup=20, validate_every=100),
    ),
}


def recipe(name: str) -> Recipe:
    """A recipe by its name, or from a TOML file."""
    if name.endswith(".toml"):
        return load_recipe(Path(name))
    if name not in RECIPES:
        raise ConfigError(
            f"no recipe {name!r}; there are: {', '.join(RECIPES)} (or a .toml file of your own)"
        )
    return RECIPES[name]


def to_table(chosen: Recipe) -> dict[str, Any]:
    """A recipe as plain values, for JSON and TOML."""
    kind = next(name for name, settings in TASKS.items() if type(chosen.task) is settings)
    return {
        "about": chosen.about,
        "system": chosen.system,
        "lecture": chosen.lecture,
        "model": {"family": family(chosen.model), **to_dict(chosen.model)},
        "task": {"kind": kind, **to_dict(chosen.task)},
        "train": to_dict(chosen.train),
    }


def from_table(table: Any, *, where: str) -> Recipe:
    """A recipe from plain values that nobody vouches for."""
    if not isinstance(table, dict) or not {"model", "task", "train"} <= set(table):
        raise ConfigError(f"{where} must have the tables model, task and train")
    model_kind = _pick(FAMILIES, table["model"], "family", where=f"{where}: model")
    task_kind = _pick(TASKS, table["task"], "kind", where=f"{where}: task")
    return Recipe(
        about=str(table.get("about", "")),
        system=str(table.get("system", "")),
        lecture=str(table.get("lecture", "")),
        model=from_dict(model_kind, _without(table["model"], "family"), where=f"{where}: model"),
        task=from_dict(task_kind, _without(table["task"], "kind"), where=f"{where}: task"),
        train=from_dict(TrainSettings, table["train"], where=f"{where}: train"),
    )


def save_recipe(chosen: Recipe) -> str:
    """A recipe as TOML."""
    return tomli_w.dumps(to_table(chosen))


def load_recipe(path: Path) -> Recipe:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the recipe {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    return from_table(table, where=str(path))


def with_vocabulary(chosen: Recipe, size: int) -> Recipe:
    """The recipe once the tokenizer is known."""
    return replace(chosen, model=replace(chosen.model, vocabulary=size))


def _pick(known: dict[str, Any], table: Any, key: str, *, where: str) -> Any:
    name = table.get(key) if isinstance(table, dict) else None
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"{where}.{key}={name!r} must be one of: {', '.join(known)}")
    return known[name]


def _without(table: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name != key}
