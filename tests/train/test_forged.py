"""Numbers that cannot be: in a validation, and in a checkpoint whose digests are right."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save

from saccade.errors import CheckpointError, TrainingError
from saccade.tasks.translation.task import Translation
from saccade.train.run import train
from tests.train.small import ignore, small_recipe, write_corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Path:
    train(small_recipe(data, steps=3), tmp_path / "run", ignore)
    return tmp_path / "run"


@pytest.mark.slow
@pytest.mark.parametrize("value", [float("nan"), float("inf"), 800.0])
def test_a_run_whose_validation_is_no_number_ends_with_a_plain_statement(
    value: float, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = {"loss": value, "perplexity": float("inf")}
    monkeypatch.setattr(Translation, "validate", lambda *_: figures)
    for _ in range(2):  # and again, when it is started again
        if value == 800.0:
            train(small_recipe(data, steps=6), tmp_path, ignore)
        else:
            with pytest.raises(TrainingError, match="so it has no weights to use") as raised:
                train(small_recipe(data, steps=6), tmp_path, ignore)
            assert raised.value.exit_code == 1
    assert (tmp_path / "model.safetensors").exists() == (value == 800.0)
    for line in (tmp_path / "metrics.jsonl").read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    for path in tmp_path.rglob("state.json"):
        json.loads(path.read_text(), parse_constant=pytest.fail)


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a parameter that there is not": lambda state: state.update({"99.step": state["0.step"]}),
    "a number below 0": lambda state: state.update({"-1.step": state.pop("0.step")}),
    "no number": lambda state: state.update({"x.step": state.pop("0.step")}),
    "a part missing": lambda state: state.pop("0.exp_avg"),
    "a part too many": lambda state: state.update({"0.more": state["0.step"]}),
    "another shape": lambda state: state.update({"0.exp_avg": state["0.exp_avg"][:1]}),
    "steps that are many": lambda state: state.update({"0.step": state["0.exp_avg"]}),
    "whole numbers": lambda state: state.update({"0.exp_avg": state["0.exp_avg"].long()}),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_optimizer_is_refused(what: str, run: Path, data: Path) -> None:
    newest = max((run / "checkpoints").glob("step-*"))
    tensors = load_file(newest / "optimizer.safetensors")
    FORGED[what](tensors)
    content = save({name: tensor.clone() for name, tensor in tensors.items()})
    (newest / "optimizer.safetensors").write_bytes(content)
    manifest = json.loads((newest / "manifest.json").read_text())
    manifest["optimizer.safetensors"] = hashlib.sha256(content).hexdigest()
    (newest / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match="step 3 is of another model"):
        train(small_recipe(data, steps=6), run, ignore)
