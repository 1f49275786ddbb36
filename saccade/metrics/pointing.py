"""The pointing game: does a map over an image point at the thing that is meant?

Zhang et al. 2016, arXiv:1608.00507. They let a point lie 15 pixels beside the thing, in images of
some 500; here that is told apart from a point inside.
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from saccade.data.images.lattice import Lattice, nearest


def peaks(
    maps: Float[Tensor, "n h w"], size: tuple[int, int], lattice: Lattice
) -> Int[Tensor, "n 2"]:
    """The row and column of the pixel where a map, drawn over the image, is highest.

    Straight lines between the middles of cells are highest at one of these: it is the middle of the
    highest cell. (Looking for the highest pixel instead would find the corner of the image for a
    cell in the corner, as the map is flat from its middle outwards.)
    """
    highest = maps.flatten(1).argmax(dim=1).tolist()
    middles = np.array([lattice.middle(cell) for cell in highest]).reshape(-1, 2)
    pixels = np.floor(middles * size + 1e-9).astype(int)  # thirds and the like are not exact
    return torch.from_numpy(np.minimum(pixels, np.array(size) - 1))


MARGIN = 15 / 500  # of the longer side of an image


def widened(inside: Bool[Tensor, "n H W"]) -> Bool[Tensor, "n H W"]:
    """With the game's margin around it."""
    reach = round(MARGIN * max(inside.shape[1:]))
    wide = F.max_pool2d(inside[:, None].float(), 2 * reach + 1, stride=1, padding=reach)
    return wide[:, 0] > 0


def points_at(
    maps: Float[Tensor, "n h w"], inside: Bool[Tensor, "n H W"], lattice: Lattice
) -> Bool[Tensor, " n"]:
    """Whether the highest point of each map lies inside."""
    height, width = inside.shape[1:]
    rows, columns = peaks(maps, (height, width), lattice).to(inside.device).unbind(dim=1)
    return inside[torch.arange(len(inside), device=inside.device), rows, columns]


def mass_inside(
    maps: Float[Tensor, "n h w"], inside: Bool[Tensor, "n H W"], lattice: Lattice
) -> Float[Tensor, " n"]:
    """The share of each map that lies inside, cells spread evenly over the pixels nearest to them.

    Σ_inside aᵢ / Σ aᵢ        0 for a map of nothing
    """
    down = _shares(lattice.down, inside.shape[1]).to(maps)
    across = _shares(lattice.across, inside.shape[2]).to(maps)
    shares = down @ inside.to(maps) @ across.T  # of each cell that is inside
    total = maps.flatten(1).sum(dim=1)
    return (maps * shares).flatten(1).sum(dim=1) / total.clamp(min=torch.finfo(maps.dtype).tiny)


def _shares(middles: Float[np.ndarray, " cells"], pixels: int) -> Float[Tensor, "cells pixels"]:
    """Which pixels are a cell's, in shares of all of them; the one beneath it where it has none."""
    mine = np.arange(len(middles))[:, None] == nearest(middles, pixels)
    under = np.minimum((middles * pixels).astype(int), pixels - 1)
    mine[np.arange(len(middles)), under] |= ~mine.any(axis=1)
    return torch.from_numpy(mine / mine.sum(axis=1, keepdims=True))


def inside_boxes(
    boxes_xyxy: Float[Tensor, "boxes 4"], size: tuple[int, int]
) -> Bool[Tensor, "H W"]:
    """The pixels whose centres lie in any of these boxes, given as shares of the sides."""
    height, width = size
    y = ((torch.arange(height) + 0.5) / height)[None, :, None]
    x = ((torch.arange(width) + 0.5) / width)[None, None, :]
    left, top, right, bottom = (side[:, None, None] for side in boxes_xyxy.unbind(dim=1))
    return ((left <= x) & (x < right) & (top <= y) & (y < bottom)).any(dim=0)
