"""A recipe of two stages: what comes first is trained beside it, once, and may be stopped."""

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from saccade.errors import ConfigError
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.tasks.reconstruction.task import Reconstruction
from saccade.train.events import Note, Update
from saccade.train.recipe import Recipe, from_table, to_table
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.storage.checkpoint import read_tensors

pytestmark = pytest.mark.slow  # every test trains two models

DVAE = DvaeConfig(image=32, codes=8, width=4, groups=2, patch=4, blocks=1, code_width=4)
DALLE = DalleConfig(text=28, width=8, depth=2, heads=2, kernel=3)


@pytest.fixture
def recipe() -> Recipe:
    whole = RECIPES["dalle"]
    (stage,) = whole.stages
    quick = {"steps": 6, "batch_tokens": 4, "validate_every": 3, "save_every": 2, "warmup": 1}
    first = replace(stage.recipe, model=DVAE, train=replace(stage.recipe.train, **quick))
    return replace(
        whole,
        model=DALLE,
        task=replace(whole.task, image=32, scenes=12),
        train=replace(whole.train, **quick, log_every=1, device="cpu"),
        stages=(replace(stage, recipe=first),),
    )


def told(into: list[str]) -> Callable[[object], None]:
    def watch(event: object) -> None:
        if isinstance(event, Note):
            into.append(event.text)

    return watch


class StoppedError(Exception):
    """As if killed."""


def killed_in(stage: int, step: int) -> Callable[[object], None]:
    seen: list[int] = []

    def watch(event: object) -> None:
        if isinstance(event, Update):
            seen.append(event.step)
            if seen.count(1) == stage and event.step == step:
                raise StoppedError

    return watch


def same(one: Path, other: Path) -> bool:
    ours, theirs = (read_tensors(run / "model.safetensors") for run in (one, other))
    return all(ours[name].equal(theirs[name]) for name in ours)


def test_the_first_stage_lies_beside_and_is_trained_once(recipe: Recipe, tmp_path: Path) -> None:
    notes: list[str] = []
    train(recipe, tmp_path / "dalle", told(notes))
    assert any(note.startswith("first ") and "dalle-dvae" in note for note in notes)
    before = (tmp_path / "dalle-dvae" / "model.safetensors").stat().st_mtime_ns
    longer = replace(recipe, train=replace(recipe.train, steps=8))
    again: list[str] = []
    assert train(longer, tmp_path / "dalle", told(again)).step == 8
    assert not any(note.startswith("first ") for note in again)
    assert (tmp_path / "dalle-dvae" / "model.safetensors").stat().st_mtime_ns == before


PAIRS = {"level": "bpe", "vocabulary": 300, "bpe_dropout": 0.3}  # pieces that chance decides on


@pytest.mark.parametrize(("stage", "texts"), [(1, {}), (2, {}), (2, PAIRS)])
def test_killed_in_either_stage_it_goes_on_to_the_same_bits(
    recipe: Recipe, tmp_path: Path, stage: int, texts: dict[str, Any]
) -> None:
    recipe = replace(recipe, task=replace(recipe.task, **texts))
    if texts:
        recipe = replace(recipe, model=replace(DALLE, text=90))
    train(recipe, tmp_path / "whole", lambda event: None)
    with pytest.raises(StoppedError):
        train(recipe, tmp_path / "broken", killed_in(stage, 5))
    train(recipe, tmp_path / "broken", lambda event: None)
    assert same(tmp_path / "whole-dvae", tmp_path / "broken-dvae")
    assert same(tmp_path / "whole", tmp_path / "broken")


def test_a_last_validation_that_was_broken_off_is_made_before_the_next_stage(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(recipe, tmp_path / "whole", lambda event: None)
    count, real = [0], Reconstruction.validate

    def validate(*arguments: Any) -> dict[str, float]:
        count[0] += 1
        if count[0] == 2:  # after updates 3 and 6, of 6
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("went on after the signal")
        return real(*arguments)

    monkeypatch.setattr(Reconstruction, "validate", validate)
    assert train(recipe, tmp_path / "broken", lambda event: None).signal == signal.SIGINT
    train(recipe, tmp_path / "broken", lambda event: None)
    assert count[0] == 3
    assert same(tmp_path / "whole-dvae", tmp_path / "broken-dvae")
    assert same(tmp_path / "whole", tmp_path / "broken")


def test_a_run_that_the_user_names_is_taken(recipe: Recipe, tmp_path: Path) -> None:
    train(recipe, tmp_path / "one", lambda event: None)
    named = replace(recipe, task=replace(recipe.task, dvae=str(tmp_path / "one-dvae")))
    train(named, tmp_path / "two", lambda event: None)
    assert not (tmp_path / "two-dvae").exists()
    assert same(tmp_path / "one", tmp_path / "two")


def test_both_stages_have_the_same_data_device_and_seed(recipe: Recipe) -> None:
    (stage,) = recipe.stages
    given = replace(recipe, train=replace(recipe.train, seed=7))
    first = stage.before(given)
    assert (first.train.seed, first.train.device) == (7, "cpu")
    assert vars(first.task)["image"] == 32
    assert vars(first.task)["scenes"] == 12
    assert vars(first.task)["shapes"] == vars(recipe.task)["shapes"]


def test_a_run_that_is_none_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    named = replace(recipe, task=replace(recipe.task, dvae=str(tmp_path / "nothing")))
    with pytest.raises(ConfigError, match=r"--dvae: there is no run at .*nothing"):
        train(named, tmp_path / "dalle", lambda event: None)


def test_stages_that_cannot_be_are_refused(recipe: Recipe) -> None:
    table = {**to_table(recipe), "stages": [{"option": "dvae"}]}
    with pytest.raises(ConfigError, match="here: stages must be a list of tables"):
        from_table(table, where="here")


@pytest.mark.parametrize("how", [{"shard": 3}, {"shard": 3, "optimizer": "muon"}])
def test_what_cannot_be_split_is_refused_before_a_stage_is_trained(
    how: dict[str, Any], tmp_path: Path
) -> None:
    recipe = replace(RECIPES["dalle"], train=replace(RECIPES["dalle"].train, **how))
    with pytest.raises(ConfigError, match="shard=3 does not divide the number of processes, 1"):
        train(recipe, tmp_path / "run", lambda event: None)
    assert list(tmp_path.iterdir()) == []
