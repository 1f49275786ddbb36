"""Tiny Transformer and GPT runs as folders; nothing is trained, the weights are merely large."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.train.recipe import Recipe
from saccade.train.storage.folder import RunFolder
from tests.models import zoo
from tests.train.small import pairs, small_language, small_recipe


def write_run(recipe: Recipe, texts: list[str], folder: Path) -> Path:
    vocabulary = Vocabulary.train(texts, level="words")
    recipe = replace(recipe, model=replace(recipe.model, vocabulary=len(vocabulary)))
    folder.mkdir()
    run = RunFolder(folder)
    run.save_recipe(recipe)
    run.save_assets(tokenizer_asset(vocabulary))
    run.save_weights(zoo.build(recipe.model, torch.float32))
    return folder


@pytest.fixture(scope="session")
def translator_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [text for pair in pairs(60) for text in pair]
    return write_run(small_recipe("none"), texts, tmp_path_factory.mktemp("exported") / "run")


@pytest.fixture(scope="session")
def writer_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exported") / "writer"
    return write_run(small_language(), ["I think therefore I am"], folder)
