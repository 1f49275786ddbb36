"""Images as sequences: square patches in reading order, and positions that follow their grid."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from saccade.attention.kernels.train.linear import Linear, defers_bias
from saccade.attention.parameters import TABLE, Role
from saccade.errors import ConfigError


class Patches(nn.Module):
    """Cut an image into patches of `side` × `side` pixels, and see each as one vector.

        xₚ = W · pixels(p) + b

    It is a convolution that strides as far as it reaches, done as one product.
    """

    def __init__(self, width: int, *, side: int) -> None:
        super().__init__()
        self.side = side
        self.project = Linear(3 * side * side, width)

    def roles(self) -> dict[str, Role]:
        return {"project.weight": TABLE}  # it reads pixels, which are no vectors

    def forward(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B P D"]:
        return self.project(self.cut(image))

    def cut(self, image: Float[Tensor, "B C H W"]) -> Float[Tensor, "B P pixels"]:
        """The pixels of each patch, in the order of a convolution's weights."""
        high, wide = self.shape(image)
        cut = image.unflatten(3, (wide, self.side)).unflatten(2, (high, self.side))
        cut = cut.permute(0, 2, 4, 1, 3, 5)  # (B, 3, h, side, w, side) → (B, h, w, 3, side, side)
        if image.is_cuda and torch.is_autocast_enabled("cuda"):  # cast on the way, in one pass
            cut = cut.new_empty(cut.shape, dtype=torch.get_autocast_dtype("cuda")).copy_(cut)
        return cut.flatten(3).flatten(1, 2)

    def shape(self, image: Float[Tensor, "B C H W"]) -> tuple[int, int]:
        """How many patches lie below and beside one another."""
        height, width = image.shape[2:]
        if not height or not width or height % self.side or width % self.side:
            raise ConfigError(
                f"an image of {height}×{width} pixels does not divide into patches of "
                f"{self.side}; resize it to multiples of {self.side}"
            )
        return height // self.side, width // self.side


class ShiftedPatches(Patches):
    """Patches that overlap: the image and four copies, shifted to its corners by half a patch.

        xₚ = W norm([pixels(p); pixels(p − ↖); …; pixels(p − ↘)]) + b

    Lee et al. 2021, arXiv:2112.13492. Where nothing was, a shifted image is zero.
    """

    def __init__(self, width: int, *, side: int) -> None:
        super().__init__(width, side=side)
        inputs = (1 + len(CORNERS)) * self.project.in_features
        self.norm = nn.LayerNorm(inputs)
        self.project = Linear(inputs, width)

    def cut(self, image: Float[Tensor, "B 3 H W"]) -> Float[Tensor, "B P pixels"]:
        copies = [image, *to_corners(image, self.side // 2)]
        return self.norm(super().cut(torch.cat(copies, dim=1)))


CORNERS = ((-1, -1), (-1, 1), (1, -1), (1, 1))


def to_corners(image: Float[Tensor, "B C H W"], by: int) -> list[Float[Tensor, "B C H W"]]:
    """The image shifted so far to each of its corners; zero where nothing was."""
    height, width = image.shape[2:]
    wide = F.pad(image, (by, by, by, by))
    return [
        wide[:, :, by + by * down :, by + by * across :][:, :, :height, :width]
        for down, across in CORNERS
    ]


def placed(
    first: Float[Tensor, " D"], patches: Float[Tensor, "B P D"], places: Float[Tensor, "P D"]
) -> Float[Tensor, "B T D"]:
    """Patches at their places, after a token that is the same for all images.

    x = [first; patches + places]
    """
    if defers_bias(patches) or not torch.is_grad_enabled():
        return _Placed.apply(first, patches, places)  # type: ignore[no-any-return]
    return torch.cat([first.expand(patches.shape[0], 1, -1), patches + places], dim=1)


class _Placed(torch.autograd.Function):
    """The same, written once instead of twice."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, patches: Tensor, places: Tensor) -> Tensor:
        B, P, D = patches.shape
        x = places.new_empty(B, 1 + P, D)
        x[:, 0] = first
        torch.add(patches, places, out=x[:, 1:])
        ctx.dtype = patches.dtype
        return x

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, ...]:
        by_place = grads[0].sum(dim=0)  # (T, D)
        return by_place[0], grads[0][:, 1:].to(ctx.dtype), by_place[1:]


def resized(
    table: Float[Tensor, "P D"], old: tuple[int, int], new: tuple[int, int]
) -> Float[Tensor, "P2 D"]:
    """Vectors of a grid's cells on a grid of another shape, bicubically in between."""
    if old == new:
        return table
    if table.is_cuda:  # where the gradient of torch's own adds in any order
        each = torch.eye(len(table), device=table.device).unflatten(1, old)[:, None]
        return _bicubic(each, new).flatten(1).T.to(table) @ table
    return _bicubic(table.T.unflatten(1, old)[None], new)[0].flatten(1).T


def _bicubic(grids: Float[Tensor, "B C h w"], size: tuple[int, int]) -> Float[Tensor, "B C H W"]:
    return F.interpolate(grids, size=size, mode="bicubic", align_corners=False)
