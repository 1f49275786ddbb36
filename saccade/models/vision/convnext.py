"""ConvNeXt: a convolutional network with the manners of a Transformer.

Liu et al. 2022, arXiv:2201.03545. Stage s has cells of `patch` · 2ˢ⁻¹ pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.parameters import FREE, TABLE, Role
from saccade.blocks.dropout import DropPath, growing
from saccade.blocks.mlp import FeedForward
from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig, tiles

EPSILON = 1e-6


@dataclass(frozen=True, kw_only=True)
class ConvNextConfig(ImageEncoderConfig):
    """Sizes of a ConvNeXt: how many blocks each stage has, and how wide it is.

    Args:
        depths: blocks of each stage.
        widths: channels of each stage.
        patch: side of the patches that the stem reads.
        kernel: side of what a block sees around a cell.
        layer_scale: what the branches are multiplied by at first; 0 leaves that out.
        drop_path: how often the last block is left out for an image; those before it less often.
    """

    depths: tuple[int, ...] = (3, 3, 9, 3)
    widths: tuple[int, ...] = (96, 192, 384, 768)
    patch: int = 4
    kernel: int = 7
    layer_scale: float = 1e-6
    drop_path: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "patch", "kernel")
        check_fraction(self, "drop_path")
        if len(self.depths) != len(self.widths) or not self.depths:
            raise ConfigError(f"depths={self.depths} and widths={self.widths} must be as many")
        if min(*self.depths, *self.widths) < 1:
            raise ConfigError(f"depths={self.depths} and widths={self.widths} must be at least 1")

    def build(self) -> "ConvNext":
        return ConvNext(self)


class ChannelNorm(nn.LayerNorm):
    """LayerNorm over the channels of each cell of a map."""

    def forward(self, input: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:  # noqa: A002
        return super().forward(input.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class ConvNextBlock(nn.Module):
    """Look around in each channel by itself, then think at each cell.

    y = x + γ · W₂ gelu(W₁ norm(W₀ ⊛ x))
    """

    def __init__(self, width: int, config: ConvNextConfig, drop_path: float) -> None:
        super().__init__()
        side = config.kernel
        self.around = nn.Conv2d(width, width, side, padding=side // 2, groups=width)
        self.norm = nn.LayerNorm(width, EPSILON)
        self.mlp = FeedForward(width, hidden=4 * width, activation=F.gelu)
        start = self.norm.weight.detach().new_full((width,), config.layer_scale)
        self.register_parameter("scale", nn.Parameter(start) if config.layer_scale else None)
        self.scale: nn.Parameter | None
        self.drop_path = DropPath(drop_path)

    def roles(self) -> dict[str, Role]:
        # Each channel has a filter of its own: not a matrix between vectors.
        return {"around.weight": TABLE} | ({} if self.scale is None else {"scale": FREE})

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
        y = self.mlp(self.norm(self.around(x).permute(0, 2, 3, 1)))  # (B, H, W, C)
        y = y if self.scale is None else self.scale * y
        return x + self.drop_path(y.permute(0, 3, 1, 2))


class ConvNextStage(nn.Module):
    """Bring the map to this stage's fineness and width; then blocks."""

    def __init__(self, config: ConvNextConfig, number: int, rates: Iterator[float]) -> None:
        super().__init__()
        width = config.widths[number]
        if number:
            before = config.widths[number - 1]
            merge = [ChannelNorm(before, EPSILON), nn.Conv2d(before, width, 2, stride=2)]
        else:
            side = config.patch
            merge = [nn.Conv2d(3, width, side, stride=side), ChannelNorm(width, EPSILON)]
        self.merge = nn.Sequential(*merge)
        self.blocks = nn.Sequential(
            *(ConvNextBlock(width, config, next(rates)) for _ in range(config.depths[number]))
        )

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C2 h w"]:
        return self.blocks(self.merge(x))


class ConvNext(ImageEncoder):
    """Patches → stages of blocks, each half as fine as the one before → mean → class scores."""

    def __init__(self, config: ConvNextConfig) -> None:
        super().__init__()
        self.config = config
        rates = growing(config.drop_path, sum(config.depths))
        self.parts = nn.ModuleList(
            ConvNextStage(config, number, rates) for number in range(len(config.depths))
        )
        self.norm = nn.LayerNorm(config.widths[-1], EPSILON)
        self.head = nn.Linear(self.channels(), config.classes) if config.classes else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                assert module.bias is not None
                nn.init.zeros_(module.bias)

    def roles(self) -> dict[str, Role]:
        return {"parts.0.merge.0.weight": TABLE}  # it reads pixels, which are no vectors

    capturable = True  # the same kernels for all images of a size

    @property
    def stages(self) -> int:
        return len(self.parts)

    def channels(self, stage: int | None = None) -> int:
        return self.config.widths[self.checked(stage) - 1]

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """The map after a stage: h = H / (patch · 2ˢ⁻¹), rounded down."""
        x = image.contiguous(memory_format=torch.channels_last)
        return self.onward(x, 0, self.checked(stage))

    def onward(
        self, grid: Float[Tensor, "B C h w"], after: int, to: int
    ) -> Float[Tensor, "B D i j"]:
        for part in self.parts[after:to]:
            grid = part(grid)
        return grid

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return tiles(self.config.patch << (self.checked(stage) - 1))

    def drop_after(self, stage: int) -> None:
        if self.checked(stage) < self.stages:
            del self.parts[stage:]
            self.norm = nn.Identity()

    def layers_upwards(self) -> list[nn.Module]:
        return [block for part in self.parts for block in part.get_submodule("blocks").children()]

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        return self.norm(self.grid(image).mean(dim=(2, 3)))

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.head(self.pooled(image))

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        grid = self.grid(image, stage)
        last = self.onward(grid, self.checked(stage), self.stages)
        return grid, self.head(self.norm(last.mean(dim=(2, 3))))


def _sized(depth: int, width: int, drop_path: float) -> ConvNextConfig:
    widths = tuple(width << stage for stage in range(4))
    return ConvNextConfig(depths=(3, 3, depth, 3), widths=widths, drop_path=drop_path)


PRESETS: dict[str, ConvNextConfig] = {
    "convnext-nano": ConvNextConfig(depths=(2, 2, 2), widths=(48, 96, 192), layer_scale=0.1),
    "convnext-32": ConvNextConfig(
        depths=(3, 9, 3), widths=(96, 192, 384), patch=2, layer_scale=0.1, drop_path=0.1
    ),
    "convnext-t": _sized(9, 96, 0.1),
    "convnext-s": _sized(27, 96, 0.4),
    "convnext-b": _sized(27, 128, 0.5),
    "convnext-l": _sized(27, 192, 0.5),
    "convnext-xl": _sized(27, 256, 0.5),
}
