"""From a run to an export: checked first, written once, and found again while it is fresh."""

from dataclasses import asdict
from pathlib import Path
from typing import Literal

import torch
from torch import nn

from saccade.app.export import ctranslate2 as to_ctranslate2
from saccade.app.export.ctranslate2 import Quantization
from saccade.app.export.folder import (
    check_place,
    default_folder,
    describe,
    is_fresh,
    require,
    write_export,
)
from saccade.app.export.readme import ctranslate2_readme, onnx_readme
from saccade.config import ModelConfig
from saccade.data.vocabulary import Vocabulary
from saccade.errors import ConfigError, RunError
from saccade.tasks.tokenizer import TOKENIZER
from saccade.train.folder import RunFolder

Target = Literal["ctranslate2", "onnx"]
PACKAGES: dict[Target, tuple[str, ...]] = {
    "ctranslate2": ("ctranslate2",),
    "onnx": ("onnx", "onnxscript"),
}


def check_exportable(config: ModelConfig, to: Target) -> None:
    """Refuse a model that an engine cannot run, and packages that are not there."""
    if to == "ctranslate2":
        to_ctranslate2.check(config)
    for package in PACKAGES[to]:
        require(package)


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
    if not run.path.is_dir():
        raise RunError(f"there is no run at {run.path}; `saccade train NAME` makes one")
    recipe = run.load_recipe()
    config, name = recipe.model, run.path.name
    if to != "ctranslate2" and quantization != "float32":
        raise ConfigError(f"quantization={quantization!r} is for --to ctranslate2; onnx is float32")
    check_exportable(config, to)
    final = out or default_folder(run, to, quantization)
    check_place(final)
    network = (model or run.load_model(torch.device("cpu"))).eval()
    description = describe(run, to, quantization)
    if is_fresh(final, description):
        return final, False
    vocabulary = Vocabulary.load(run.path / TOKENIZER)

    def fill(folder: Path) -> None:
        if to == "ctranslate2":
            to_ctranslate2.write_ctranslate2(network, vocabulary, folder, quantization)
            translates = to_ctranslate2.check(config).translates
            text = ctranslate2_readme(name, quantization, vocabulary, translates=translates)
        else:
            from saccade.app.export.onnx import write_onnx

            text = onnx_readme(name, vocabulary, *write_onnx(network, folder, asdict(recipe.task)))
        (folder / "README.md").write_text(text, encoding="utf-8")

    write_export(run, final, description, fill)
    return final, True
