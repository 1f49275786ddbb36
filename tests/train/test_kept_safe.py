"""What lies where a run is to be is not lost, and a run that cannot begin leaves nothing there."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from saccade.errors import ConfigError, RunError
from saccade.train.run import train
from tests.train.small import HaltError, ignore, small_recipe, write_corpus


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_corpus(tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("name", ["README.md", "model.safetensors", "metrics.jsonl"])
def test_a_folder_of_somebody_else_is_not_written_over(
    name: str, data: Path, tmp_path: Path
) -> None:
    (tmp_path / name).write_text("mine")
    for how in ({}, {"start_over": True}):
        with pytest.raises(RunError, match=f"is not a run and holds {name}, .* another folder"):
            train(small_recipe(data, steps=1), tmp_path, ignore, **how)
    assert {one.name for one in tmp_path.iterdir()} == {name, ".lock"}
    assert (tmp_path / name).read_text() == "mine"


def test_weights_whose_checkpoints_are_gone_are_not_trained_over(
    data: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    train(small_recipe(data, steps=1), folder, ignore)
    learnt = (folder / "model.safetensors").read_bytes()
    shutil.rmtree(folder / "checkpoints")
    recipe = small_recipe(data, steps=2)
    with pytest.raises(
        RunError, match=r"checkpoints to go on from are gone; --init .*--start-over"
    ):
        train(recipe, folder, ignore)
    assert (folder / "model.safetensors").read_bytes() == learnt
    beside = replace(recipe, init=str(folder))
    assert train(beside, tmp_path / "beside", ignore).step == 2
    assert train(recipe, folder, ignore, start_over=True).step == 2


def test_a_folder_made_for_a_run_that_cannot_begin_is_gone(data: Path, tmp_path: Path) -> None:
    recipe = replace(small_recipe(data, steps=1), init=str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="is not there"):
        train(recipe, tmp_path / "new", ignore)
    assert not (tmp_path / "new").exists()
    (tmp_path / "there").mkdir()
    with pytest.raises(ConfigError, match="is not there"):
        train(recipe, tmp_path / "there", ignore)
    assert (tmp_path / "there").is_dir()


def test_it_is_gone_with_the_tokenizer_that_was_made_for_it(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new"

    def watch(event: object) -> None:
        if (folder / "tokenizer.json").exists():
            raise HaltError

    with pytest.raises(HaltError):
        train(small_recipe(data, steps=1), folder, watch)
    assert not folder.exists()


def test_it_stays_with_what_else_was_put_into_it(data: Path, tmp_path: Path) -> None:
    def watch(event: object) -> None:
        (tmp_path / "new" / "cache").mkdir()
        raise HaltError

    with pytest.raises(HaltError):
        train(small_recipe(data, steps=1), tmp_path / "new", watch)
    assert (tmp_path / "new" / "cache").is_dir()
