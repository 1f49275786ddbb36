"""Classifiers as timm has them: a folder for `timm.create_model("local-dir:…", pretrained=True)`.

An architecture of timm's is named with all its sizes, so that any will do which is of the family;
those whose sizes it cannot be told must be of timm's own.
"""

from dataclasses import replace
from typing import Any

from saccade.app.export.counterpart import Counterpart, check_windows, refuse
from saccade.config import ModelConfig
from saccade.models.vision import mvit
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.mobilenet import MobileNetConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

LIBRARY = "timm"
VITS = {192: "tiny", 384: "small", 768: "base", 1024: "large", 1280: "huge"}
MVITS = {"mvitv2-t": "tiny", "mvitv2-s": "small", "mvitv2-b": "base", "mvitv2-l": "large"}
MULTIPLIERS = (0.35, 0.5, 0.75, 1.0, 1.4)
RESNET_WIDTH, CONVNEXT_STAGES = 64, 4


def _vit_name(config: VitConfig) -> str:
    size = VITS.get(config.width, "base")
    return f"vit_{size}_patch{14 if size == 'huge' else 16}_224"


def _vit(config: VitConfig, image: int) -> dict[str, Any]:
    return {
        "img_size": image,
        "patch_size": config.patch,
        "embed_dim": config.width,
        "depth": config.depth,
        "num_heads": config.heads,
        "mlp_ratio": float(config.expansion),
        "qkv_bias": config.biased,
        "init_values": config.layer_scale or None,
        "no_embed_class": not config.class_position,
    }


def _swin(config: SwinConfig, image: int) -> dict[str, Any]:
    check_windows(config, image, LIBRARY)
    return {
        "img_size": image,
        "patch_size": config.patch,
        "embed_dim": config.width,
        "depths": list(config.depths),
        "num_heads": list(config.heads),
        "window_size": config.window,
        "mlp_ratio": float(config.expansion),
        "drop_path_rate": config.drop_path,
    }


def _convnext(config: ConvNextConfig, image: int) -> dict[str, Any]:
    if len(config.depths) != CONVNEXT_STAGES:
        refuse(config, LIBRARY, "depths", f"its own have {CONVNEXT_STAGES} stages")
    return {
        "depths": list(config.depths),
        "dims": list(config.widths),
        "kernel_sizes": config.kernel,
        "ls_init_value": config.layer_scale or None,
        "drop_path_rate": config.drop_path,
    }


def _mvit_name(config: MvitConfig) -> str:
    """Its sizes are those of its name."""
    sizes: dict[str, Any] = {name: vars(config)[name] for name in ("image", "classes", "drop_path")}
    for name, size in MVITS.items():
        if replace(mvit.PRESETS[name], **sizes) == config:
            return f"mvitv2_{size}"
    refuse(config, LIBRARY, "depths", f"it has but {', '.join(MVITS)}")
    raise AssertionError


def _mvit(config: MvitConfig, image: int) -> dict[str, Any]:
    return {"img_size": image, "drop_path_rate": config.drop_path}


def _resnet(config: ResNetConfig, image: int) -> dict[str, Any]:
    if config.width != RESNET_WIDTH:
        refuse(config, LIBRARY, "width", f"its stem is {RESNET_WIDTH} wide")
    return {"layers": list(config.blocks), "output_stride": 16 if config.dilated else 32}


def _mobilenet(config: MobileNetConfig, image: int) -> dict[str, Any]:
    if config.multiplier not in MULTIPLIERS:
        refuse(config, LIBRARY, "multiplier", f"it has {', '.join(map(str, MULTIPLIERS))}")
    return {"drop_rate": config.dropout, "output_stride": 16 if config.dilated else 32}


def _parts(first: str, head: str, *, fixed: bool) -> tuple[tuple[str, Any], ...]:
    """Of its own description: what reads pixels, what scores classes, and if images have a size."""
    return (("first_conv", first), ("classifier", head), ("fixed_input_size", fixed))


FAMILIES: dict[type[ModelConfig], Counterpart] = {
    VitConfig: Counterpart(
        name=_vit_name,
        settings=_vit,
        holds=frozenset(
            {
                *("classes", "image", "patch", "width", "depth", "heads", "expansion", "dropout"),
                *("layer_scale", "drop_path", "class_position", "biased"),
            }
        ),
        more=_parts("patch_embed.proj", "head", fixed=True),
    ),
    SwinConfig: Counterpart(
        name=lambda config: "swin_tiny_patch4_window7_224",
        settings=_swin,
        holds=frozenset(
            {
                *("classes", "patch", "width", "depths", "heads", "window", "expansion"),
                *("dropout", "drop_path"),
            }
        ),
        more=_parts("patch_embed.proj", "head.fc", fixed=True),
    ),
    ConvNextConfig: Counterpart(
        name=lambda config: "convnext_tiny",
        settings=_convnext,
        holds=frozenset({"classes", "depths", "widths", "kernel", "layer_scale", "drop_path"}),
        more=_parts("stem.0", "head.fc", fixed=False),
    ),
    MvitConfig: Counterpart(
        name=_mvit_name,
        settings=_mvit,
        holds=frozenset({"classes", "image", "width", "heads", "depths", "widen", "drop_path"}),
        more=_parts("patch_embed.proj", "head.fc", fixed=True),
    ),
    ResNetConfig: Counterpart(
        name=lambda config: "resnet18" if config.expansion == 1 else "resnet50",
        settings=_resnet,
        holds=frozenset({"classes", "depth", "width", "dilated"}),
        more=_parts("conv1", "fc", fixed=False),
    ),
    MobileNetConfig: Counterpart(
        name=lambda config: f"mobilenetv2_{round(100 * config.multiplier):03d}",
        settings=_mobilenet,
        holds=frozenset({"classes", "multiplier", "dropout", "dilated"}),
        more=_parts("conv_stem", "classifier", fixed=False),
    ),
}
