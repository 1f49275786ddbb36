"""Residual networks (He et al. 2016, arXiv:1512.03385), as torchvision has them.

Parameters have torchvision's names, so that its published weights load. Like torchvision, this
departs from the paper in halving the image at a bottleneck's 3×3, not at its first 1×1.

Stage s is C_s of the literature, with cells of 2ˢ × 2ˢ pixels: stage 1 is the stem before its
pooling, stages 2 to 5 are `layer1` to `layer4`. For small images, as the paper's own for CIFAR, the
stem neither strides nor pools: cells are 1, 1, 2, 4 and 8 pixels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from saccade.config import check_positive
from saccade.models.vision.image_encoder import (
    ImageEncoder,
    ImageEncoderConfig,
    for_kernels,
    halved,
)

Depth = Literal[10, 18, 34, 50, 101, 152]


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(ImageEncoderConfig):
    """Sizes of a ResNet.

    Args:
        depth: layers in all, of which there are few choices.
        width: of the first residual stage; it doubles at each.
        stem: as published, or for small images: a 3×3 convolution that leaves every pixel a cell.
        dilated: keep the last stage as fine as the one before: what it would skip, it looks across.
    """

    depth: Depth = 50
    width: int = 64
    stem: Literal["imagenet", "small"] = "imagenet"
    dilated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive(self, "width")

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """How many there are in each residual stage."""
        return BLOCKS[self.depth]

    @property
    def expansion(self) -> int:
        """How much wider a stage's output is than the inside of its blocks."""
        return 4 if self.depth >= 50 else 1

    def halvings(self, stage: int) -> int:
        """How often the image was halved up to a stage."""
        often = stage if self.stem == "imagenet" else max(0, stage - 2)
        return often - (self.dilated and stage == 5)

    def build(self) -> "ResNet":
        return ResNet(self)


BLOCKS: dict[Depth, tuple[int, int, int, int]] = {
    10: (1, 1, 1, 1),
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}


class ResidualBlock(nn.Module, ABC):
    """Convolutions around which the input goes by.

    y = relu(norm(Wₙ * … relu(norm(W₁ * x))) + shortcut(x))
    """

    downsample: nn.Sequential

    @abstractmethod
    def convolutions(self) -> list[tuple[nn.Conv2d, nn.Module]]:
        """Each with the norm after it."""

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C2 h w"]:
        *before, (last, norm) = self.convolutions()
        y = x
        for conv, after in before:
            y = after(conv(y)).relu_()
        return norm(last(y)).add_(self.downsample(x)).relu_()


class BasicBlock(ResidualBlock):
    """Two 3×3 convolutions. Neighbours lie `apart` cells before and after the first."""

    def __init__(self, inputs: int, width: int, *, stride: int, apart: tuple[int, int]) -> None:
        super().__init__()
        self.conv1 = _wide(inputs, width, stride=stride, dilation=apart[0])
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _wide(width, width, stride=1, dilation=apart[1])
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = _shortcut(inputs, width, stride)

    def convolutions(self) -> list[tuple[nn.Conv2d, nn.Module]]:
        return [(self.conv1, self.bn1), (self.conv2, self.bn2)]


class Bottleneck(ResidualBlock):
    """A 3×3 convolution between two 1×1 that narrow and widen again, fourfold.

    Neighbours lie `apart` cells from one another before and after the 3×3.
    """

    def __init__(self, inputs: int, width: int, *, stride: int, apart: tuple[int, int]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _wide(width, width, stride=stride, dilation=apart[0])
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = _shortcut(inputs, 4 * width, stride)

    def convolutions(self) -> list[tuple[nn.Conv2d, nn.Module]]:
        return [(self.conv1, self.bn1), (self.conv2, self.bn2), (self.conv3, self.bn3)]


def _wide(inputs: int, outputs: int, *, stride: int, dilation: int) -> nn.Conv2d:
    return nn.Conv2d(inputs, outputs, 3, stride, dilation, dilation=dilation, bias=False)


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """The input itself where it fits."""
    if stride == 1 and inputs == outputs:
        return nn.Sequential()
    conv = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs))


class ResNet(ImageEncoder):
    """Stem → four stages of residual blocks → mean over the grid → class scores."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        self.config = config
        small = config.stem == "small"
        side, stride = (3, 1) if small else (7, 2)
        self.conv1 = nn.Conv2d(3, config.width, side, stride, side // 2, bias=False)
        self.bn1 = nn.BatchNorm2d(config.width)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, 2, 1)
        self.layer1 = self._stage(2)
        self.layer2 = self._stage(3)
        self.layer3 = self._stage(4)
        self.layer4 = self._stage(5)
        self.fc = nn.Linear(self.channels(), config.classes) if config.classes else nn.Identity()
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    capturable = True  # the same kernels for all images of a size

    @property
    def stages(self) -> int:
        return 5

    def channels(self, stage: int | None = None) -> int:
        stage, config = self.checked(stage), self.config
        return config.width if stage == 1 else config.width * config.expansion << (stage - 2)

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """The map after a stage: h = ⌈H / 2ⁿ⌉ after n halvings; where dilated, stage 5 has none."""
        x = self.bn1(self.conv1(for_kernels(image))).relu_()
        return self.onward(x, 1, self.checked(stage))

    def onward(
        self, grid: Float[Tensor, "B C h w"], after: int, to: int
    ) -> Float[Tensor, "B D i j"]:
        x = self.maxpool(grid) if after == 1 < to else grid
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4)[after - 1 : to - 1]:
            x = layer(x)
        return x

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return halved(self.config.halvings(self.checked(stage)))

    def drop_after(self, stage: int) -> None:
        for name in ("layer1", "layer2", "layer3", "layer4")[self.checked(stage) - 1 :]:
            setattr(self, name, nn.Identity())

    def layers_upwards(self) -> list[nn.Module]:
        stages = self.layer1, self.layer2, self.layer3, self.layer4
        return [block for stage in stages for block in stage.children()]

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        return self.grid(image).mean(dim=(2, 3))

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.fc(self.pooled(image))

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        stage = self.checked(stage)
        grid = self.grid(image, stage)
        return grid, self.fc(self.onward(grid, stage, self.stages).mean(dim=(2, 3)))

    def _stage(self, stage: int) -> nn.Sequential:
        config, block = self.config, BasicBlock if self.config.expansion == 1 else Bottleneck
        width, dilated = config.width << (stage - 2), config.dilated and stage == 5
        stride = 1 if dilated or stage == 2 else 2
        after = 2 if dilated else 1  # what would have been halved was not
        first = block(self.channels(stage - 1), width, stride=stride, apart=(1, after))
        others = (
            block(self.channels(stage), width, stride=1, apart=(after, after))
            for _ in range(config.blocks[stage - 2] - 1)
        )
        return nn.Sequential(first, *others)


PRESETS: dict[str, ResNetConfig] = {
    "resnet-nano": ResNetConfig(depth=18, width=16),
    "resnet-mini": ResNetConfig(depth=10, width=32),
    "resnet-18-small": ResNetConfig(depth=18, stem="small"),
    "resnet-18": ResNetConfig(depth=18),
    "resnet-34": ResNetConfig(depth=34),
    "resnet-50": ResNetConfig(depth=50),
    "resnet-101": ResNetConfig(depth=101),
    "resnet-152": ResNetConfig(depth=152),
    "resnet-50-dilated": ResNetConfig(depth=50, dilated=True),
    "resnet-101-dilated": ResNetConfig(depth=101, dilated=True),
}
