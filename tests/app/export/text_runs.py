"""Runs of text models with random weights, small ones of every kind; nothing is trained."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from saccade.config import ModelConfig
from saccade.data.readers.labelled_texts.rows import LabelKind
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.text.bert import BertConfig
from saccade.models.text.electra import ElectraConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.text_encoder import TextEncoderConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.base import TaskSettings
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.masked.task import MaskedSettings
from saccade.tasks.tokenizer import tokenizer_asset
from saccade.tasks.translation.task import TranslationSettings
from saccade.tasks.understanding.data import UnderstandingSettings
from saccade.tasks.understanding.labels import ASSET, Labels
from saccade.train.recipe import Recipe
from saccade.train.settings import TrainSettings
from saccade.train.storage.folder import RunFolder

TEXTS = [
    "The old dog sleeps.",
    "a river runs, and a tree falls; élan!",
    "Dogs do not sing </s> <end of text> [SEP]",
    "one",
]
TRANSFORMER = TransformerConfig(width=16, depth=2, heads=2, hidden=24, longest=60, dropout=0.2)
GPT = GptConfig(width=16, depth=2, heads=2, longest=40, dropout=0.1)
BERT = BertConfig(width=16, depth=2, heads=2, hidden=24, longest=40, dropout=0.3)
ROBERTA = replace(BERT, types=1, first_position=1, epsilon=1e-5)
DISTILBERT = replace(BERT, types=0, pooling="relu")
ELECTRA = replace(BERT, pooling="gelu", embedding_width=10)
PRETRAINED = ElectraConfig(
    width=16, depth=2, heads=2, hidden=24, longest=40, embedding_width=10, generator=0.5
)
RELATIVES = {"bert": BERT, "roberta": ROBERTA, "distilbert": DISTILBERT, "electra": ELECTRA}
LABELS: dict[LabelKind, Labels] = {
    "classes": Labels("classes", ("nein", "ja", "vielleicht")),
    "number": Labels("number", mean=2.5, deviation=1.25),
    "labels": Labels("labels", ("a", "b", "c")),
    "tags": Labels("tags", ("NOUN", "VERB", "."), pairs=False),
}


def vocabulary(level: Any = "bpe", *, masks: bool = False) -> Vocabulary:
    return Vocabulary.train(TEXTS * 3, level=level, size=300, masks=masks)


def write_run(
    folder: Path, model: ModelConfig, task: TaskSettings, words: Vocabulary, **assets: bytes
) -> tuple[RunFolder, Any]:
    """A run as training would leave it, and its network."""
    torch.manual_seed(1)
    config = replace(model, vocabulary=len(words))  # type: ignore[call-arg]
    network: nn.Module = config.build().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    folder.mkdir(parents=True)
    run = RunFolder(folder)
    run.save_recipe(
        Recipe(
            about="small",
            system="S0",
            lecture="none",
            model=config,
            task=task,
            train=TrainSettings(steps=1),
        )
    )
    run.save_assets({**tokenizer_asset(words), **assets})
    run.save_weights(network)
    return run, network


def write_translator(
    folder: Path, model: ModelConfig, *, level: Any = "bpe", words: Vocabulary | None = None
) -> tuple[RunFolder, Any]:
    task = TranslationSettings(data="none", source="en", target="fr", level=level)
    return write_run(folder, model, task, words or vocabulary(level))


def write_writer(folder: Path, *, unit: Any = "lines", level: Any = "bpe") -> tuple[RunFolder, Any]:
    return write_run(folder, GPT, LanguageSettings(unit=unit, level=level), vocabulary(level))


def write_filler(
    folder: Path, model: ModelConfig, *, words: Vocabulary | None = None
) -> tuple[RunFolder, Any]:
    return write_run(folder, model, MaskedSettings(), words or vocabulary(masks=True))


def write_classifier(
    folder: Path,
    model: TextEncoderConfig,
    labels: Labels,
    *,
    longest: int = 30,
    words: Vocabulary | None = None,
) -> tuple[RunFolder, Any]:
    config = replace(model, head=labels.head, labels=labels.width)
    settings = UnderstandingSettings(longest=longest)
    return write_run(folder, config, settings, words or vocabulary(), **{ASSET: labels.to_json()})
