"""MobileNetV2: wide inside, narrow between (Sandler et al. 2018, arXiv:1801.04381).

Parameters have torchvision's names, so that its published weights load. Stage s ends with the last
layer whose cells are 2ˢ × 2ˢ pixels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from saccade.blocks.dropout import Dropout
from saccade.config import check_fraction
from saccade.errors import ConfigError
from saccade.models.vision.image_encoder import ImageEncoder, ImageEncoderConfig, halved


class Group(NamedTuple):
    """Blocks of one width; the first of them strides."""

    expansion: int
    channels: int
    blocks: int
    stride: int


GROUPS = (
    Group(1, 16, 1, 1),
    Group(6, 24, 2, 2),
    Group(6, 32, 3, 2),
    Group(6, 64, 4, 2),
    Group(6, 96, 3, 1),
    Group(6, 160, 3, 2),
    Group(6, 320, 1, 1),
)
ENDS = (2, 4, 7, 14, 19)  # how many of the layers each stage ends after
STEM, TOP = 32, 1280


@dataclass(frozen=True, kw_only=True)
class MobileNetConfig(ImageEncoderConfig):
    """Sizes of a MobileNetV2.

    Args:
        multiplier: scales every width; the last grows with it but never shrinks.
        dilated: keep the last stage as fine as the one before: what it would skip, it looks across.
        dropout: before the class scores.
    """

    multiplier: float = 1.0
    dropout: float = 0.2
    dilated: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fraction(self, "dropout")
        if self.multiplier <= 0:
            raise ConfigError(f"multiplier={self.multiplier} must be above 0")

    def scaled(self, channels: int) -> int:
        """To the nearest multiple of 8 that is not below nine tenths, and at least 8."""
        wanted = channels * self.multiplier
        near = max(8, int(wanted + 4) // 8 * 8)
        return near + 8 if near < 0.9 * wanted else near

    @property
    def top(self) -> int:
        """Width of the last layer."""
        return max(TOP, self.scaled(TOP)) if self.multiplier > 1 else TOP

    def build(self) -> "MobileNet":
        return MobileNet(self)


def _layer(
    inputs: int, outputs: int, kernel: int, *, stride: int = 1, dilation: int = 1, groups: int = 1
) -> nn.Sequential:
    """A convolution, its norm, and what bends it: between 0 and 6, for low precision."""
    reach = dilation * (kernel // 2)
    conv = nn.Conv2d(
        inputs, outputs, kernel, stride, reach, dilation=dilation, groups=groups, bias=False
    )
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU6(inplace=True))


class InvertedResidual(nn.Module):
    """Widen, look around in each channel by itself, narrow without bending.

        y = norm(W₃ · relu6(norm(W₂ ⊛ relu6(norm(W₁ · x)))))

    One that `adds` gives x + y. With no expansion there is no W₁.
    """

    def __init__(
        self, inputs: int, outputs: int, *, expansion: int, stride: int, dilation: int, adds: bool
    ) -> None:
        super().__init__()
        hidden = inputs * expansion
        self.adds = adds
        widen = [_layer(inputs, hidden, 1)] if expansion > 1 else []
        self.conv = nn.Sequential(
            *widen,
            _layer(hidden, hidden, 3, stride=stride, dilation=dilation, groups=hidden),
            nn.Conv2d(hidden, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C2 h w"]:
        return x + self.conv(x) if self.adds else self.conv(x)


class MobileNet(ImageEncoder):
    """Stem → inverted residuals → 1×1 → mean over the grid → class scores."""

    def __init__(self, config: MobileNetConfig) -> None:
        super().__init__()
        self.config = config
        self.features = nn.Sequential(*_layers(config))
        self.classifier = nn.Sequential()
        if config.classes:
            self.classifier.append(Dropout(config.dropout))
            self.classifier.append(nn.Linear(config.top, config.classes))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                nn.init.zeros_(module.bias)

    capturable = True  # the same kernels for all images of a size

    @property
    def stages(self) -> int:
        return len(ENDS)

    def channels(self, stage: int | None = None) -> int:
        stage, config = self.checked(stage), self.config
        return config.top if stage == self.stages else config.scaled((16, 24, 32, 96)[stage - 1])

    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """The map after a stage: h = ⌈H / 2ˢ⌉, and where dilated that of stage 4 at stage 5.

        The first four have 16, 24, 32 and 96 channels, times the multiplier; the last has 1280.
        """
        return self.features[: ENDS[self.checked(stage) - 1]](image)

    def onward(
        self, grid: Float[Tensor, "B C h w"], after: int, to: int
    ) -> Float[Tensor, "B D i j"]:
        return self.features[ENDS[after - 1] : ENDS[to - 1]](grid)

    def cells(self, stage: int | None = None) -> tuple[float, float]:
        return halved(min(self.checked(stage), 4 if self.config.dilated else 5))

    def drop_after(self, stage: int) -> None:
        del self.features[ENDS[self.checked(stage) - 1] :]

    def layers_upwards(self) -> list[nn.Module]:
        return [layer for layer in self.features if isinstance(layer, InvertedResidual)]

    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        return self.grid(image).mean(dim=(2, 3))

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B classes"]:
        return self.classifier(self.pooled(image))

    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        grid = self.grid(image, stage)
        last = self.onward(grid, self.checked(stage), self.stages)
        return grid, self.classifier(last.mean(dim=(2, 3)))


def _layers(config: MobileNetConfig) -> Iterator[nn.Module]:
    width = config.scaled(STEM)
    yield _layer(3, width, 3, stride=2)
    halvings, dilation = 1, 1
    for expansion, channels, blocks, stride in GROUPS:
        halvings += stride - 1
        fine = config.dilated and halvings == len(ENDS)
        outputs = config.scaled(channels)
        for step in [stride] + [1] * (blocks - 1):
            yield InvertedResidual(
                width,
                outputs,
                expansion=expansion,
                stride=1 if fine else step,
                dilation=dilation,
                adds=step == 1 and width == outputs,
            )
            width, dilation = outputs, 2 if fine else 1  # what would have been halved was not
    yield _layer(width, config.top, 1)


PRESETS: dict[str, MobileNetConfig] = {
    "mobilenet-nano": MobileNetConfig(multiplier=0.25),
    "mobilenet-v2": MobileNetConfig(),
}
