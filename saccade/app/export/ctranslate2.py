"""Transformer and GPT runs as models of CTranslate2 (github.com/OpenNMT/CTranslate2).

The same numbers in another order: queries, keys and values of self-attention are one matrix there,
and positions are a table, which is written out because its own sinusoids are not interleaved.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.app.export.folder import require
from saccade.app.export.graphs import FURTHEST
from saccade.blocks.positions import FixedPositions, make_positions
from saccade.config import ModelConfig
from saccade.data.tokens.vocabulary import Vocabulary
from saccade.errors import ConfigError
from saccade.models.text.gpt import GptConfig
from saccade.models.text.transformer import TransformerConfig

Quantization = Literal[
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16"
]
EPSILON = 1e-5  # torch's own in LayerNorm

Weights = Mapping[str, Tensor]


def check(config: ModelConfig) -> "Family":
    """What a model is there; refuse what CTranslate2 has no layers for."""
    way_out = "use --to onnx, or predict without --engine"
    if type(config) not in FAMILIES:
        there = " and ".join(kind.__name__.removesuffix("Config") for kind in FAMILIES)
        kind = type(config).__name__.removesuffix("Config")
        raise ConfigError(f"CTranslate2 runs {there} models, not {kind}; {way_out}")
    family, settings = FAMILIES[type(config)], asdict(config)  # type: ignore[call-overload]
    for (field, value), reason in family.lacks.items():
        if settings[field] == value:
            raise ConfigError(f"{field}={value!r}{reason}; {way_out}")
    return family


def write_ctranslate2(
    model: nn.Module, vocabulary: Vocabulary, folder: Path, quantization: Quantization
) -> None:
    """Write model.bin, config.json and the vocabulary into a folder."""
    config: Any = model.config
    family = check(config)
    require("ctranslate2")
    # Copies: quantising multiplies the arrays it is given in place.
    weights = {
        name: tensor.detach().float().cpu().clone() for name, tensor in model.state_dict().items()
    }
    made, words = family.make(config, weights), vocabulary.entries()
    special = vocabulary.special
    start, end = words[special.start], words[special.end]
    # It needs a name for what is unknown; a tokenizer of bytes has none, and never meets any.
    unknown = end if special.unknown is None else words[special.unknown]
    made.config.layer_norm_epsilon = EPSILON
    made.config.unk_token, made.config.bos_token, made.config.eos_token = unknown, start, end
    if family.translates:
        made.config.decoder_start_token = start
        made.config.add_source_eos = True
        made.register_source_vocabulary(words)
        made.register_target_vocabulary(words)
    else:
        made.register_vocabulary(words)
    made.validate()
    made.optimize(quantization=quantization)
    made.save(str(folder))


def _translator(config: TransformerConfig, weights: Weights) -> Any:
    from ctranslate2.specs import TransformerSpec
    from ctranslate2.specs.common_spec import Activation

    kinds = {"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}
    made: Any = TransformerSpec.from_config(
        config.depth,
        config.heads,
        pre_norm=config.residual == "pre",
        activation=kinds[config.activation],
    )
    positions = _table(config, weights)
    _embed(made.encoder.embeddings[0], made.encoder, weights, positions)
    _embed(made.decoder.embeddings, made.decoder, weights, positions)
    for number, layer in enumerate(made.encoder.layer):
        _self_attention(layer, weights, f"encoder.{number}", around="around_attention")
        _feed_forward(layer.ffn, weights, f"encoder.{number}")
    for number, layer in enumerate(made.decoder.layer):
        at = f"decoder.{number}"
        _self_attention(layer, weights, at, around="around_self")
        _linears(layer.attention.linear, weights, f"{at}.cross_attention", ("q",), ("k", "v"))
        _norm(layer.attention.layer_norm, weights, f"{at}.around_cross.norm")
        _feed_forward(layer.ffn, weights, at)
    if config.residual == "pre":
        _norm(made.encoder.layer_norm, weights, "encoder_norm")
        _norm(made.decoder.layer_norm, weights, "decoder_norm")
    made.decoder.projection.weight = weights["embedding.weight"]
    if config.output_bias:
        made.decoder.projection.bias = weights["output_bias"]
    return made


def _gpt(config: GptConfig, weights: Weights) -> Any:
    from ctranslate2.specs import TransformerDecoderModelSpec
    from ctranslate2.specs.common_spec import Activation

    made: Any = TransformerDecoderModelSpec.from_config(
        config.depth, config.heads, activation=Activation.GELUTanh
    )
    _embed(made.decoder.embeddings, made.decoder, weights, weights["positions.positions.table"])
    made.decoder.scale_embeddings = False
    for number, layer in enumerate(made.decoder.layer):
        _self_attention(layer, weights, f"decoder.{number}", around="around_attention")
        _feed_forward(layer.ffn, weights, f"decoder.{number}")
    _norm(made.decoder.layer_norm, weights, "norm")
    made.decoder.projection.weight = weights["embedding.weight"]
    return made


def _table(config: TransformerConfig, weights: Weights) -> Float[Tensor, "positions D"]:
    """The encoding of every position; where there is none, zeros, or sinusoids would be taken."""
    if config.positions == "learned":
        return weights["positions.positions.table"]
    count = max(config.longest, FURTHEST)
    encoding = make_positions(config.positions, longest=count, width=config.width)
    if encoding is None:
        return torch.zeros(count, config.width)
    assert isinstance(encoding, FixedPositions)
    return encoding(0, count).clone()


def _embed(embeddings: Any, stack: Any, weights: Weights, positions: Tensor) -> None:
    embeddings.weight = weights["embedding.weight"]
    stack.position_encodings.encodings = positions


def _self_attention(layer: Any, weights: Weights, at: str, *, around: str) -> None:
    _linears(layer.self_attention.linear, weights, f"{at}.self_attention", ("q", "k", "v"))
    _norm(layer.self_attention.layer_norm, weights, f"{at}.{around}.norm")


def _linears(there: list[Any], weights: Weights, at: str, *groups: tuple[str, ...]) -> None:
    """Projections that read the same thing are one matrix; the output's comes last."""
    for place, group in zip(there, (*groups, ("output",))):
        for kind in ("weight", "bias"):
            parts = [weights[f"{at}.to_{name}.{kind}"] for name in group]
            setattr(place, kind, torch.cat(parts))


def _feed_forward(there: Any, weights: Weights, at: str) -> None:
    for place, name in ((there.linear_0, "widen"), (there.linear_1, "narrow")):
        place.weight = weights[f"{at}.mlp.{name}.weight"]
        place.bias = weights[f"{at}.mlp.{name}.bias"]
    _norm(there.layer_norm, weights, f"{at}.around_mlp.norm")


def _norm(there: Any, weights: Weights, at: str) -> None:
    there.gamma, there.beta = weights[f"{at}.weight"], weights[f"{at}.bias"]


class Family(NamedTuple):
    """How a kind of model is written, and which of its settings there are no layers for."""

    make: Callable[[Any, Weights], Any]
    translates: bool
    lacks: dict[tuple[str, str], str]


FAMILIES: dict[type[ModelConfig], Family] = {
    TransformerConfig: Family(
        _translator,
        translates=True,
        lacks={
            ("norm", "batch"): ": CTranslate2 has only layer norms",
            ("positions", "fraction"): " depend on the length, CTranslate2 has one table",
        },
    ),
    GptConfig: Family(_gpt, translates=False, lacks={}),
}
