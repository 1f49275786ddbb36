"""Whole trainings beside the Trainer: both begin alike, and who is absent is named."""

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from saccade.app.bench.finetune import Beginning, FineTuneBench, check_peer
from saccade.app.bench.floor import Machine
from saccade.app.cli.bench import bench_command
from saccade.errors import ConfigError
from saccade.models.text.bert import BertConfig
from saccade.tasks.base import Preparation
from saccade.train.run import train

TINY = FineTuneBench(device="cpu", count=40, epochs=2, batch=8)
QUICK = ["finetune", "--device", "cpu", "--count", "40", "--epochs", "2", "--batch", "8"]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("saccade.app.cli.bench.measure_machine", lambda *_: Machine(1e12, 1e11))
    monkeypatch.setattr("saccade.tasks.understanding.data.HELD_BACK", 30)


def test_both_begin_with_the_same_texts_and_as_many_to_an_update() -> None:
    begun = Beginning.of(TINY)
    assert (len(begun.train), len(begun.valid)) == (40, 30)
    settings = begun.recipe.train
    how = Preparation(budget=settings.batch_tokens, seed=0, batching=settings.batches)
    task = begun.recipe.task.prepare(how)
    assert task.batches_per_epoch in (5, 6)  # forty texts, eight to an update
    of_ours = sorted(
        tuple(task.batch(place).words.tokens[start:end].tolist())
        for place in range(task.batches_per_epoch)
        for words in [task.batch(place).words]
        for start, end in zip(words.starts.tolist(), words.starts.tolist()[1:])
        if start < words.real
    )
    assert of_ours == sorted(tuple(item["input_ids"]) for item in begun.train)


def test_the_weights_of_the_peer_are_those_that_ours_starts_with(tmp_path: Path) -> None:
    begun = Beginning.of(TINY)
    still = replace(begun.recipe.train, learning_rate=0.0, weight_decay=0.0)
    train(replace(begun.recipe, train=still), tmp_path / "run", lambda event: None)
    kept = load_file(tmp_path / "run" / "model.safetensors")
    for name, tensor in begun.model.state_dict().items():
        torch.testing.assert_close(kept[name], tensor)


def test_without_its_packages_the_trainer_is_named_and_ours_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("saccade.app.bench.finetune.find_spec", lambda name: None)
    assert bench_command(QUICK) == 0
    said = capsys.readouterr().out
    assert "not measured: trainer (transformers is not installed)" in said
    assert "2 epochs of fine-tuning on 40 texts of lingua (acceptable), 8 to a batch" in said
    assert "accuracy" in said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what others warn of is not ours to mend
def test_the_trainer_is_timed_and_scored_beside_ours(capsys: pytest.CaptureFixture[str]) -> None:
    if find_spec("accelerate") is None:
        pytest.skip("accelerate is not installed")
    assert bench_command([*QUICK, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["results"]
    ours, theirs = found["rows"]
    assert (ours["name"], theirs["name"], found["absent"]) == ("saccade", "trainer", {})
    assert ours["ratio"] == pytest.approx(theirs["seconds"] / ours["seconds"])
    assert abs(ours["figures"]["loss"] - theirs["figures"]["loss"]) < 0.1


def test_relatives_that_the_peer_would_compute_otherwise_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("saccade.app.bench.finetune.find_spec", lambda name: name)
    with pytest.raises(ConfigError, match="only BERT itself"):
        check_peer(BertConfig(types=1, first_position=2))
    check_peer(BertConfig())


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="epochs=0 must be at least 1"):
        FineTuneBench(epochs=0)
    with pytest.raises(ConfigError, match="peers=keras is not one of trainer"):
        FineTuneBench(peers="keras")


def test_tags_are_not_raced(tmp_path: Path) -> None:
    for split in ("train", "valid"):
        (tmp_path / f"{split}.conll").write_text("a X\nb Y\n\nb Y\na X\n\n")
    with pytest.raises(ConfigError, match="the bench tells classes or numbers, not tags"):
        Beginning.of(replace(TINY, data=str(tmp_path)))
