"""The sizes that a folder of weights tells: its config.json, of Hugging Face's or of a run of ours.

Nothing in it is run. What our models do not compute as that one does is refused by its name. A text
encoder that is not one of ours is one of transformers'; where an image's model is not one of ours,
nothing is said, for its weights may still fit a preset.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

from saccade.blocks.mlp import ActivationKind
from saccade.config import ModelConfig, from_dict
from saccade.errors import CheckpointError, ConfigError
from saccade.models import FAMILIES
from saccade.models.detection.detr import DetrConfig
from saccade.models.names.foreign import foreign_encoder
from saccade.models.text.bert import BertConfig
from saccade.models.text.gpt import GptConfig
from saccade.models.text.text_encoder import HeadKind
from saccade.models.text.transformer import TransformerConfig
from saccade.models.vision import resnet
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.resnet import BLOCKS, ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig
from saccade.printable import printable
from saccade.regular import regular_file

CONFIG = "config.json"
MOST_BYTES = 10_000_000  # of a file of settings; some name every one of 20,000 labels twice
MOST = 10_000_000  # of any size in it


class PublishedSizes:
    """Somebody else's settings, which may be anything; where they are silent, their defaults."""

    def __init__(self, table: dict[str, Any], where: str) -> None:
        self.table, self.where = table, where

    def whole(self, name: str, default: int) -> int:
        value = self.table.get(name, default)
        if type(value) is not int or not 0 <= value <= MOST:
            self.refuse(name, f"must be a whole number from 0 to {MOST:,}")
        return value

    def number(self, name: str, default: float) -> float:
        value = self.table.get(name, default)
        if type(value) not in (int, float):
            self.refuse(name, "must be a number")
        return float(value)

    def wholes(self, name: str) -> tuple[int, ...]:
        value = self.table.get(name)
        if not isinstance(value, list) or any(type(x) is not int for x in cast(list[Any], value)):
            self.refuse(name, "must be a list of whole numbers")
        return tuple(cast(list[int], value))

    def must_be(self, name: str, *ours: Any, absent: Any = ...) -> None:
        """Refuse what our model does not do; where nothing is said, it is the first of ours."""
        if self.table.get(name, ours[0] if absent is ... else absent) not in ours:
            known = " or ".join(repr(one) for one in ours)
            self.refuse(name, f"is not what our model computes, which is {known}")

    def is_plain(self, **theirs: Any) -> bool:
        return all(self.table.get(name, value) == value for name, value in theirs.items())

    @property
    def labels(self) -> int:
        match self.table:
            case {"id2label": dict(names)} if names:
                return len(cast(dict[Any, Any], names))
            case _:
                return max(1, self.whole("num_labels", 2))

    @property
    def architecture(self) -> str:
        match self.table.get("architectures"):
            case [str(first), *_]:
                return first
            case _:
                return ""

    def refuse(self, name: str, rule: str) -> NoReturn:
        raise ConfigError(
            f"{self.where}: {name}={printable(repr(self.table.get(name)))[:60]} {rule}; start from "
            "weights of another model"
        )


def described(folder: Path) -> ModelConfig | None:
    """The model whose weights a folder holds, where that is one of ours; None where it is not."""
    path = folder / CONFIG
    if not folder.is_dir() or not path.is_file():
        return None
    match _read(path):
        case {"model": {"family": str(family), **sizes}} if family in FAMILIES:
            return from_dict(FAMILIES[family], sizes, where=f"{printable(path)}: model")
        case {"model_type": str(kind), **rest}:
            sizes, where = cast(dict[str, Any], rest), printable(path)
            try:
                if kind in KINDS:
                    return KINDS[kind](PublishedSizes(sizes, where))
                return foreign_encoder(kind, sizes, folder)
            except ConfigError as error:
                told = str(error)
                raise ConfigError(told if told.startswith(where) else f"{where}: {told}") from error
        case _:
            return None


