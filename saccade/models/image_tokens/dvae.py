"""Discrete VAE: an image as a grid of codes, each one of few, and the image again from these.

Ramesh et al. 2021, arXiv:2102.12092, §2.1 and appendix A; layers as in the published model: the
blocks of the decoder begin with the 1×1 that those of the encoder end with. Small sizes depart from
it in one way: they take pixels by `patch`, which leaves the costly first and last layers out.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from saccade.config import ModelConfig, check_positive
from saccade.errors import ConfigError
from saccade.models.image_tokens.pixels import map_pixels, unmap_pixels

NARROWER = 4  # the inside of a block than its output
MIDDLE, SPREAD = 0.5, 0.25  # of mapped pixels, about


@dataclass(frozen=True, kw_only=True)
class DvaeConfig(ModelConfig):
    """Sizes of a discrete VAE.

    Args:
        image: side of the images in pixels; training takes that of its data.
        codes: how many there are for a cell to be one of.
        width: of the first group; it doubles at each.
        groups: of blocks; the image is halved between one and the next.
        patch: pixels to a side that are read together by the first convolution, and told together
            by the last; 1 as published.
        blocks: of each group.
        code_width: of a code's vector, which the decoder begins with.
    """

    image: int = 256
    codes: int = 8192
    width: int = 256
    groups: int = 4
    patch: Literal[1, 2, 4] = 1
    blocks: int = 2
    code_width: int = 128

    def __post_init__(self) -> None:
        check_positive(self, "image", "codes", "width", "groups", "blocks", "code_width")
        if self.width % NARROWER:
            raise ConfigError(f"width={self.width} must be a multiple of {NARROWER}")
        if self.image % self.cell:
            raise ConfigError(
                f"image={self.image} is not cut into cells of {self.cell} pixels, which patch="
                f"{self.patch} and groups={self.groups} make; take a multiple of {self.cell}"
            )

    @property
    def cell(self) -> int:
        """Pixels to a side of a cell."""
        return self.patch << (self.groups - 1)

    @property
    def grid(self) -> int:
        """Cells to a side."""
        return self.image // self.cell

    def build(self) -> "Dvae":
        return Dvae(self)


class Laplace(NamedTuple):
    """The logit of each mapped pixel is Laplace-distributed: its mean μ, and ln b of its scale."""

    mean: Float[Tensor, "B 3 H W"]
    log_scale: Float[Tensor, "B 3 H W"]

    def image(self) -> UInt8[Tensor, "B 3 H W"]:
        """The pixels at its middle: φ⁻¹(σ(μ))."""
        return unmap_pixels(self.mean.sigmoid())


class DvaeBlock(nn.Module):
    """Four convolutions around which the input goes by.

    y = shortcut(x) + g · W₄ * relu(W₃ * relu(W₂ * relu(W₁ * relu(x))))

    `kernels` are their sides; `gain` is g, small at the start of a deep model.
    """

    def __init__(
        self, inputs: int, outputs: int, *, kernels: tuple[int, int, int, int], gain: float
    ) -> None:
        super().__init__()
        inside = outputs // NARROWER
        widths = (inputs, inside, inside, inside, outputs)
        self.gain = gain
        self.shortcut = _conv(inputs, outputs, 1) if inputs != outputs else nn.Identity()
        self.convolutions = nn.ModuleList(
            _conv(*sizes, kernel) for sizes, kernel in zip(pairwise(widths), kernels, strict=True)
        )

    def forward(self, x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B D H W"]:
        y = x
        for conv in self.convolutions:
            y = conv(y.relu())
        return torch.add(self.shortcut(x), y, alpha=self.gain)


class DvaeEncoder(nn.Module):
    """Mapped pixels → groups of blocks, halved between them → a score for each code."""

    def __init__(self, config: DvaeConfig) -> None:
        super().__init__()
        widths = [config.width, *(config.width << group for group in range(config.groups))]
        self.input = _conv(3, config.width, 7, stride=config.patch)
        _standardise(self.input)
        self.groups = _groups(widths, config.blocks, kernels=(3, 3, 3, 1))
        self.output = _conv(widths[-1], config.codes, 1)

    def forward(self, mapped: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B V h w"]:
        x = self.input(_for_kernels(mapped))
        for number, group in enumerate(self.groups):
            x = group(F.max_pool2d(x, 2) if number else x)
        with torch.autocast(x.device.type, enabled=False):  # scores need the precision
            return self.output(x.relu().to(self.output.weight.dtype))


class DvaeDecoder(nn.Module):
    """Vectors of codes → groups of blocks, enlarged between them → a distribution of pixels."""

    def __init__(self, config: DvaeConfig) -> None:
        super().__init__()
        upwards = reversed(range(config.groups))
        widths = [config.code_width, *(config.width << group for group in upwards)]
        self.input = _conv(config.codes, config.code_width, 1)
        self.groups = _groups(widths, config.blocks, kernels=(1, 3, 3, 3))
        self.patch = config.patch
        self.output = _conv(config.width, 6 * config.patch**2, 1)

    def forward(self, vectors: Float[Tensor, "B C h w"]) -> Laplace:
        x = _for_kernels(vectors)
        for number, group in enumerate(self.groups):
            x = group(F.interpolate(x, scale_factor=2, mode="nearest") if number else x)
        told = F.pixel_shuffle(self.output(x.relu()), self.patch)
        mean, log_scale = told.to(torch.promote_types(told.dtype, torch.float32)).chunk(2, dim=1)
        return Laplace(mean, log_scale)

    def of_weights(self, weights: Float[Tensor, "B V h w"]) -> Laplace:
        """The vector of a cell is the mean of those of all codes, by these weights."""
        with torch.autocast(weights.device.type, enabled=False):
            vectors = self.input(weights.to(self.input.weight.dtype))
        return self(vectors)

    def of_codes(self, codes: Int[Tensor, "B h w"]) -> Laplace:
        """The same where one code of each cell has all the weight."""
        assert self.input.bias is not None
        table = self.input.weight.flatten(1).mT + self.input.bias  # (V, C)
        return self(F.embedding(codes, table).permute(0, 3, 1, 2))


class Dvae(nn.Module):
    """image → a score of each code in each cell → one code for each cell → image."""

    capturable = True  # the same kernels for all images of a size

    def __init__(self, config: DvaeConfig) -> None:
        super().__init__()
        self.config = config
        self.encoder = DvaeEncoder(config)
        self.decoder = DvaeDecoder(config)

    def encode(self, images: UInt8[Tensor, "B 3 H W"]) -> Float[Tensor, "B V h w"]:
        """Logits of q(code | image), each cell by itself."""
        return self.encoder(map_pixels(images, self.decoder.output.weight.dtype))

    def distribution(self, weights: Float[Tensor, "B V h w"]) -> Laplace:
        """What pixels are likely, given how much of each code is in each cell."""
        return self.decoder.of_weights(weights)

    @torch.no_grad()
    def codes(self, images: UInt8[Tensor, "B 3 H W"]) -> Int[Tensor, "B cells"]:
        """The likeliest code of each cell, row by row."""
        return self.encode(images).argmax(dim=1).flatten(1)

    @torch.no_grad()
    def decode(self, codes: Int[Tensor, "B cells"]) -> UInt8[Tensor, "B 3 H W"]:
        """The image that codes stand for."""
        side = self.config.grid
        return self.decoder.of_codes(codes.unflatten(1, (side, side))).image()

    def reconstruct(self, images: UInt8[Tensor, "B 3 H W"]) -> UInt8[Tensor, "B 3 H W"]:
        """What is left of images once they were codes."""
        return self.decode(self.codes(images))


def _groups(widths: list[int], blocks: int, *, kernels: tuple[int, int, int, int]) -> nn.ModuleList:
    """From each width to the next by so many blocks, of which the first widens or narrows."""
    gain = ((len(widths) - 1) * blocks) ** -2
    return nn.ModuleList(
        nn.Sequential(
            *(
                DvaeBlock(before if first else after, after, kernels=kernels, gain=gain)
                for first in (True, *[False] * (blocks - 1))
            )
        )
        for before, after in pairwise(widths)
    )


def _for_kernels(x: Float[Tensor, "B C H W"]) -> Float[Tensor, "B C H W"]:
    """The same, its channels last in memory: convolutions are faster so, on a CPU by half."""
    return x.contiguous(memory_format=torch.channels_last)


def _conv(inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> nn.Conv2d:
    """Of odd side, and at the start such that the variance stays."""
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2)
    nn.init.normal_(conv.weight, std=(inputs * kernel**2) ** -0.5)
    nn.init.zeros_(conv.bias)  # type: ignore[arg-type]
    return conv


@torch.no_grad()
def _standardise(conv: nn.Conv2d) -> None:
    """Let a fresh first layer read pixels about their middle, and as if they varied by one.

    Mapped pixels are all positive: what cells have in common would drown what differs, and all
    begin with the same likeliest code.
    """
    assert conv.bias is not None
    conv.weight.div_(SPREAD)
    conv.bias.copy_(conv.weight.sum(dim=(1, 2, 3)).mul_(-MIDDLE))


PRESETS: dict[str, ModelConfig] = {
    "dvae-nano": DvaeConfig(image=64, codes=512, width=64, groups=2, patch=4, blocks=1),
    "dvae-mini": DvaeConfig(image=64, codes=128, width=128, groups=2, patch=2, blocks=1),
    "dvae-64": DvaeConfig(image=64, codes=1024, width=128, groups=3, patch=2),
    "dvae-128": DvaeConfig(image=128, codes=2048, width=128, groups=3, patch=2),
    "dvae-base": DvaeConfig(),
}
