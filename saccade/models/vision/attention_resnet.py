"""A ResNet with a layer in which every cell of its map looks at every other.

The block of Zhang et al. 2019, arXiv:1805.08318 (SAGAN), in a classifier. It starts as nothing:
with γ = 0 the network is exactly the ResNet.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.attend import fused
from saccade.attention.axes import Axis
from saccade.attention.parameters import FREE, Role
from saccade.attention.site import Site
from saccade.config import check_positive
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import image_axis, tiles
from saccade.models.vision.resnet import ResNet, ResNetConfig

NARROWER = 8  # queries and keys than the map


@dataclass(frozen=True, kw_only=True)
class AttentionResNetConfig(ResNetConfig):
    """A ResNet and where its cells look at one another.

    Args:
        attends_after: the stage after which they do, 2 to 5.
    """

    attends_after: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "attends_after")
        if not 2 <= self.attends_after <= 5:
            raise ConfigError(f"attends_after={self.attends_after} must be from 2 to 5")

    def build(self) -> "AttentionResNet":
        return AttentionResNet(self)


class MapAttention(Site):
    """Every cell reads from all cells what is like what it asks for.

        y = x + γ · Wo (softmax(q kᵀ) v)        q, k, v = Wq x, Wk x, Wv x

    As published: 1×1 convolutions, queries and keys an eighth as wide as the map, scores not
    divided by √K, and γ a single number. `cells` says where they lie, in pixels.
    """

    def __init__(self, channels: int, cells: tuple[float, float] = tiles(1)) -> None:
        super().__init__(Axis("image", "grid"), Axis("image", "grid"))
        self.cells = cells
        narrow = max(1, channels // NARROWER)
        self.to_q, self.to_k = (nn.Conv2d(channels, narrow, 1, bias=False) for _ in range(2))
        self.to_v, self.to_output = (nn.Conv2d(channels, channels, 1, bias=False) for _ in range(2))
        self.gamma = nn.Parameter(torch.zeros(()))

    def roles(self) -> dict[str, Role]:
        return {"gamma": FREE}

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        shape = x.shape[2], x.shape[3]
        if self.watcher is not None:
            self.rows = self.columns = image_axis(shape, self.cells)
        layers = self.to_q, self.to_k, self.to_v
        q, k, v = (layer(x).flatten(2).mT[:, None] for layer in layers)  # (B, 1, H W, K)
        read = fused(q, k, v, scale=1.0, watcher=self.watcher)
        return x + self.gamma * self.to_output(read[:, 0].mT.unflatten(2, shape))


class AttentionResNet(ResNet):
    """Stem → stages of residual blocks, attention after one of them → mean → class scores."""

    config: AttentionResNetConfig

    def __init__(self, config: AttentionResNetConfig) -> None:
        super().__init__(config)
        after = config.attends_after
        attention = MapAttention(self.channels(after), self.cells(after))
        stage: nn.Sequential = self.get_submodule(f"layer{after - 1}")  # type: ignore[assignment]
        stage.append(attention)


PRESETS: dict[str, AttentionResNetConfig] = {
    "attention-resnet-nano": AttentionResNetConfig(depth=18, width=16),
    "attention-resnet-18": AttentionResNetConfig(depth=18),
    "attention-resnet-50": AttentionResNetConfig(depth=50),
}
