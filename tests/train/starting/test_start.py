"""Runs that start from weights: of another run, of others' folders, of a file."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from saccade.errors import CheckpointError, ConfigError, RunError
from saccade.models.names.table import to_theirs
from saccade.models.names.vit import LIBRARIES
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.vit import PRESETS, Vit, VitConfig
from saccade.tasks.classification import data as classified
from saccade.tasks.classification.data import ClassificationSettings
from saccade.train import fit
from saccade.train.recipe import Recipe, from_table, to_table
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.train.small import HaltError, halt_at, ignore, same_run, small_language, train_noting

VIT = VitConfig(image=32, patch=8, width=12, depth=1)
SETTINGS = TrainSettings(
    steps=4,
    batch_tokens=8,
    learning_rate=1e-3,
    ema=0.9,
    validate_every=2,
    save_every=1,
    log_every=1,
    device="cpu",
)


@pytest.fixture(autouse=True)
def _few_to_validate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classified, "HELD_BACK", 5)


def recipe(init: Path | str = "", **changes: Any) -> Recipe:
    return Recipe(
        about="small",
        system="S0",
        lecture="none",
        model=replace(VIT, **changes),
        task=ClassificationSettings(scenes=12, image=32),
        train=SETTINGS,
        init=str(init),
    )


def weights(**changes: Any) -> Vit:
    torch.manual_seed(7)
    return replace(VIT, **changes).build()


def test_another_run_gives_every_weight_also_to_the_average(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe(), tmp_path / "first", ignore)
    seen: list[tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]] = []
    advance = fit.Trainer.advance

    def watched(trainer: fit.Trainer) -> None:
        assert trainer.average is not None
        seen.append(
            tuple(
                {name: x.clone() for name, x in one.state_dict().items()}
                for one in (trainer.model, trainer.average.model)
            )  # type: ignore[arg-type]
        )
        advance(trainer)

    monkeypatch.setattr(fit.Trainer, "advance", watched)
    _, notes = train_noting(recipe(tmp_path / "first"), tmp_path / "second")
    expected = load_file(tmp_path / "first" / "model.safetensors")
    for state in seen[0]:
        assert all(torch.equal(state[name], expected[name]) for name in expected)
    assert f"starting from {tmp_path / 'first'}: 24 of 24 tensors loaded" in notes
    card = (tmp_path / "second" / "README.md").read_text()
    assert f"from the weights of {tmp_path / 'first'}." in card
    config = json.loads((tmp_path / "second" / "config.json").read_text())
    assert config["init"] == str(tmp_path / "first")


def test_any_model_can_start_from_a_run_of_its_own_kind(tmp_path: Path) -> None:
    train(small_language(), tmp_path / "first", ignore)
    again = replace(small_language(steps=1, validate_every=1), init=str(tmp_path / "first"))
    _, notes = train_noting(again, tmp_path / "second")
    assert any("starting from" in note and note.endswith("tensors loaded") for note in notes)
    assert not any("missing" in note for note in notes)


@pytest.mark.slow
def test_a_run_that_goes_on_needs_its_start_no_more_and_is_the_same_run(tmp_path: Path) -> None:
    start = tmp_path / "start.safetensors"
    save_file(weights(classes=8).state_dict(), start)
    train(recipe(start), tmp_path / "whole", ignore)
    with pytest.raises(HaltError):
        train(recipe(start), tmp_path / "halted", halt_at(3))
    start.unlink()
    _, notes = train_noting(recipe(start), tmp_path / "halted")
    assert not any("starting from" in note for note in notes)
    assert same_run(tmp_path / "whole", tmp_path / "halted") == []


def test_another_start_is_another_run(tmp_path: Path) -> None:
    train(recipe(), tmp_path / "run", ignore)
    with pytest.raises(RunError, match=r"started with init='', now '.*'; give the old value"):
        train(recipe(tmp_path / "run"), tmp_path / "run", ignore)


def test_where_a_run_starts_is_known_from_anywhere_and_kept_in_a_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = recipe("weights.pth").located()
    assert found.init == str(tmp_path / "weights.pth")
    assert from_table(to_table(found), where="here") == found
    assert "init" not in to_table(recipe())


def test_a_wrapped_file_for_other_classes_gives_all_but_the_head(tmp_path: Path) -> None:
    theirs = weights(classes=1000, image=64)
    file = tmp_path / "official.pth"
    state = to_theirs(LIBRARIES["timm"], theirs.state_dict())
    torch.save({"model": {f"module.{name}": x for name, x in state.items()}, "epoch": 3}, file)
    _, notes = train_noting(recipe(file), tmp_path / "run")
    told = "\n".join(notes)
    assert f"starting from {file}: 22 of 24 tensors loaded" in told
    assert "  1 resized (positions)" in told
    assert "  2 of a new head, zero at first (head.weight: 1000×12, not 8×12" in told


@pytest.mark.parametrize(
    ("file", "table", "says"),
    [
        ("preprocessor_config.json", {"image_mean": [0.5] * 3, "image_std": [0.5] * 3}, "half"),
        ("config.json", {"pretrained_cfg": {"mean": [0.5] * 3, "std": [0.5] * 3}}, "half"),
        ("config.json", {"task": {"pixels": "half"}}, "half"),
        ("config.json", {"task": {"pixels": "imagenet"}}, ""),
        ("config.json", {"pretrained_cfg": {"mean": [0.1] * 3, "std": [1.0] * 3}}, "neither"),
        ("config.json", {"pretrained_cfg": {"mean": 3, "std": [0.5, 0.5]}}, ""),
        ("config.json", {"pretrained_cfg": {"mean": [0.5] * 3, "std": [0.0] * 3}}, ""),
        ("config.json", [], ""),
    ],
)
def test_pixels_that_weights_do_not_expect_are_told_with_the_way_out(
    file: str, table: Any, says: str, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / file).write_text(json.dumps(table))
    notes = ClassificationSettings(pixels="imagenet").notes_on_start(folder)
    assert len(notes) == bool(says)
    if says == "half":
        assert notes[0].endswith("and --pixels imagenet gives others; add --pixels half")
        assert ClassificationSettings(pixels="half").notes_on_start(folder) == []
    elif says:
        assert "neither is in --pixels: imagenet, half" in notes[0]


@pytest.mark.slow
def test_the_size_that_a_file_has_is_named(tmp_path: Path) -> None:
    file = tmp_path / "small.safetensors"
    save_file(PRESETS["vit-nano"].build().state_dict(), file)
    with pytest.raises(CheckpointError) as error:
        train(recipe(file), tmp_path / "run", ignore)
    assert str(error.value).startswith(
        f"no weight of {file} fits this Vit: class_token: 96, not 12"
    )
    assert str(error.value).endswith("build it in that size (`saccade train vit-nano` has it)")
    shallow = {"width": 96, "depth": 2, "patch": 8}
    _, notes = train_noting(recipe(file, **shallow), tmp_path / "shallow")
    assert "  the whole of it would fit `saccade train vit-nano`" in notes


def test_what_cannot_be_started_from_is_refused_before_any_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*args: Any) -> None:
        raise AssertionError("data were read")

    monkeypatch.setattr(classified, "read_split", read)
    with pytest.raises(ConfigError, match=r"init=/nowhere is not there; name a run, a folder"):
        train(recipe("/nowhere"), tmp_path / "run", ignore)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"empty holds none of: model\.safetensors"):
        train(recipe(tmp_path / "empty"), tmp_path / "run", ignore)


def test_a_damaged_run_is_no_start(tmp_path: Path) -> None:
    train(recipe(), tmp_path / "first", ignore)
    file = tmp_path / "first" / "model.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with pytest.raises(RunError, match="is damaged: its SHA-256 is not the one"):
        train(recipe(tmp_path / "first"), tmp_path / "run", ignore)


@pytest.mark.slow
def test_another_architecture_is_refused_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "resnet.safetensors"
    save_file(ResNetConfig(depth=10, width=4).build().state_dict(), file)
    with pytest.raises(CheckpointError, match=r"is it of another architecture\?$") as error:
        train(recipe(file), tmp_path / "run", ignore)
    assert "\n" not in str(error.value)
