"""A corpus and a recipe so small that a whole training takes about a second."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.translation.task import TranslationSettings
from saccade.train.events import Note
from saccade.train.recipe import Recipe
from saccade.train.run import TrainingOutcome, train
from saccade.train.settings import TrainSettings

STEPS = 40
NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight")
NOMBRES = ("un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit")


def pairs(count: int, *, lie: int = 0) -> list[tuple[str, str]]:
    """Sentences of one to six words whose translation is their mirror image, off by `lie`."""
    found = []
    for i in range(count):
        words = [(i * 5 + j * j * 3 + i // 7) % 8 for j in range(1 + i % 6)]
        mirrored = [NOMBRES[(w + lie) % 8] for w in reversed(words)]
        found.append((" ".join(NUMBERS[w] for w in words), " ".join(mirrored)))
    return found


def write_corpus(folder: Path) -> Path:
    """train.en, train.fr, valid.en, valid.fr.

    The validation pairs contradict the training pairs, so that the best step is an early one and
    a run that forgets it is found out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for split, some in (("train", pairs(60)), ("valid", pairs(12, lie=3))):
        for side, language in enumerate(("en", "fr")):
            text = "".join(pair[side] + "\n" for pair in some)
            (folder / f"{split}.{language}").write_text(text, encoding="utf-8")
    return folder


def small_recipe(data: Path | str, **changed: Any) -> Recipe:
    """Translation with all that could be lost on the way: dropout, averages, accumulation."""
    settings = TrainSettings(
        steps=STEPS,
        batch_tokens=96,
        accumulate=2,
        learning_rate=1e-2,
        schedule="cosine",
        warmup=5,
        ema=0.9,
        validate_every=5,
        save_every=3,
        log_every=1,
        device="cpu",
    )
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=TransformerConfig(width=16, depth=1, heads=2, hidden=32, dropout=0.1),
        task=TranslationSettings(data=str(data), source="en", target="fr", level="words"),
        train=replace(settings, **changed),
    )


def small_language(**changed: Any) -> Recipe:
    """Language modelling on the built-in sentences."""
    settings = TrainSettings(
        steps=20, batch_tokens=64, warmup=5, validate_every=10, log_every=1, device="cpu"
    )
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=GptConfig(width=16, depth=1, heads=2, longest=32, dropout=0.0),
        task=LanguageSettings(unit="lines", level="words", sentences=60),
        train=replace(settings, **changed),
    )


def ignore(event: object) -> None:
    """Watch nothing."""


def rewrite(path: Path, text: str) -> None:
    """Change a file of a run on purpose: nobody vouches for it then."""
    path.write_text(text)
    path.with_name("manifest.json").unlink()


class HaltError(Exception):
    """Thrown from `watch` to end a run without its consent."""


def halt_at(step: int) -> Callable[[object], None]:
    """Watch until an update, and end the run there."""

    def watch(event: object) -> None:
        if getattr(event, "step", 0) == step:
            raise HaltError

    return watch


def train_noting(recipe: Recipe, folder: Path) -> tuple[TrainingOutcome, list[str]]:
    """Train, and the lines the user was told."""
    notes: list[str] = []

    def watch(event: object) -> None:
        if isinstance(event, Note):
            notes.append(event.text)

    return train(recipe, folder, watch), notes


def losses(folder: Path) -> dict[tuple[int, str], float]:
    """Every number of metrics.jsonl by step and name, but for the speed."""
    found: dict[tuple[int, str], float] = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        values = json.loads(line)
        step = values.pop("step")
        values.pop("tokens_per_second", None)
        for name, value in values.items():
            assert (step, name) not in found, f"step {step} is logged twice"
            found[step, name] = value
    return found


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every tensor of the last checkpoint and of the kept weights, and the counters."""
    last = max((folder / "checkpoints").glob("step-*"))
    found = {"last": last.name}
    paths = {path.stem: path for path in last.glob("*.safetensors")}
    for part, path in {**paths, "kept": folder / "model.safetensors"}.items():
        for name, tensor in load_file(path).items():
            digest = hashlib.sha256(tensor.numpy().tobytes()).hexdigest()
            found[f"{part} {name} {tensor.dtype} {tuple(tensor.shape)}"] = digest
    state = json.loads((last / "state.json").read_text())
    return {**found, **{name: repr(value) for name, value in state.items()}}


def same_run(one: Path, other: Path) -> list[str]:
    """What differs between two finished runs; nothing, if they are the same run."""
    mine, theirs = losses(one), losses(other)
    differing = [f"log {key}" for key in {**mine, **theirs} if mine.get(key) != theirs.get(key)]
    ours, others = hashes(one), hashes(other)
    return differing + [k for k in {**ours, **others} if ours.get(k) != others.get(k)]
