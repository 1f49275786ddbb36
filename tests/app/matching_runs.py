"""A run that compares images with texts, with fresh weights."""

from dataclasses import replace
from pathlib import Path

import torch

from saccade.tasks.matching.data import MatchingSettings
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.train.recipes import RECIPES
from saccade.train.storage.folder import RunFolder
from tests.models import zoo
from tests.tasks.matching.made import SMALL, TINY, vocabulary


def matching_run(folder: Path, encoder: str = "resnet-nano") -> Path:
    """A run of its own folder."""
    folder.mkdir(parents=True)
    known = vocabulary()
    model = replace(TINY, vocabulary=len(known), longest=24, encoder=encoder)
    run = RunFolder(folder)
    run.save_recipe(replace(RECIPES["clip"], model=model, task=MatchingSettings(**SMALL)))
    run.save_assets(tokenizer_asset(known))
    run.save_weights(zoo.build(model, torch.float32))
    return folder
