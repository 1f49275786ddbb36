"""A tiny run of each kind, trained once for all tests of the app."""

from dataclasses import replace
from pathlib import Path

import pytest

from saccade.data.lingua import LinguaSettings
from saccade.models.caption.show_attend_tell import ShowAttendTellConfig
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.models.text.bert import BertConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.rnn_language import RnnLanguageConfig
from saccade.models.vision.vit import VitConfig
from saccade.tasks.captioning.data import CaptioningSettings
from saccade.tasks.classification.data import ClassificationSettings
from saccade.tasks.detection.data import DetectionSettings
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.masked.task import MaskedSettings
from saccade.tasks.reconstruction.data import ReconstructionSettings
from saccade.tasks.translation.task import TranslationSettings
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.train.recipe import Recipe
from saccade.train.recipes import RECIPES
from saccade.train.run import train
from saccade.train.settings import TrainSettings
from tests.app.joint_runs import joint_runs
from tests.app.look.detectors import TINY_DETR
from tests.app.matching_runs import matching_run

QUICK = TrainSettings(steps=4, batch_tokens=512, validate_every=2, device="cpu")


def tiny_translator() -> Recipe:
    return replace(
        RECIPES["rnn-attention"],
        model=RnnAttentionConfig(width=16),
        task=TranslationSettings(
            vocabulary=300, pairs=60, lingua=LinguaSettings(shortest=3, longest=8)
        ),
        train=QUICK,
    )


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "translator"
    train(tiny_translator(), folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "writer"
    recipe = replace(
        RECIPES["rnn-lm"],
        model=RnnLanguageConfig(width=16),
        task=LanguageSettings(unit="lines", level="words", sentences=60),
        train=QUICK,
    )
    train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def captioner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "captioner"
    recipe = Recipe(
        about="tiny",
        system="S11",
        lecture="none",
        model=ShowAttendTellConfig(width=16, hidden=16),
        task=CaptioningSettings(image=32, scenes=24, longest=20),
        train=replace(QUICK, steps=2),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.tasks.captioning.data.HELD_BACK", 12)
        train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def understander(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "understander"
    recipe = Recipe(
        about="tiny",
        system="S9",
        lecture="none",
        model=BertConfig(width=16, depth=2, heads=2, hidden=16, longest=64, dropout=0.0),
        task=UnderstandingSettings(vocabulary=300, count=40, longest=64),
        train=replace(QUICK, steps=2),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.tasks.understanding.data.HELD_BACK", 12)
        train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "classifier"
    recipe = Recipe(
        about="tiny",
        system="S17",
        lecture="none",
        model=VitConfig(image=32, patch=8, width=16, depth=2, heads=2),
        task=ClassificationSettings(image=32, scenes=24),
        train=replace(QUICK, steps=2, batch_tokens=8),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.tasks.classification.data.HELD_BACK", 12)
        train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def tokenizer_of_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "dvae"
    recipe = replace(
        RECIPES["dvae"],
        model=DvaeConfig(image=32, codes=16, width=8, groups=2, patch=4, blocks=1, code_width=8),
        task=ReconstructionSettings(image=32, scenes=24),
        train=replace(QUICK, batch_tokens=8),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.tasks.reconstruction.data.HELD_BACK", 12)
        train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def detector(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "detector"
    recipe = Recipe(
        about="tiny",
        system="S23",
        lecture="none",
        model=TINY_DETR,
        task=DetectionSettings(image=32, scenes=24),
        train=replace(QUICK, steps=2, batch_tokens=8),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.tasks.detection.data.HELD_BACK", 12)
        train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "filler"
    recipe = replace(
        RECIPES["bert"],
        model=BertConfig(width=16, depth=2, heads=2, hidden=16, longest=200),
        task=MaskedSettings(vocabulary=320, sentences=60, window=200),
        train=QUICK,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("saccade.tasks.masked.task.HELD_BACK", 40)
        train(recipe, folder, lambda event: None)
    return folder


@pytest.fixture(scope="session")
def joint(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run of each kind that reads images and texts together, and one that looks at cells."""
    return joint_runs(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="session")
def matcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return matching_run(tmp_path_factory.mktemp("runs") / "matcher")
