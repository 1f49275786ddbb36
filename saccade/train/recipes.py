"""Recipes: a model, a task and a way to train it, under a name. No name needs any argument."""

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomli_w

from saccade.config import ModelConfig, from_dict, to_dict
from saccade.data.lingua import LinguaSettings
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


# The first six learn the built-in data on two cores in minutes; the others hold the settings that
# were measured on real data (docs/results.md) and need --data.
RECIPES: dict[str, Recipe] = {
    "rnn-lm": Recipe(
        about="RNN language model, one word after another",
        system="S1",
        lecture="A basic neural language model",
        model=preset("rnn-lm-nano"),
        task=LanguageSettings(unit="lines", level="words"),
        train=TrainSettings(
            steps=500,
            batch_tokens=256,
            accumulate=4,  # a batch holds lines of one length: here, one sentence of the three
            ema=0.99,
            learning_rate=1e-2,
            schedule="cosine",
            warmup=20,
            validate_every=250,
        ),
    ),
    "rnn-seq2seq": Recipe(
        about="encoder RNN to decoder RNN through one vector: the bottleneck",
        system="S2",
        lecture="Sequence to sequence with RNNs",
        model=preset("rnn-seq2seq-small"),
        # Short sentences only: through one vector the long ones are not learnt in minutes anyway.
        task=TranslationSettings(
            vocabulary=4000,
            pairs=100_000,
            label_smoothing=0.0,
            lingua=LinguaSettings(longest=12),
        ),
        train=TrainSettings(
            steps=6500,
            batch_tokens=1024,
            learning_rate=4e-3,
            schedule="cosine",
            warmup=100,
            validate_every=1300,
        ),
    ),
    "rnn-attention": Recipe(
        about="RNN translator that looks at the source at every step",
        system="S3",
        lecture="Sequence to sequence with RNNs and attention",
        model=preset("rnn-attention-small"),
        task=TranslationSettings(vocabulary=2000, pairs=60_000, label_smoothing=0.0),
        train=TrainSettings(
            steps=3300,
            batch_tokens=1024,
            learning_rate=4e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "conv-seq2seq": Recipe(
        about="gated convolutions with attention in every decoder layer",
        system="S4",
        lecture="Three ways of processing sequences",
        model=preset("conv-seq2seq-small"),
        task=TranslationSettings(vocabulary=2000, pairs=60_000),
        train=TrainSettings(
            steps=2600,
            batch_tokens=2048,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "transformer": Recipe(
        about="encoder–decoder Transformer",
        system="S7",
        lecture="Attention is all you need",
        model=preset("transformer-nano"),
        task=TranslationSettings(vocabulary=2000, pairs=60_000, label_smoothing=0.0),
        train=TrainSettings(
            steps=3300,
            batch_tokens=1536,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=100,
        ),
    ),
    "gpt": Recipe(
        about="decoder-only Transformer language model",
        system="S8",
        lecture="Pre-training and fine-tuning",
        model=preset("gpt-nano"),
        task=LanguageSettings(unit="lines", level="words", window=128),
        train=TrainSettings(
            steps=500,
            batch_tokens=256,
            accumulate=4,  # a batch holds lines of one length: here, one sentence of the three
            ema=0.99,
            learning_rate=3e-3,
            schedule="cosine",
            warmup=20,
            validate_every=250,
        ),
    ),
    "transformer-multi30k": Recipe(
        about="Transformer for a corpus of some ten thousand pairs",
        system="S7",
        lecture="Attention is all you need",
        model=preset("transformer-small"),
        task=TranslationSettings(),
        train=TrainSettings(
            steps=4500,
            batch_tokens=8192,
            batches="mixed",
            learning_rate=2e-3,
            schedule="cosine",
            warmup=500,
            ema=0.998,
            validate_every=900,
            precision="bfloat16",
        ),
    ),
    "rnn-attention-multi30k": Recipe(
        about="RNN with attention for a corpus of some ten thousand pairs",
        system="S3",
        lecture="Sequence to sequence with RNNs and attention",
        model=preset("rnn-attention-medium"),
        task=TranslationSettings(vocabulary=6000),
        train=TrainSettings(
            steps=3000,
            batch_tokens=8192,
            learning_rate=3e-3,
            schedule="cosine",
            ema=0.998,
            validate_every=250,
            precision="bfloat16",
        ),
    ),
    "gpt-shakespeare": Recipe(
        about="GPT over the characters of a megabyte of text",
        system="S8",
        lecture="Pre-training and fine-tuning",
        model=preset("gpt-mini"),
        task=LanguageSettings(level="characters", window=256),
        train=TrainSettings(
            steps=3000,
            batch_tokens=16384,
            schedule="cosine",
            warmup=100,
            beta2=0.99,
            weight_decay=0.1,
            validate_every=250,
            precision="bfloat16",
        ),
    ),
    "rnn-lm-ptb": Recipe(
        about="stacked LSTM over the words of a million-word text",
        system="S1",
        lecture="A basic neural language model",
        model=preset("rnn-lm-medium"),
        task=LanguageSettings(level="words", vocabulary=10_004, window=100),
        train=TrainSettings(
            steps=9000,
            batch_tokens=4000,
            learning_rate=2e-3,
            schedule="cosine",
            warmup=200,
            weight_decay=0.0,
            clip=0.25,
            ema=0.999,
        ),
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