def _read(path: Path) -> Any:
    if regular_file(path, CheckpointError).st_size > MOST_BYTES:
        raise CheckpointError(f"{printable(path)} is no file of settings: it is too large")
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            f"{printable(path)} is not JSON ({printable(error)}); download the folder again"
        ) from error


def _encoder(sizes: PublishedSizes, **more: Any) -> BertConfig:
    """What BERT and its relatives call alike."""
    sizes.must_be("hidden_act", "gelu")
    sizes.must_be("position_embedding_type", "absolute")
    sizes.must_be("is_decoder", False)
    sizes.must_be("add_cross_attention", False)
    given: dict[str, Any] = {
        "vocabulary": sizes.whole("vocab_size", 30522),
        "width": sizes.whole("hidden_size", 768),
        "depth": sizes.whole("num_hidden_layers", 12),
        "heads": sizes.whole("num_attention_heads", 12),
        "hidden": sizes.whole("intermediate_size", 3072),
        "longest": sizes.whole("max_position_embeddings", 512),
        "types": sizes.whole("type_vocab_size", 2),
        "epsilon": sizes.number("layer_norm_eps", 1e-12),
        "dropout": sizes.number("hidden_dropout_prob", 0.1),
        "head": _head(sizes),
        "labels": sizes.labels,
    }
    return BertConfig(**{**given, **more})


def _head(sizes: PublishedSizes, *, pretraining: HeadKind = "words") -> HeadKind:
    """By what the model was saved as; one that was saved without a head is there to fill words."""
    heads: dict[str, HeadKind] = {
        "ForPreTraining": pretraining,
        "ForSequenceClassification": "text",
        "ForTokenClassification": "tokens",
    }
    for name, head in heads.items():
        if sizes.architecture.endswith(name) and head != "words":
            return head
    sizes.must_be("tie_word_embeddings", True)
    return "words"


def _bert(sizes: PublishedSizes) -> BertConfig:
    return _encoder(sizes, next_sentence=sizes.architecture.endswith("ForPreTraining"))


def _roberta(sizes: PublishedSizes) -> BertConfig:
    first = sizes.whole("pad_token_id", 1) + 1  # no text begins at or before its padding's place
    longest = sizes.whole("max_position_embeddings", 512) - first
    vocabulary = sizes.whole("vocab_size", 50265)
    return _encoder(sizes, vocabulary=vocabulary, longest=longest, first_position=first)


def _electra(sizes: PublishedSizes) -> BertConfig:
    width, embedding = sizes.whole("hidden_size", 256), sizes.whole("embedding_size", 128)
    return _encoder(
        sizes,
        width=width,
        heads=sizes.whole("num_attention_heads", 4),
        hidden=sizes.whole("intermediate_size", 1024),
        embedding_width=None if embedding == width else embedding,
        pooling="gelu",
        head=_head(sizes, pretraining="replaced"),
    )


def _distilbert(sizes: PublishedSizes) -> BertConfig:
    sizes.must_be("activation", "gelu")
    return BertConfig(
        vocabulary=sizes.whole("vocab_size", 30522),
        width=sizes.whole("dim", 768),
        depth=sizes.whole("n_layers", 6),
        heads=sizes.whole("n_heads", 12),
        hidden=sizes.whole("hidden_dim", 3072),
        longest=sizes.whole("max_position_embeddings", 512),
        types=0,
        dropout=sizes.number("dropout", 0.1),
        pooling="relu",
        head=_head(sizes),
        labels=sizes.labels,
    )


