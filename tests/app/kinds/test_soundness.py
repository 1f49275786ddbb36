"""Runs that could only fail later are refused when they are loaded."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import saccade
from saccade.errors import RunError


@pytest.fixture
def copy(translator: Path, tmp_path: Path) -> Path:
    return shutil.copytree(translator, tmp_path / "copy")


def put(run: Path, value: float) -> str:
    """One value among the weights; gives back the name of the tensor."""
    file = run / "model.safetensors"
    weights = load_file(file)
    name = next(name for name, tensor in weights.items() if tensor.dim() > 1)
    weights[name][0, 0] = value
    save_file(weights, file)
    unlisted(run)
    return name


def unlisted(run: Path) -> None:
    """Without its checksums, which would refuse a changed file for another reason."""
    (run / "manifest.json").unlink()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_not_finite_are_refused_by_name(copy: Path, value: float) -> None:
    name = put(copy, value)
    with pytest.raises(RunError, match=f"{name} holds values that are not finite") as caught:
        saccade.load(copy, device="cpu")
    assert "\n" not in str(caught.value)


def test_large_weights_are_weights(copy: Path) -> None:
    put(copy, torch.finfo(torch.float32).max)
    saccade.load(copy, device="cpu")


def add_token(run: Path, number: int) -> None:
    file = run / "tokenizer.json"
    table = json.loads(file.read_bytes())
    table["model"]["vocab"]["ʬ"] = number
    file.write_text(json.dumps(table))
    unlisted(run)


def test_a_tokenizer_with_tokens_that_the_model_does_not_know_is_refused(copy: Path) -> None:
    known = saccade.load(copy, device="cpu").recipe.model.vocabulary
    add_token(copy, known)
    said = rf"has tokens up to {known}, and the model knows {known}: .* copy the run again"
    with pytest.raises(RunError, match=said):
        saccade.load(copy, device="cpu")
