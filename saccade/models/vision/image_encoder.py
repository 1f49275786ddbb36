"""What every reader of images offers: a grid of vectors at any stage, and to stay as it is.

An image comes standardised, as its weights were trained: `(pixels - mean) / deviation`.
"""

from abc import ABC, abstractmethod
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.axes import Axis
from saccade.config import ModelConfig
from saccade.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ImageEncoderConfig(ModelConfig):
    """Sizes of an image encoder.

    Args:
        classes: how many it tells apart; training takes as many as the data have. With none it
            ends before the class scores.
    """

    classes: int = 1000

    def __post_init__(self) -> None:
        if self.classes < 0:
            raise ConfigError(f"classes={self.classes} must be 0 (none) or more")

    @property
    def expects(self) -> int | None:
        """The side of the images that it is made for; None: any."""
        return None

    def for_images(self, side: int, *, classes: int) -> "ImageEncoderConfig":
        """The same for images of this size, and so many classes."""
        more: dict[str, Any] = {} if self.expects is None else {"image": side}
        sized = replace(self, classes=classes, **more)
        sized.check_image()
        return sized

    def check_image(self) -> None:
        """Refuse a size of images that it cannot read. Not before all settings are known: the size
        is often told apart from the others.
        """

    @abstractmethod
    def build(self) -> "ImageEncoder":
        """Fresh weights, from torch's global random state."""


def require_tiles(image: int, patch: int, *, fixed: bool = False) -> None:
    """Refuse patches that leave a rest of the image; `fixed` ones cannot be other."""
    if image % patch == 0:
        return
    fits = next(side for side in range(patch, 0, -1) if image % side == 0)
    other = f"patch={fits}, or " if fits > 1 and not fixed else ""
    raise ConfigError(
        f"patch={patch} does not tile image={image}; take {other}image={image + -image % patch}"
    )


def halved(times: int) -> tuple[float, float]:
    """The cells of a grid that strides of two have thinned out so many times.

    Each stride begins at the first pixel, whose middle is half a pixel in.
    """
    return 0.5, 2.0**times


def tiles(side: int) -> tuple[float, float]:
    """The cells of a grid that lie side by side without gaps or overlaps."""
    return side / 2, float(side)


def image_axis(shape: tuple[int, int], cells: tuple[float, float], *, special: int = 0) -> Axis:
    """A grid on an image, by where its first cell lies and how far the next is, in pixels."""
    first, apart = cells
    return Axis("image", "grid", *shape, special, first=first / apart, pixels=apart)


def for_kernels(image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B 3 H W"]:
    """The same, its channels last in memory on a GPU, whose convolutions want them there."""
    return image.contiguous(memory_format=torch.channels_last) if image.is_cuda else image


class ImageEncoder(nn.Module, ABC):
    """Image → stage 1 → … → last stage → one vector → class scores.

    Called, it gives class scores, or the one vector where it was built with no classes.
    """

    def __init__(self) -> None:
        super().__init__()
        self._frozen: tuple[nn.Module, ...] = ()

    @property
    @abstractmethod
    def stages(self) -> int:
        """How many there are; they count from 1."""

    @abstractmethod
    def channels(self, stage: int | None = None) -> int:
        """How wide the vectors of a stage are, the last by default."""

    @abstractmethod
    def grid(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> Float[Tensor, "B C h w"]:
        """A vector for each cell of a grid that lies over the image, after a stage."""

    def onward(
        self, grid: Float[Tensor, "B C h w"], after: int, to: int
    ) -> Float[Tensor, "B D i j"]:
        """What a later stage makes of the grid after an earlier one."""
        raise ConfigError(
            f"{type(self).__name__} has grids of one fineness; take one of its stages alone"
        )

    @abstractmethod
    def grid_and_scores(
        self, image: Float[Tensor, "B 3 H W"], stage: int | None = None
    ) -> tuple[Float[Tensor, "B C h w"], Float[Tensor, "B classes"]]:
        """The grid after a stage, and the class scores that are computed from that very grid."""

    @abstractmethod
    def cells(self, stage: int | None = None) -> tuple[float, float]:
        """In pixels: where the middle of the first cell of a stage lies, and how far the next is.

        What a cell sees, it sees around its middle.
        """

    @abstractmethod
    def pooled(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B C"]:
        """The whole image as the one vector that class scores are read from."""

    @abstractmethod
    def drop_after(self, stage: int) -> None:
        """Give up what lies beyond a stage, for one who reads that one and no later."""

    @abstractmethod
    def layers_upwards(self) -> list[nn.Module]:
        """The blocks, from those that the stem feeds to those that the class is read from."""

    def freeze(self, *parts: nn.Module) -> None:
        """Keep some parts (all by default) as they are, whoever trains what they are part of.

        Their weights get no gradient, and their BatchNorm goes on with the statistics it has.
        """
        self._frozen = (*self._frozen, *(parts or (self,)))
        for part in self._frozen:
            part.requires_grad_(False)
        self.train(self.training)

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        for part in self._frozen:
            for module in part.modules():
                module.training = False
        return self

    def freeze_below(self, stage: int) -> None:
        """Keep all that lies up to a stage as it is."""
        lower = deepcopy(self)
        lower.drop_after(stage)
        kept = {name: type(module) for name, module in lower.named_modules()}
        same = (part for name, part in self.named_modules() if kept.get(name) is type(part))
        self.freeze(*(part for part in same if not list(part.children())))
        for name, _ in lower.named_parameters():  # of modules that have others inside as well
            self.get_parameter(name).requires_grad_(False)

    def checked(self, stage: int | None) -> int:
        """A stage that there is; none stands for the last."""
        if stage is not None and not 1 <= stage <= self.stages:
            raise ConfigError(
                f"stage={stage} is not there; {type(self).__name__} has 1 to {self.stages}"
            )
        return self.stages if stage is None else stage