def _gpt2(sizes: PublishedSizes) -> GptConfig:
    width = sizes.whole("n_embd", 768)
    sizes.must_be("activation_function", "gelu_new", "gelu_pytorch_tanh")
    sizes.must_be("n_inner", None, 4 * width)
    sizes.must_be("layer_norm_epsilon", 1e-5)
    sizes.must_be("scale_attn_weights", True)
    sizes.must_be("scale_attn_by_inverse_layer_idx", False)
    sizes.must_be("add_cross_attention", False)
    sizes.must_be("tie_word_embeddings", True)
    return GptConfig(
        vocabulary=sizes.whole("vocab_size", 50257),
        width=width,
        depth=sizes.whole("n_layer", 12),
        heads=sizes.whole("n_head", 12),
        longest=sizes.whole("n_positions", 1024),
        dropout=sizes.number("resid_pdrop", 0.1),
    )


BENDS: dict[str, ActivationKind] = {
    **{"relu": "relu", "gelu": "gelu"},
    **{"swish": "swish", "silu": "swish"},
}


def _marian(sizes: PublishedSizes) -> TransformerConfig:
    return _translator(sizes, vocabulary=58101, pre=False)


def _pegasus(sizes: PublishedSizes) -> TransformerConfig:
    return _translator(sizes, vocabulary=50265, pre=True)


def _translator(sizes: PublishedSizes, *, vocabulary: int, pre: bool) -> TransformerConfig:
    """Marian and Pegasus differ in where they normalise."""
    sizes.must_be("activation_function", *BENDS, absent="gelu")
    sizes.must_be("scale_embedding", True, absent=False)
    for name, ours in (
        *(("share_encoder_decoder_embeddings", True), ("tie_word_embeddings", True)),
        *(("static_position_embeddings", True), ("normalize_before", pre)),
        *(("normalize_embedding", False), ("add_final_layer_norm", pre)),
    ):
        sizes.must_be(name, ours)
    vocabulary = sizes.whole("vocab_size", vocabulary)
    sizes.must_be("decoder_vocab_size", vocabulary, None)
    depth, heads = sizes.whole("encoder_layers", 12), sizes.whole("encoder_attention_heads", 16)
    hidden = sizes.whole("encoder_ffn_dim", 4096)
    sizes.must_be("decoder_layers", depth, absent=12)
    sizes.must_be("decoder_attention_heads", heads, absent=16)
    sizes.must_be("decoder_ffn_dim", hidden, absent=4096)
    return TransformerConfig(
        vocabulary=vocabulary,
        width=sizes.whole("d_model", 1024),
        depth=depth,
        heads=heads,
        hidden=hidden,
        dropout=sizes.number("dropout", 0.1),
        longest=sizes.whole("max_position_embeddings", 1024),
        residual="pre" if pre else "post",
        activation=BENDS[str(sizes.table.get("activation_function", "gelu"))],
        output_bias=sizes.table.get("output_bias") is not False,  # which our exports say
    )


def _vit(sizes: PublishedSizes) -> VitConfig | None:
    width, inner = sizes.whole("hidden_size", 768), sizes.whole("intermediate_size", 3072)
    if not sizes.is_plain(hidden_act="gelu", num_channels=3) or not width or inner % width:
        return None
    return VitConfig(
        image=sizes.whole("image_size", 224),
        patch=sizes.whole("patch_size", 16),
        width=width,
        depth=sizes.whole("num_hidden_layers", 12),
        heads=sizes.whole("num_attention_heads", 12),
        expansion=inner // width,
        dropout=sizes.number("hidden_dropout_prob", 0.0),
        epsilon=sizes.number("layer_norm_eps", 1e-12),
        biased=sizes.table.get("qkv_bias", True) is True,
        classes=sizes.labels,
    )


def _swin(sizes: PublishedSizes) -> SwinConfig | None:
    plain = sizes.is_plain(
        hidden_act="gelu",
        num_channels=3,
        use_absolute_embeddings=False,
        qkv_bias=True,
        layer_norm_eps=1e-5,
    )
    expansion = sizes.number("mlp_ratio", 4.0)
    if not plain or expansion != int(expansion):
        return None
    return SwinConfig(
        patch=sizes.whole("patch_size", 4),
        width=sizes.whole("embed_dim", 96),
        depths=sizes.wholes("depths"),
        heads=sizes.wholes("num_heads"),
        window=sizes.whole("window_size", 7),
        expansion=int(expansion),
        dropout=sizes.number("hidden_dropout_prob", 0.0),
        drop_path=sizes.number("drop_path_rate", 0.1),
        classes=sizes.labels,
    )


