"""Classifiers as Hugging Face's transformers have them: a folder for `from_pretrained`.

Names are those that files on the Hub have, which versions 4 and 5 read. A ViT there has no scales
of branches, and a position for the class token: the scales are multiplied into the weights that
they follow, and the position is zero.
"""

from typing import Any

import torch

from saccade.app.export.counterpart import Counterpart, State, check_windows, refuse
from saccade.config import ModelConfig
from saccade.models.vision.convnext import EPSILON as CONVNEXT_EPSILON
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.mobilenet import GROUPS, STEM, MobileNetConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import EPSILON as SWIN_EPSILON
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

LIBRARY = "transformers"
NORM_EPSILON = 1e-5  # of torch's BatchNorm


def _vit(config: VitConfig, image: int) -> dict[str, Any]:
    return {
        "hidden_size": config.width,
        "num_hidden_layers": config.depth,
        "num_attention_heads": config.heads,
        "intermediate_size": config.expansion * config.width,
        "hidden_act": "gelu",
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": config.epsilon,
        "image_size": image,
        "patch_size": config.patch,
        "qkv_bias": config.biased,
    }


def _folded(config: VitConfig, state: State) -> State:
    """Without scales, and with a position of the class token."""
    state = dict(state)
    branches = {"around_attention": "self_attention.to_output", "around_mlp": "mlp.narrow"}
    for block in range(config.depth if config.layer_scale else 0):
        for around, last in branches.items():
            scale = state.pop(f"encoder.{block}.{around}.scale")
            weight, bias = (f"encoder.{block}.{last}.{leaf}" for leaf in ("weight", "bias"))
            state[weight], state[bias] = scale[:, None] * state[weight], scale * state[bias]
    if not config.class_position:
        places = state["positions"]
        state["positions"] = torch.cat([places.new_zeros(1, places.shape[1]), places])
    return state


def _swin(config: SwinConfig, image: int) -> dict[str, Any]:
    check_windows(config, image, LIBRARY)
    return {
        "image_size": image,
        "patch_size": config.patch,
        "embed_dim": config.width,
        "depths": list(config.depths),
        "num_heads": list(config.heads),
        "window_size": config.window,
        "mlp_ratio": float(config.expansion),
        "qkv_bias": True,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "drop_path_rate": config.drop_path,
        "hidden_act": "gelu",
        "use_absolute_embeddings": False,
        "layer_norm_eps": SWIN_EPSILON,
    }


def _convnext(config: ConvNextConfig, image: int) -> dict[str, Any]:
    return {
        "patch_size": config.patch,
        "num_stages": len(config.depths),
        "hidden_sizes": list(config.widths),
        "depths": list(config.depths),
        "hidden_act": "gelu",
        "layer_norm_eps": CONVNEXT_EPSILON,
        "layer_scale_init_value": config.layer_scale,
        "drop_path_rate": config.drop_path,
        "image_size": image,
    }


def _resnet(config: ResNetConfig, image: int) -> dict[str, Any]:
    return {
        "embedding_size": config.width,
        "hidden_sizes": [config.width * config.expansion << stage for stage in range(4)],
        "depths": list(config.blocks),
        "layer_type": "basic" if config.expansion == 1 else "bottleneck",
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
    }


def _mobilenet(config: MobileNetConfig, image: int) -> dict[str, Any]:
    for channels in (STEM, *(group.channels for group in GROUPS)):
        rounded = MobileNetConfig(multiplier=round(channels * config.multiplier) / channels)
        if rounded.scaled(channels) != config.scaled(channels):
            refuse(config, LIBRARY, "multiplier", "it rounds widths otherwise")
    return {
        "image_size": image,
        "depth_multiplier": config.multiplier,
        "output_stride": 16 if config.dilated else 32,
        "hidden_act": "relu6",
        "tf_padding": False,
        "classifier_dropout_prob": config.dropout,
        "layer_norm_eps": NORM_EPSILON,
    }


def _named(model_type: str, architecture: str) -> tuple[tuple[str, Any], ...]:
    return (
        ("model_type", model_type),
        ("architectures", [f"{architecture}ForImageClassification"]),
    )


FAMILIES: dict[type[ModelConfig], Counterpart] = {
    VitConfig: Counterpart(
        name=lambda config: "vit",
        settings=_vit,
        holds=frozenset(
            {
                *("classes", "image", "patch", "width", "depth", "heads", "expansion", "dropout"),
                *("epsilon", "layer_scale", "drop_path", "class_position", "biased"),
            }
        ),
        state=_folded,
        more=_named("vit", "ViT"),
    ),
    SwinConfig: Counterpart(
        name=lambda config: "swin",
        settings=_swin,
        holds=frozenset(
            {
                *("classes", "patch", "width", "depths", "heads", "window", "expansion"),
                *("dropout", "drop_path"),
            }
        ),
        more=_named("swin", "Swin"),
    ),
    ConvNextConfig: Counterpart(
        name=lambda config: "convnext",
        settings=_convnext,
        holds=frozenset({"classes", "depths", "widths", "patch", "layer_scale", "drop_path"}),
        more=_named("convnext", "ConvNext"),
    ),
    ResNetConfig: Counterpart(
        name=lambda config: "resnet",
        settings=_resnet,
        holds=frozenset({"classes", "depth", "width"}),
        more=_named("resnet", "ResNet"),
    ),
    MobileNetConfig: Counterpart(
        name=lambda config: "mobilenet_v2",
        settings=_mobilenet,
        holds=frozenset({"classes", "multiplier", "dropout", "dilated"}),
        more=_named("mobilenet_v2", "MobileNetV2"),
    ),
}
