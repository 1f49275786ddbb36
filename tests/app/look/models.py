"""Untrained models with a vocabulary of their own, for looking at."""

from typing import NamedTuple

import torch

from saccade.data.tokens.vocabulary import Vocabulary
from saccade.models.text.gpt import GptConfig
from saccade.models.text.rnn_attention import RnnAttentionConfig
from saccade.models.text.transformer import TransformerConfig
from saccade.tasks.language.task import LanguageSettings
from saccade.tasks.language.writer import Writer
from saccade.tasks.translation.translator import Translator

TEXTS = ["The dog eats an apple.", "Le chien mange une pomme.", "They don't sing in Paris!"]


class Model(NamedTuple):
    name: str
    tool: Translator | Writer


def vocabulary() -> Vocabulary:
    return Vocabulary.train(TEXTS * 3, size=300)


def transformer(name: str = "transformer", *, seed: int = 0) -> Model:
    torch.manual_seed(seed)
    words = vocabulary()
    config = TransformerConfig(
        vocabulary=len(words), width=16, heads=2, depth=2, hidden=16, longest=128
    )
    return Model(name, Translator(config.build(), words))


def rnn() -> Model:
    torch.manual_seed(0)
    words = vocabulary()
    return Model(
        "rnn", Translator(RnnAttentionConfig(vocabulary=len(words), width=16).build(), words)
    )


def gpt(*, longest: int = 64, depth: int = 2, heads: int = 2, width: int = 16) -> Model:
    torch.manual_seed(0)
    words = vocabulary()
    config = GptConfig(
        vocabulary=len(words), width=width, heads=heads, depth=depth, longest=longest
    )
    settings = LanguageSettings(unit="stream", level="bpe")
    return Model("gpt", Writer(config.build(), words, settings))
