"""Multiscale Vision Transformers: attention that pools what it looks at, and in the end itself.

Li et al. 2022, arXiv:2112.01526 (v2). What Fan et al. 2021, arXiv:2104.11227 (v1) had otherwise are
options: `relative`, `residual_pooling`, `class_token`, `widen`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear
from saccade.attention.parameters import FREE, TABLE, Role
from saccade.blocks.dropout import DropPath, growing
from saccade.blocks.mlp import FeedForward
from saccade.blocks.patches import resized
from saccade.config import check_fraction, check_positive
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import (
    ImageEncoder,
    ImageEncoderConfig,
    for_kernels,
    halved,
)
from saccade.models.vision.pooling_attention import EPSILON, PoolingAttention, Shape

STRIDE = 4  # of the stem; each later stage halves the map


@dataclass(frozen=True, kw_only=True)
class MvitConfig(ImageEncoderConfig):
    """Sizes of a multiscale Vision Transformer; each stage is twice as wide as the one before.

    Args:
        image: side of the images whose offsets or positions are learnt.
        width: of the first stage.
        heads: of the first stage.
        depths: blocks of each stage.
        pooled: how much coarser than the map the keys of the first stage are, along a side.
        relative: scores know how far apart two cells are (v2); else positions are added to the
            patches (v1).
        residual_pooling: what is read is added to the pooled query itself (v2).
        class_token: read the class at a token of its own (v1), not from the mean.
        widen: where a stage becomes wider: in the attention of its first block (v2 but L), or in
            the MLP of the block before (v1, L).
        drop_path: how often the last block is left out for an image; those before it less often.
    """

    image: int = 224
    width: int = 96
    heads: int = 1
    depths: tuple[int, ...] = (1, 2, 5, 2)
    pooled: int = 4
    relative: bool = True
    residual_pooling: bool = True
    class_token: bool = False
    widen: Literal["attention", "mlp"] = "attention"
    drop_path: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "image", "width", "heads", "pooled")
        check_fraction(self, "drop_path")
        if not self.depths or min(self.depths) < 1:
            raise ConfigError(f"depths={self.depths} must be at least 1 in each stage")
        if self.width % self.heads:
            raise ConfigError(f"width={self.width} does not divide into heads={self.heads}")

    @property
    def expects(self) -> int | None:
        return self.image

    def side(self, stage: int) -> int:
        """Cells along a side of the map of a stage, of images of the size named."""
        side = _strided(self.image, STRIDE)
        for _ in range(stage):
            side = _strided(side, 2)
        return side

    def build(self) -> "Mvit":
        return Mvit(self)


def _strided(size: int, stride: int) -> int:
    """What a convolution padded to see every cell leaves of a side: ⌈size / stride⌉."""
    return -(-size // stride)


class MvitBlock(nn.Module):
    """Pooling attention and an MLP, each around a shortcut that is pooled and widened alike.

    x ← pool(x) + attention(norm(x))        x ← x + MLP(norm(x))
    """

    def __init__(
        self,
        widths: tuple[int, int, int],
        *,
        heads: int,
        strides: Shape,
        cells: Shape,
        pixels: int,
        config: MvitConfig,
        drop_path: float,
    ) -> None:
        """`widths` are those of the input, after the attention, and after the MLP."""
        super().__init__()
        inputs, width, outputs = widths
        self.before_attention = nn.LayerNorm(inputs, EPSILON)
        self.attention = PoolingAttention(
            inputs,
            width,
            heads=heads,
            strides=strides,
            cells=cells,
            pixels=pixels,
            relative=config.relative,
            residual=config.residual_pooling,
        )
        self.beside_attention = Linear(inputs, width) if inputs != width else None
        self.before_mlp = nn.LayerNorm(width, EPSILON)
        self.mlp = (
            WideningMlp(width, outputs)
            if outputs != width
            else FeedForward(width, hidden=4 * width, activation=F.gelu)
        )
        self.beside_mlp = Linear(width, outputs) if outputs != width else None
        self.drop_path, self.stride = DropPath(drop_path), strides[0]

    def forward(
        self, x: Float[Tensor, "B T D"], shape: Shape
    ) -> tuple[Float[Tensor, "B T2 D2"], Shape]:
        normed = self.before_attention(x)
        beside = x if self.beside_attention is None else self.beside_attention(normed)
        read, queries = self.attention(normed, shape)
        x = self._pooled(beside, shape) + self.drop_path(read)
        normed = self.before_mlp(x)
        beside = x if self.beside_mlp is None else self.beside_mlp(normed)
        return beside + self.drop_path(self.mlp(normed)), queries

    def _pooled(self, x: Float[Tensor, "B T D"], shape: Shape) -> Float[Tensor, "B T2 D"]:
        """The strongest of each neighbourhood, where queries are pooled."""
        if self.stride == 1:
            return x
        extra = x.shape[1] - shape[0] * shape[1]
        maps = x[:, extra:].mT.unflatten(2, shape)
        maps = F.max_pool2d(maps, self.stride + 1, self.stride, (self.stride + 1) // 2)
        return torch.cat([x[:, :extra], maps.flatten(2).mT], dim=1)


class WideningMlp(nn.Module):
    """An MLP that leaves a wider vector than it takes.

    y = W₂ gelu(W₁ x + b₁) + b₂
    """

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        self.widen, self.narrow = Linear(width, 4 * width), Linear(4 * width, outputs)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T E"]:
        return self.narrow(F.gelu(self.widen(x)))


class MvitStage(nn.Module):
    """Blocks of one width and fineness."""

    def __init__(self, config: MvitConfig, number: int, rates: Iterator[float]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            _block(config, number, place, next(rates)) for place in range(config.depths[number])
        )

    def forward(
        self, x: Float[Tensor, "B T D"], shape: Shape
    ) -> tuple[Float[Tensor, "B T2 D2"], Shape]:
        for block in self.blocks:
            x, shape = block(x, shape)
        return x, shape


def _block(config: MvitConfig, number: int, place: int, drop_path: float) -> MvitBlock:
    first, last = place == 0, place == config.depths[number] - 1
    width = config.width << number
    inputs = outputs = width
    halves = first and number > 0
    if config.widen == "attention":
        inputs = width >> halves
    else:
        outputs = width << 1 if last and number < len(config.depths) - 1 else width
    strides = (2 if halves else 1, max(1, config.pooled >> number))
    side = config.side(number - halves)  # of the map that it is given
    return MvitBlock(
        (inputs, width, outputs),
        heads=config.heads << number,
        strides=strides,
        cells=(_strided(side, strides[0]), _strided(side, strides[1])),
        pixels=STRIDE << (number - halves),
        config=config,
        drop_path=drop_path,
    )


class Mvit(ImageEncoder):
    """Patches that overlap → stages → norm → mean, or the class token → class scores."""

    def __init__(self, config: MvitConfig) -> None:
        super().__init__()
        self.config = config
        self.patches = nn.Conv2d(3, config.width, 7, STRIDE, 3)
        token = 0.02 * torch.randn(config.width) if config.class_token else None
        self.register_parameter("class_token", None if token is None else nn.Parameter(token))
        count = config.class_token + config.side(0) ** 2
        places = None if config.relative else nn.Parameter(0.02 * torch.randn(count, config.width))
        self.register_parameter("positions", places)
        self.class_token: nn.Parameter | None
        self.positions: nn.Parameter | None
        rates = growing(config.drop_path, sum(config.depths))
        self.parts = nn.ModuleList(
            MvitStage(config, number, rates) for number in range(len(config.depths))
        )
        self.norm = nn.LayerNorm(config.width << (len(config.depths) - 1), EPSILON)
        self.head = Linear(self.channels(), config.classes) if config.classes else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.trunc_normal_(module.weight, std=0.02)
                nn.init.zeros_(module.bias)

    def roles(self) -> dict[str, Role]:
        # The stem reads pixels, which are no vectors.
        own = {"patches.weight": TABLE, "class_token": FREE, "positions": FREE}
        there = dict(self.named_parameters(recurse=False))
        return {name: role for name, role in own.items() if "." in name or name in there}

    capturable = True  # the same kernels for all images of a size

    @property
    def stages(self) -> int:
        return len(self.parts)

    def channels(self, stage: int | None = None) -> int:
        number = self.checked(stage) - 1
        wider = self.config.widen == "mlp" and number < len(self.config.depths) - 1
        return self.config.width << (number + wider)

    def tokens(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B T D"], Shape]:
        """The class token, if there is one, and each cell after a stage; and the map's shape."""
        stage, maps = self.checked(stage), self.patches(for_kernels(image))
        x, shape = maps.flatten(2).mT, (maps.shape[2], maps.shape[3])
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(x.shape[0], 1, -1), x], dim=1)
        if self.positions is not None:
            x = x + self._places(shape)
        return self._between(x, shape, 0, stage)

    def _between(
        self, x: Float[Tensor, "B T D"], shape: Shape, after: int, to: int
    ) -> tuple[Float[Tensor, "B T2 D2"], Shape]:
        """From after a stage to after another; normalised after the last."""
        for part in self.parts[after:to]:
            x, shape = part(x, shape)
        return (self.norm(x) if after < to == self.stages else x), shape

    def _places(self, shape: Shape) -> Float[Tensor, "T D"]:
        assert self.positions is not None
        extra, side = int(self.config.class_token), self.config.side(0)
        cells = resized(self.positions[extra:], (side, side), shape)
        return torch.cat([self.positions[:extra], cells])

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """The map after a stage: h = ⌈H / (4 · 2ˢ⁻¹)⌉; normalised after the last."""
        x, shape = self.tokens(image, stage)
        return x[:, int(self.config.class_token) :].mT.unflatten(2, shape)

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return halved(self.checked(stage) + 1)

    def drop_after(self, stage: int) -> None:
        if self.checked(stage) < self.stages:
            del self.parts[stage:]
            self.norm = nn.Identity()

    def layers_upwards(self) -> list[nn.Module]:
        return [block for part in self.parts for block in part.get_submodule("blocks").children()]

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        return self._read(self.tokens(image)[0])

    def _read(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B D"]:
        return x[:, 0] if self.config.class_token else x.mean(dim=1)

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.head(self.pooled(image))

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        (x, shape), after = self.tokens(image, stage), self.checked(stage)
        extra = int(self.config.class_token)
        grid = x[:, extra:].mT.unflatten(2, shape)
        if after < self.stages or not extra:  # else the scores need the class token alone
            x = torch.cat([x[:, :extra], grid.flatten(2).mT], dim=1)
            x, _ = self._between(x, shape, after, self.stages)
        return grid, self.head(self._read(x))


PRESETS: dict[str, MvitConfig] = {
    "mvit-nano": MvitConfig(image=64, width=48, depths=(1, 1, 1)),
    "mvitv2-t": MvitConfig(drop_path=0.1),
    "mvitv2-s": MvitConfig(depths=(1, 2, 11, 2), drop_path=0.1),
    "mvitv2-b": MvitConfig(depths=(2, 3, 16, 3), drop_path=0.3),
    "mvitv2-l": MvitConfig(width=144, heads=2, depths=(2, 6, 36, 4), widen="mlp", drop_path=0.5),
}
