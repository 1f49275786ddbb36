"""From a run to an export: checked first, written once, and found again while it is fresh."""

from pathlib import Path
from typing import Literal

import torch
from torch import nn

from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.folder import (
    check_place,
    default_folder,
    describe,
    is_fresh,
    require,
    write_export,
)
from saccade.app.kinds import kind_for
from saccade.app.kinds.base import Exporter, LoadedRun
from saccade.errors import ConfigError
from saccade.train.recipe import Recipe
from saccade.train.storage.folder import RunFolder

Target = Literal["ctranslate2", "onnx", "huggingface", "timm"]


def checked_exporter(recipe: Recipe, to: Target) -> Exporter:
    """How such a run is written; refuses what has no counterpart, and packages that are missing."""
    kind = kind_for(recipe.task)
    if to not in kind.exports:
        there = " or ".join(f"--to {one}" for one in kind.exports) or "nothing yet"
        raise ConfigError(f"runs of {kind.name} cannot be exported to {to}; there is {there}")
    exporter = kind.exports[to]
    exporter.check(recipe)
    for package in exporter.packages:
        require(package)
    return exporter


def export_run(
    run: RunFolder,
    to: Target,
    *,
    out: Path | None = None,
    quantization: Quantization = "float32",
    model: nn.Module | None = None,
) -> tuple[Path, bool]:
    """The folder of an export, and whether it had to be written.

    It is left as it is when it was made of these very weights. `model` saves reading them again.
    """
    recipe = run.load_recipe()
    exporter = checked_exporter(recipe, to)
    if not exporter.quantizes and quantization != "float32":
        raise ConfigError(f"quantization={quantization!r} is for --to ctranslate2; {to} is float32")
    final = out or default_folder(run, to, quantization)
    check_place(final)
    network = (model or run.load_model(torch.device("cpu"))).eval()
    description = describe(run, to, quantization, *exporter.assets)
    if is_fresh(final, description):
        return final, False

    def fill(folder: Path) -> None:
        text = exporter.fill(LoadedRun(run, recipe, network), folder, quantization)
        (folder / "README.md").write_text(text, encoding="utf-8")

    write_export(run, final, description, fill, *exporter.assets)
    return final, True