def _convnext(sizes: PublishedSizes) -> ConvNextConfig | None:
    if not sizes.is_plain(hidden_act="gelu", num_channels=3):
        return None
    return ConvNextConfig(
        depths=sizes.wholes("depths"),
        widths=sizes.wholes("hidden_sizes"),
        patch=sizes.whole("patch_size", 4),
        layer_scale=sizes.number("layer_scale_init_value", 1e-6),
        drop_path=sizes.number("drop_path_rate", 0.0),
        classes=sizes.labels,
    )


def _resnet(sizes: PublishedSizes) -> ResNetConfig | None:
    plain = sizes.is_plain(
        hidden_act="relu",
        num_channels=3,
        downsample_in_first_stage=False,
        downsample_in_bottleneck=False,
    )
    width, deep = sizes.whole("embedding_size", 64), sizes.table.get("layer_type") != "basic"
    depths, widths = sizes.wholes("depths"), sizes.wholes("hidden_sizes")
    for depth, blocks in BLOCKS.items():
        found = ResNetConfig(depth=depth, width=max(1, width), classes=sizes.labels)
        expected = tuple(found.width * found.expansion << stage for stage in range(4))
        if plain and blocks == depths and expected == widths and deep == (found.expansion > 1):
            return found
    return None


def _detr(sizes: PublishedSizes) -> DetrConfig | None:
    """One whose image encoder is a preset of ours; it is frozen there as it was published."""
    heads, hidden = sizes.whole("encoder_attention_heads", 8), sizes.whole("encoder_ffn_dim", 2048)
    plain = sizes.is_plain(
        activation_function="relu",
        position_embedding_type="sine",
        num_channels=3,
        decoder_attention_heads=heads,
        decoder_ffn_dim=hidden,
    )
    encoder = _detector_backbone(sizes)
    if not plain or encoder is None:
        return None
    return DetrConfig(
        encoder=encoder,
        frozen=2,
        frozen_norms=True,
        classes=sizes.labels,
        queries=sizes.whole("num_queries", 100),
        width=sizes.whole("d_model", 256),
        encoder_depth=sizes.whole("encoder_layers", 6),
        depth=sizes.whole("decoder_layers", 6),
        heads=heads,
        hidden=hidden,
        dropout=sizes.number("dropout", 0.1),
    )


def _detector_backbone(sizes: PublishedSizes) -> str | None:
    """By timm's name, alone or in settings of its own, or by sizes of Hugging Face's."""
    match sizes.table:
        case {"backbone_config": {"model_type": "resnet", **rest}}:
            found = _resnet(PublishedSizes(cast(dict[str, Any], rest), sizes.where))
        case {"backbone_config": {"backbone": str(name)}} | {"backbone": str(name)}:
            found = resnet.PRESETS.get(name.replace("resnet", "resnet-"))
        case _:
            found = resnet.PRESETS["resnet-50"]
    if found is None:
        return None
    wanted = replace(found, classes=1000, dilated=sizes.table.get("dilation") is True)
    return next((name for name, one in resnet.PRESETS.items() if one == wanted), None)


KINDS: dict[str, Callable[[PublishedSizes], ModelConfig | None]] = {
    "bert": _bert,
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), _roberta),
    "distilbert": _distilbert,
    "electra": _electra,
    "gpt2": _gpt2,
    "marian": _marian,
    "pegasus": _pegasus,
    **dict.fromkeys(("vit", "deit"), _vit),
    "swin": _swin,
    "convnext": _convnext,
    "resnet": _resnet,
    "detr": _detr,
}
