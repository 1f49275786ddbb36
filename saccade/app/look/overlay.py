"""Attention laid over a picture: what was not looked at lies in the shade.

As Xu et al. (2015) drew it: the map is made as large as the picture with a Gaussian kernel, and the
picture is darkened where the map is low. True cells show what the model had: a square each.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

SHADE = np.array([9.0, 11.0, 16.0])
OPACITY = 0.7
BLUR = 0.6  # cells


def smoothed(weights: Float[np.ndarray, "h w"], size: int) -> Float[np.ndarray, "size size"]:
    """The map at many more places.

        out = K_h a K_wᵀ        K[i, c] ∝ exp(−(xᵢ − c)² / 2σ²)

    Rows of K sum to one, so that an even map stays even.
    """
    down, across = (_kernel(count, size) for count in weights.shape)
    return down @ weights @ across.T


def as_cells(weights: Float[np.ndarray, "h w"], size: int) -> Float[np.ndarray, "size size"]:
    """Each cell a square."""
    places = [np.arange(size) * count // size for count in weights.shape]
    return weights[np.ix_(*places)]


def lit(
    weights: Float[Tensor, "h w"], size: int, *, cells: bool = False
) -> Float[np.ndarray, "size size"]:
    """How much light falls on each pixel: 1 where attention is highest, 0 where there is none."""
    grow: Callable[[np.ndarray, int], np.ndarray] = as_cells if cells else smoothed
    grown = grow(weights.double().numpy(), size)
    return grown / max(float(grown.max()), 1e-9)


def overlaid(
    picture: UInt8[np.ndarray, "H W 3"],
    weights: Float[Tensor, "h w"],
    *,
    cells: bool = False,
    opacity: float = OPACITY,
) -> UInt8[np.ndarray, "H W 3"]:
    """The picture under its veil; a word that looks nowhere leaves it as it is."""
    if not weights.any():
        return picture
    shade = opacity * (1 - lit(weights, len(picture), cells=cells))[..., None]
    return np.round(picture * (1 - shade) + SHADE * shade).astype(np.uint8)


def veil(
    weights: Float[Tensor, "h w"], size: int, *, cells: bool = False, opacity: float = OPACITY
) -> UInt8[np.ndarray, "size size 4"]:
    """The veil alone, with its transparency."""
    shade = opacity * (1 - lit(weights, size, cells=cells)) * bool(weights.any())
    colour = np.broadcast_to(SHADE, (size, size, 3))
    return np.round(np.dstack([colour, 255 * shade])).astype(np.uint8)


def _kernel(count: int, size: int) -> Float[np.ndarray, "size count"]:
    x = (np.arange(size) + 0.5) * count / size - 0.5
    k = np.exp(-((x[:, None] - np.arange(count)) ** 2) / (2 * BLUR**2))
    return k / k.sum(axis=1, keepdims=True)
