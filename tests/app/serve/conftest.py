"""Small runs with fresh weights, and a server of them that most tests share."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from saccade.config import ModelConfig
from saccade.data import lingua
from saccade.data.lingua import LinguaSettings
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.train.recipes import RECIPES
from saccade.train.storage.folder import RunFolder
from tests.app.serve.serving import LocalServer

SMALL = {"width": 32, "depth": 1, "heads": 4}
MODELS: dict[str, tuple[str, ModelConfig]] = {
    "translator": ("transformer", TransformerConfig(**SMALL, hidden=64, longest=300)),
    "other": ("transformer", TransformerConfig(**SMALL, hidden=64, longest=300)),
    "writer": ("gpt", GptConfig(**SMALL, longest=256)),
    "long": ("gpt", GptConfig(width=32, depth=4, heads=8, longest=2048)),
    "rnn": ("rnn-lm", RnnLanguageConfig(width=16)),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    pairs = lingua.pairs("train", 200, LinguaSettings())
    texts = [text for pair in pairs for text in (pair.source, pair.target)]
    vocabulary = Vocabulary.train(texts, size=500)
    made: dict[str, Path] = {}
    for seed, (name, (recipe, model)) in enumerate(MODELS.items()):
        torch.manual_seed(seed)
        path = made[name] = tmp_path_factory.mktemp("serve") / name
        path.mkdir()
        model = replace(model, vocabulary=len(vocabulary))
        folder = RunFolder(path)
        folder.save_recipe(replace(RECIPES[recipe], model=model))
        folder.save_assets(tokenizer_asset(vocabulary))
        folder.save_weights(model.build())
    return made


# Its threads must not be left to whatever is tested next: they draw from Python's random numbers
# when types are checked, which Hypothesis takes for a strategy that does.
@pytest.fixture(scope="module")
def server(runs: dict[str, Path]) -> Iterator[LocalServer]:
    paths = [path for name, path in runs.items() if name != "long"]
    with LocalServer(paths, text_characters=2000) as running:
        yield running
