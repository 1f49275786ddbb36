"""The vision models of timm, torchvision and Hugging Face, in our sizes and with random weights."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.errors import ConfigError
from saccade.models.names import convnext as convnext_names
from saccade.models.names import mvit as mvit_names
from saccade.models.names import swin as swin_names
from saccade.models.names import vit as vit_names
from saccade.models.names.table import Names, to_theirs
from saccade.models.vision.convnext import ConvNextConfig
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig
from saccade.models.vision.mvit import MvitConfig
from saccade.models.vision.resnet import ResNetConfig
from saccade.models.vision.swin import SwinConfig
from saccade.models.vision.vit import VitConfig

Make = Callable[[Any, int], nn.Module]  # of a config and the side of the images
NEEDS = {"timm": "timm", "torchvision": "torchvision", "huggingface": "transformers"}


class PeerFamily(NamedTuple):
    """Who else has these models, what they call our tensors, and the memory layout they advise."""

    peers: dict[str, Make]
    names: Mapping[str, Names]
    channels_last: bool = False


class HuggingFaceLogits(nn.Module):
    """Theirs, giving class scores alone."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.model(image).logits


def _timm_vit(config: VitConfig, side: int) -> nn.Module:
    theirs: Any = import_module("timm.models.vision_transformer")
    return theirs.VisionTransformer(
        img_size=side,
        patch_size=config.patch,
        num_classes=config.classes,
        embed_dim=config.width,
        depth=config.depth,
        num_heads=config.heads,
    )


def _torchvision_vit(config: VitConfig, side: int) -> nn.Module:
    theirs: Any = import_module("torchvision.models.vision_transformer")
    return theirs.VisionTransformer(
        image_size=side,
        patch_size=config.patch,
        num_layers=config.depth,
        num_heads=config.heads,
        hidden_dim=config.width,
        mlp_dim=4 * config.width,
        num_classes=config.classes,
    )


def _hugging_face_vit(config: VitConfig, side: int) -> nn.Module:
    hf: Any = import_module("transformers")
    theirs = hf.ViTConfig(
        image_size=side,
        patch_size=config.patch,
        hidden_size=config.width,
        num_hidden_layers=config.depth,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        num_labels=config.classes,
        layer_norm_eps=config.epsilon,
    )
    return HuggingFaceLogits(hf.ViTForImageClassification(theirs))


def _timm_swin(config: SwinConfig, side: int) -> nn.Module:
    theirs: Any = import_module("timm.models.swin_transformer")
    return theirs.SwinTransformer(
        img_size=side,
        patch_size=config.patch,
        num_classes=config.classes,
        embed_dim=config.width,
        depths=config.depths,
        num_heads=config.heads,
        window_size=config.window,
        mlp_ratio=config.expansion,
        drop_path_rate=0.0,
    )


def _hugging_face_swin(config: SwinConfig, side: int) -> nn.Module:
    hf: Any = import_module("transformers")
    theirs = hf.SwinConfig(
        image_size=side,
        patch_size=config.patch,
        embed_dim=config.width,
        depths=list(config.depths),
        num_heads=list(config.heads),
        window_size=config.window,
        mlp_ratio=config.expansion,
        num_labels=config.classes,
        drop_path_rate=0.0,
    )
    return HuggingFaceLogits(hf.SwinForImageClassification(theirs))


def _timm_convnext(config: ConvNextConfig, side: int) -> nn.Module:
    theirs: Any = import_module("timm.models.convnext")
    return theirs.ConvNeXt(
        num_classes=config.classes,
        depths=config.depths,
        dims=config.widths,
        patch_size=config.patch,
        kernel_sizes=config.kernel,
        ls_init_value=config.layer_scale,
    )


def _timm_mvit(config: MvitConfig, side: int) -> nn.Module:
    theirs: Any = import_module("timm.models.mvitv2")
    sizes = theirs.MultiScaleVitCfg(
        depths=config.depths,
        embed_dim=config.width,
        num_heads=config.heads,
        expand_attn=config.widen == "attention",
        use_cls_token=config.class_token,
        use_abs_pos=not config.relative,
        residual_pooling=config.residual_pooling,
        rel_pos_type="spatial" if config.relative else "",
        stride_q=tuple((1, 1) if stage == 0 else (2, 2) for stage in range(len(config.depths))),
        stride_kv_adaptive=(config.pooled, config.pooled),
    )
    return theirs.MultiScaleVit(sizes, img_size=(side, side), num_classes=config.classes)


def _resnet(module: str) -> Make:
    def make(config: ResNetConfig, side: int) -> nn.Module:
        theirs: Any = import_module(module)
        block = theirs.Bottleneck if config.expansion == 4 else theirs.BasicBlock
        return theirs.ResNet(block, list(config.blocks), num_classes=config.classes)

    return make


FAMILIES: dict[type[ImageEncoderConfig], PeerFamily] = {
    VitConfig: PeerFamily(
        {"timm": _timm_vit, "torchvision": _torchvision_vit, "huggingface": _hugging_face_vit},
        vit_names.LIBRARIES,
    ),
    SwinConfig: PeerFamily(
        {"timm": _timm_swin, "huggingface": _hugging_face_swin}, swin_names.LIBRARIES
    ),
    ConvNextConfig: PeerFamily(
        {"timm": _timm_convnext}, convnext_names.LIBRARIES, channels_last=True
    ),
    MvitConfig: PeerFamily({"timm": _timm_mvit}, mvit_names.LIBRARIES),
    ResNetConfig: PeerFamily(
        {
            "timm": _resnet("timm.models.resnet"),
            "torchvision": _resnet("torchvision.models.resnet"),
        },
        {},
        channels_last=True,
    ),
}


@torch.no_grad()
def copy_weights(ours: ImageEncoder, theirs: nn.Module, names: Mapping[str, Names]) -> None:
    """Make theirs compute what ours does."""
    inside = theirs.model if isinstance(theirs, HuggingFaceLogits) else theirs
    assert isinstance(inside, nn.Module)
    state = ours.state_dict()
    wanted = dict(inside.named_parameters()).keys()
    named = [state, *(to_theirs(table, state) for table in names.values())]
    there = inside.state_dict().keys()
    weights = next((one for one in named if wanted <= one.keys() <= there), None)
    if weights is None:
        raise ConfigError(f"it has other weights than {type(ours).__name__} of these settings")
    inside.load_state_dict(weights, strict=False)  # tables that follow from sizes stay theirs
