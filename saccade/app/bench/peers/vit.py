"""The Vision Transformers of timm, torchvision and Hugging Face."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from saccade.models.vision.vit import VitConfig


class Peer(NamedTuple):
    """How a library's model is made, with random weights in our sizes, and its package."""

    make: Callable[[VitConfig], nn.Module]
    needs: str


def _timm(config: VitConfig) -> nn.Module:
    theirs: Any = import_module("timm.models.vision_transformer")
    return theirs.VisionTransformer(
        img_size=config.image,
        patch_size=config.patch,
        num_classes=config.classes,
        embed_dim=config.width,
        depth=config.depth,
        num_heads=config.heads,
    )


def _torchvision(config: VitConfig) -> nn.Module:
    theirs: Any = import_module("torchvision.models.vision_transformer")
    return theirs.VisionTransformer(
        image_size=config.image,
        patch_size=config.patch,
        num_layers=config.depth,
        num_heads=config.heads,
        hidden_dim=config.width,
        mlp_dim=4 * config.width,
        num_classes=config.classes,
    )


class HuggingFaceLogits(nn.Module):
    """Theirs, giving class scores alone."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.model(image).logits


def _hugging_face(config: VitConfig) -> nn.Module:
    hf: Any = import_module("transformers")
    theirs = hf.ViTConfig(
        image_size=config.image,
        patch_size=config.patch,
        hidden_size=config.width,
        num_hidden_layers=config.depth,
        num_attention_heads=config.heads,
        intermediate_size=4 * config.width,
        num_labels=config.classes,
        layer_norm_eps=config.epsilon,
    )
    return HuggingFaceLogits(hf.ViTForImageClassification(theirs))


PEERS = {
    "timm": Peer(_timm, "timm"),
    "torchvision": Peer(_torchvision, "torchvision"),
    "huggingface": Peer(_hugging_face, "transformers"),
}
