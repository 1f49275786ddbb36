"""Every kind of model, small: each preset with its choices kept, and every option by itself."""

from dataclasses import fields, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from saccade.config import ModelConfig
from saccade.models import (
    PRESETS,
    ConvSeq2SeqConfig,
    GptConfig,
    RnnAttentionConfig,
    RnnLanguageConfig,
    Seq2SeqConfig,
    TransformerConfig,
)
from saccade.models.caption.captioner import CaptionerConfig
from saccade.models.detection.config import DetrConfig
from saccade.models.image_tokens.dalle import DalleConfig
from saccade.models.image_tokens.dvae import DvaeConfig
from saccade.models.joint.clip import ClipConfig
from saccade.models.joint.config import VilbertConfig
from saccade.models.text.text_encoder import TextEncoderConfig
from saccade.models.vision.image_encoder import ImageEncoderConfig

VOCABULARY = 11
SMALL = {"vocabulary": VOCABULARY, "width": 8, "heads": 2, "hidden": 16, "longest": 24}
CELLS = ("vanilla", "gru", "lstm")
PROJECTIONS = ("identity", "linear", "sigmoid")


def shrunk(config: ModelConfig) -> ModelConfig:
    """The same choices in a few hundred weights, without chance."""
    sizes: dict[str, Any] = {"dropout": 0.0, **SMALL, "depth": min(2, config.depth)}  # type: ignore[attr-defined]
    known = {field.name for field in fields(config)}
    return replace(config, **{name: size for name, size in sizes.items() if name in known})


def _small(kind: Any, **options: Any) -> ModelConfig:
    return shrunk(kind(**options))


def distinct(configs: dict[str, ModelConfig]) -> dict[str, ModelConfig]:
    """Sizes that shrink to the same model are one, under the name of the first."""
    first = {config: name for name, config in reversed(configs.items())}
    return {name: config for name, config in configs.items() if first[config] == name}


# which have their own zoos
JOINT = ClipConfig | VilbertConfig
CODES = DalleConfig | DvaeConfig
OTHERS = CaptionerConfig | DetrConfig | ImageEncoderConfig | TextEncoderConfig | JOINT | CODES
PRESETS_SHRUNK = {
    name: shrunk(config) for name, config in PRESETS.items() if not isinstance(config, OTHERS)
}
LANGUAGE_KINDS = (RnnLanguageConfig, GptConfig)

_TRANSLATORS: dict[str, ModelConfig] = {
    **{
        f"seq2seq {cell} reverse={back}": _small(Seq2SeqConfig, cell=cell, reverse=back, depth=2)
        for cell, back in product(CELLS, (False, True))
    },
    **{
        f"rnn-attention {cell} {context} depth={depth}": _small(
            RnnAttentionConfig, cell=cell, context=context, depth=depth, directions=depth
        )
        for (cell, depth), context in product(
            (("vanilla", 1), ("gru", 2), ("lstm", 2)), ("readout", "input", "layer")
        )
    },
    **{
        f"convolutional kernel={kernel} depth={depth}": _small(
            ConvSeq2SeqConfig, kernel=kernel, depth=depth
        )
        for kernel, depth in ((2, 1), (3, 2), (4, 2))
    },
    **{
        f"transformer {residual} {positions}": _small(
            TransformerConfig, residual=residual, positions=positions
        )
        for residual, positions in (
            *product(("post", "pre"), ("sinusoids", "learned")),
            ("post", "raw-index"),
            ("pre", "saturating"),
            ("post", "one-sinusoid"),
            ("pre", "none"),
        )
    },
    "transformer swish with a bias of words": _small(
        TransformerConfig, activation="swish", output_bias=True
    ),
    "transformer gelu": _small(TransformerConfig, activation="gelu"),
    **{n: c for n, c in PRESETS_SHRUNK.items() if not isinstance(c, LANGUAGE_KINDS)},
}

# All scores with all contexts, keys and values: what a Reader can be.
READERS: dict[str, ModelConfig] = {
    f"{score} {context} keys={keys} values={values}": _small(
        RnnAttentionConfig, score=score, context=context, keys=keys, values=values, cell="gru"
    )
    for score, context, keys, values in product(
        ("mlp", "dot", "scaled-dot", "multiplicative"),
        ("readout", "input", "layer"),
        PROJECTIONS,
        PROJECTIONS,
    )
}

_LANGUAGE: dict[str, ModelConfig] = {
    **{
        f"rnn-language {cell} {words} tied={tied} depth={depth}": _small(
            RnnLanguageConfig, cell=cell, words=words, tied=tied, depth=depth
        )
        for (cell, depth), (words, tied) in product(
            (("vanilla", 1), ("gru", 2), ("lstm", 2)),
            (("embedded", False), ("embedded", True), ("one-hot", False)),
        )
    },
    **{n: c for n, c in PRESETS_SHRUNK.items() if isinstance(c, LANGUAGE_KINDS)},
}

# A quarter of them, in which every two options still meet.
SOME_READERS = dict(list(READERS.items())[::4])

TRANSLATORS, LANGUAGE = distinct(_TRANSLATORS), distinct(_LANGUAGE)

SOURCE = torch.tensor([[4, 5, 6, 7, 2], [8, 9, 2, 0, 0], [10, 4, 8, 2, 0]])
LENGTHS = torch.tensor([5, 3, 4])
TARGET = torch.tensor([[1, 6, 5, 4, 10, 7], [1, 9, 8, 4, 4, 5], [1, 7, 4, 9, 6, 10]])


def build(config: ModelConfig, dtype: torch.dtype = torch.float64) -> Any:
    """A model in use, with weights large enough for its words to matter; always the same."""
    torch.manual_seed(0)
    model = config.build().to(dtype).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape))
    return model


def features(model: Any, target: Tensor, source: Tensor = SOURCE, lengths: Tensor = LENGTHS) -> Any:
    """What a model of either kind knows after each target word."""
    if isinstance(model.config, LANGUAGE_KINDS):
        return model(target)
    return model(source, lengths, target)


def begin(model: Any, source: Tensor = SOURCE, lengths: Tensor = LENGTHS) -> Any:
    """A model's state before the first word."""
    if isinstance(model.config, LANGUAGE_KINDS):
        return model.start(len(source))
    return model.start(source, lengths)
