"""The figure that a task names decides which weights are kept, in the direction that it names."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from saccade.tasks.base import Deciding
from saccade.tasks.translation.task import Translation
from saccade.train.events import Validated
from saccade.train.run import train
from saccade.train.storage.checkpoint import Checkpoint
from tests.train.small import small_recipe, write_corpus
from tests.train.test_fit import trainer

HIGHER = Deciding("accuracy", label="accuracy in %", higher=True)
COURSE = [10.0, 30.0, 20.0, 30.0, math.nan, 40.0]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.fixture
def _decided_by_accuracy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss says the opposite, so that whoever follows it is found out."""
    course = iter(COURSE)

    def validate(*_: Any) -> dict[str, float]:
        value = next(course)
        return {"loss": value, "accuracy": value}

    monkeypatch.setattr(Translation, "deciding", HIGHER)
    monkeypatch.setattr(Translation, "validate", validate)


@pytest.mark.parametrize("higher", [False, True])
def test_better_is_strictly_better_and_no_number_never_is(higher: bool) -> None:
    deciding = Deciding("x", label="x", higher=higher)
    assert deciding.better(2.0, 1.0) == higher
    assert deciding.better(1.0, 2.0) != higher
    assert not deciding.better(1.0, 1.0)
    assert deciding.better(1.0, None)
    assert not deciding.better(math.nan, 1.0)
    assert not deciding.better(math.nan, None)


@pytest.mark.slow
@pytest.mark.usefixtures("_decided_by_accuracy")
def test_the_weights_of_the_highest_figure_are_kept_and_the_card_says_so(
    data: Path, tmp_path: Path
) -> None:
    events: list[object] = []
    outcome = train(small_recipe(data, steps=15, ema=0.0), tmp_path, events.append)
    checks = [event for event in events if isinstance(event, Validated)]
    assert [check.best for check in checks] == [True, True, False]
    assert outcome.best == {"loss": 30.0, "accuracy": 30.0}
    kept = load_file(tmp_path / "model.safetensors")
    newest = load_file(tmp_path / "checkpoints" / "step-00000015" / "model.safetensors")
    assert any(not kept[name].equal(tensor) for name, tensor in newest.items())
    card = (tmp_path / "README.md").read_text()
    assert "Best validation accuracy in % 30.0000 (loss 30.00), at step 10." in card
    state = json.loads((tmp_path / "checkpoints" / "step-00000015" / "state.json").read_text())
    assert state["best"] == outcome.best
    assert (state["best_step"], state["stale"]) == (10, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("_decided_by_accuracy")
def test_patience_follows_the_deciding_figure(data: Path, tmp_path: Path) -> None:
    outcome = train(small_recipe(data, patience=3), tmp_path, lambda event: None)
    assert outcome.step == 25
    assert outcome.best["accuracy"] == 30.0


@pytest.mark.parametrize(
    ("before", "best"), [(2.5, {"loss": 2.5}), (None, {})], ids=["validated", "not yet"]
)
def test_a_checkpoint_from_before_figures_had_names_is_read(
    before: float | None, best: dict[str, float], data: Path
) -> None:
    one = trainer(data)
    found = one.checkpoint()
    state = {name: value for name, value in found.state.items() if name != "best"}
    old = Checkpoint(3, found.tensors, {**state, "best_loss": before, "best_step": 2})
    one.restore(old)
    assert (one.best, one.best_step, one.step) == (best, 2, 3)
    assert one.checkpoint().state["best"] == best


def test_several_losses_are_followed_together_and_logged_apart(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = Translation.losses

    def with_size(self: Translation, model: Any, batch: Any) -> dict[str, torch.Tensor]:
        size = sum(p.square().sum() for p in model.parameters()) * batch.tokens * 1e-3
        return {**losses(self, model, batch), "size": size}

    train(small_recipe(data, steps=4, save_every=4), tmp_path / "plain", lambda event: None)
    monkeypatch.setattr(Translation, "losses", with_size)
    train(small_recipe(data, steps=4, save_every=4), tmp_path / "both", lambda event: None)
    plain, both = (
        [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("plain", "both")
    )
    updates = [line for line in both if "loss" in line]
    assert len(updates) == 4
    for line in updates:
        parts = line["loss_cross_entropy"] + line["loss_size"]
        assert line["loss"] == pytest.approx(parts, rel=1e-5)
    assert not any(name.startswith("loss_") for line in plain for name in line)
    first, alone = updates[0], plain[0]
    assert first["loss_cross_entropy"] == pytest.approx(alone["loss"], rel=1e-5)
    assert updates[-1]["loss_cross_entropy"] != plain[3]["loss"]  # the weights went elsewhere
