"""A run of a text-to-image model with fresh weights."""

from pathlib import Path

from saccade.tasks.reconstruction.asset import ASSET, dvae_asset
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder
from tests.tasks.text_to_image.drawers import (
    TINY_TASK,
    networks,
    prompt_vocabulary,
    tiny_dalle,
)


def drawer_run(folder: Path, *, seed: int = 0) -> Path:
    """A run of its own folder."""
    folder.mkdir(parents=True)
    model, dvae = networks(seed)
    run = RunFolder(folder)
    recipe = Recipe(
        about="tiny",
        system="",
        lecture="",
        model=tiny_dalle(),
        task=TINY_TASK,
        train=TrainSettings(),
    )
    run.save_recipe(recipe)
    run.save_assets({**tokenizer_asset(prompt_vocabulary()), ASSET: dvae_asset(dvae)})
    run.save_weights(model)
    return folder
