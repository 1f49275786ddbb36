"""A run as a folder, shaped like a model on the Hub.

config.json, model.safetensors, tokenizer.json, metrics.jsonl, README.md, checkpoints/; and
manifest.json with the SHA-256 of the first three
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import nn

from saccade.blocks.lora import merged_state
from saccade.errors import CheckpointError, ConfigError, RunError
from saccade.models.outline import outline
from saccade.train.recipe import Recipe, from_table, to_table
from saccade.train.settings import HARMLESS
from saccade.train.storage.checkpoint import read_state, read_tensors, serialise
from saccade.train.storage.files import read_json
from saccade.train.storage.manifest import Manifest

WATCHED = frozenset({"skip_bad"})  # its effect is in the fingerprint of the data


class RunFolder:
    """The files of one run, by what they mean."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.metrics = path / "metrics.jsonl"
        self.config = path / "config.json"
        self.weights = path / "model.safetensors"
        self.card = path / "README.md"
        self.manifest = Manifest(path)

    def load_recipe(self) -> Recipe:
        """What was trained here; refuses a folder that is not a run."""
        if not self.path.is_dir():
            raise RunError(f"there is no run at {self.path}; `saccade train NAME` makes one")
        if not self.config.is_file():
            raise RunError(f"{self.path} is not a run: it has no config.json; see `saccade train`")
        self.manifest.check(leaving_out=self.weights.name)
        try:
            return from_table(read_json(self.config), where=str(self.config))
        except (CheckpointError, ConfigError) as error:
            raise RunError(str(error)) from error

    def save_recipe(self, recipe: Recipe) -> None:
        content = json.dumps(to_table(recipe), indent=2).encode()
        self.manifest.replace(self.config.name, content)

    def save_assets(self, assets: dict[str, bytes], *, anew: bool = False) -> None:
        """What the task must keep: its tokenizer, names of classes, …; what is there may stay."""
        for name, content in assets.items():
            if anew or not (self.path / name).exists():
                self.manifest.replace(name, content)
            else:
                self.manifest.adopt(name)

    def save_weights(self, model: nn.Module, *, beside: Mapping[str, bytes] | None = None) -> None:
        """The weights under their own names, with what LoRA has added; and files that go along."""
        for name, content in (beside or {}).items():
            self.manifest.replace(name, content)
        self.manifest.replace(self.weights.name, serialise(merged_state(model)))

    def newest_state(self) -> dict[str, Any]:
        """The plain values of the newest checkpoint that can be read; none where there is none."""
        for path in sorted(self.checkpoints.glob("step-*/state.json"), reverse=True):
            with suppress(CheckpointError):
                return read_state(path.parent)
        return {}

    @property
    def has_checkpoints(self) -> bool:
        """Whether there is anything to go on from, or was."""
        return any(self.checkpoints.glob("step-*"))

    @property
    def has_weights(self) -> bool:
        """Whether the best weights are there, as they were written."""
        return self.weights.is_file() and self.manifest.sound(self.weights.name)

    def load_model(self, device: torch.device) -> nn.Module:
        """The best weights so far, ready to use."""
        recipe = self.load_recipe()
        if not self.weights.is_file():
            raise RunError(f"{self.path} has no model.safetensors yet; train it further")
        model = outline(recipe.model)  # a config of somebody else's may name any sizes
        self.manifest.check()
        tensors = read_tensors(self.weights)
        expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        found = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
        if expected != found:
            name = next(n for n in {**expected, **found} if expected.get(n) != found.get(n))
            raise RunError(
                f"{self.weights} does not fit {self.config}: {name} has shape {found.get(name)}, "
                f"the model wants {expected.get(name)}"
            )
        model = recipe.model.build()
        model.load_state_dict(tensors)
        return model.to(device).eval()


def changes(before: Recipe, now: Recipe) -> Iterator[tuple[str, Any, Any]]:
    """Settings that differ and that would change the numbers of a run."""
    old, new = to_table(before), to_table(now)
    for group in ("model", "task", "train"):
        for name in {**old[group], **new[group]}:
            one, other = old[group].get(name), new[group].get(name)
            watched = WATCHED | now.task.places
            free = {"train": HARMLESS, "model": now.task.fitted, "task": watched}[group]
            if one != other and name not in free:
                yield f"{group}.{name}", one, other
    if before.init != now.init:
        yield "init", before.init, now.init
