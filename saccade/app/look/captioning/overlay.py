"""Attention laid over an image: what was not looked at lies in the shade.

As Xu et al. (2015) drew it: the map is made as large as the image with a Gaussian kernel, and the
image is darkened where the map is low. True cells show what the model had: each as far as it is
the nearest.
"""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, UInt8
from PIL import ImageColor
from torch import Tensor

from saccade.data.images.lattice import Lattice, nearest

SHADE = np.array([9.0, 11.0, 16.0])
OPACITY = 0.7
LIGHT_OPACITY = 0.62  # of colours, through which the image is still to be seen
BLUR = 0.6  # cells


def smoothed(
    weights: Float[np.ndarray, "h w"], size: int, lattice: Lattice
) -> Float[np.ndarray, "size size"]:
    """The map at many more places.

        out = K_h a K_wᵀ        K[i, c] ∝ exp(−(xᵢ − c)² / 2σ²)

    Rows of K sum to one, so that an even map stays even.
    """
    down, across = (_kernel(middles, size) for middles in (lattice.down, lattice.across))
    return down @ weights @ across.T


def as_cells(
    weights: Float[np.ndarray, "h w"], size: int, lattice: Lattice
) -> Float[np.ndarray, "size size"]:
    """Each cell as far as it is the nearest."""
    return weights[np.ix_(nearest(lattice.down, size), nearest(lattice.across, size))]


def lit(
    weights: Float[Tensor, "h w"], size: int, lattice: Lattice, *, cells: bool = False
) -> Float[np.ndarray, "size size"]:
    """How much light falls on each pixel: 1 where attention is highest, 0 where there is none."""
    grow: Callable[[np.ndarray, int, Lattice], np.ndarray] = as_cells if cells else smoothed
    grown = grow(weights.double().numpy(), size, lattice)
    return grown / max(float(grown.max()), 1e-9)


def veil(
    weights: Float[Tensor, "h w"],
    size: int,
    lattice: Lattice,
    *,
    cells: bool = False,
    opacity: float = OPACITY,
) -> UInt8[np.ndarray, "size size 4"]:
    """What is laid over the image; where a word looks nowhere, nothing."""
    shade = opacity * (1 - lit(weights, size, lattice, cells=cells)) * bool(weights.any())
    colour = np.broadcast_to(SHADE, (size, size, 3))
    return np.round(np.dstack([colour, 255 * shade])).astype(np.uint8)


def lights(
    maps: Sequence[Float[Tensor, "h w"]],
    colours: Sequence[str],
    size: int,
    lattice: Lattice,
    *,
    cells: bool = False,
    opacity: float = LIGHT_OPACITY,
) -> UInt8[np.ndarray, "size size 4"]:
    """Several maps at once, each in its own colour, as Carion et al. (2020) drew them.

        colour = Σᵢ lᵢ² cᵢ / Σᵢ lᵢ²        brightness = maxᵢ lᵢ, with l how much light falls there

    Where nothing is looked at lies the shade.
    """
    lit_up = np.stack([lit(one, size, lattice, cells=cells) for one in maps])
    inks = np.array([ImageColor.getrgb(one) for one in colours], dtype=float)
    shares = lit_up**2 / np.maximum((lit_up**2).sum(axis=0), 1e-9)
    mixed = np.tensordot(shares, inks, axes=(0, 0))
    bright = lit_up.max(axis=0)[..., None]
    cover = np.full((size, size, 1), 255 * opacity)
    return np.round(np.dstack([SHADE + bright * (mixed - SHADE), cover])).astype(np.uint8)


def _kernel(middles: Float[np.ndarray, " cells"], size: int) -> Float[np.ndarray, "size cells"]:
    x = (np.arange(size) + 0.5) / size
    apart = middles[1] - middles[0] if len(middles) > 1 else 1.0
    far = (x[:, None] - middles) / apart  # in cells
    k = np.exp(-(far**2) / (2 * BLUR**2))
    return k / k.sum(axis=1, keepdims=True)
