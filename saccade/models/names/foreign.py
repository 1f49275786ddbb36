"""What a folder of an encoder tells that is not one of ours, but one that transformers has."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from saccade.data.tokens.foreign_tokenizer import read_tokenizer
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.models.text.foreign import (
    ForeignEncoderConfig,
    ReadingPlace,
    hugging_face,
    library_network,
    parsed,
)
from saccade.printable import printable

# By what the library calls them: those that read both ways, and those that translate.
TABLES = (
    *("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES"),
    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
)
OTHERS = frozenset({"xlnet"})  # which learns its words in any order


def foreign_encoder(kind: str, values: dict[str, Any], folder: Path) -> ForeignEncoderConfig | None:
    """The encoder that a config.json speaks of; None where it speaks of no texts."""
    if "auto_map" in values and not _known(kind):
        raise ConfigError(
            f"model_type={printable(kind)} is no architecture of transformers: it needs code that "
            "lies beside it, and none is ever run; start from weights of another model"
        )
    if not _reads_texts(kind, values):
        return None
    settings = json.dumps(parsed(json.dumps({"model_type": kind, **values})))
    with torch.device("meta"):
        network, config = library_network(settings)
    tokenizer = read_tokenizer(folder)
    if tokenizer is None:
        raise ConfigError(
            "no tokenizer lies beside it; put its tokenizer.json there, or its SentencePiece model"
        )
    rows = json.dumps({**json.loads(settings), "vocab_size": config.vocab_size}, sort_keys=True)
    return ForeignEncoderConfig(
        settings=rows,
        vocabulary=len(tokenizer),
        longest=_longest(network, config.to_dict()),
        reads=reading_place(tokenizer),
    )


def _known(kind: str) -> bool:
    return find_spec("transformers") is not None and kind in _auto().MODEL_MAPPING_NAMES


def _auto() -> Any:
    return hugging_face("a model that is not ours").models.auto.modeling_auto


def _reads_texts(kind: str, values: dict[str, Any]) -> bool:
    if find_spec("transformers") is None:
        if "vocab_size" not in values:
            return False
        hugging_face(f"model_type={printable(kind)}")
    auto = _auto()
    return kind in OTHERS or any(kind in vars(auto)[table] for table in TABLES)


def _longest(network: nn.Module, sizes: dict[str, Any]) -> int | None:
    """Of learnt positions their number, less those up to the padding's, as RoBERTa counts."""
    most = sizes.get("max_position_embeddings")
    if type(most) is not int or most < 1:
        return None
    for path, part in network.named_modules():
        if path.endswith("position_embeddings") and isinstance(part, nn.Embedding):
            return most - (0 if part.padding_idx is None else part.padding_idx + 1)
    return most


def reading_place(tokenizer: Vocabulary) -> ReadingPlace:
    """Where a text is read: at a token before it, at one for the class behind it, or all over."""
    ((tokens, _, _, sides),) = tokenizer.readings([("a",)])
    if sides[0] is None:
        return "first"
    return "last" if sides[-1] is None and tokens[-1] == tokenizer.start else "mean"
