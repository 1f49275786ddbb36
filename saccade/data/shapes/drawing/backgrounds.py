"""What lies behind the objects: muted, uneven, never quite the same twice.

Every background is a short sum of products of a row and a column profile,

    background[c, y, x] = Σᵣ colour[c, r] · down[r, y] · across[r, x],

so one small matrix product draws it at any size.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

_TINT = 0.05  # how far from grey a background may be
_GREYS = (0.36, 0.62)  # away from black and from white, which are colours of objects

Places = Float[np.ndarray, " S"]
Random = Float[np.ndarray, " R"]


class Terms(NamedTuple):
    """The summands: strength in each channel, profile downwards, profile across."""

    colour: Float[np.ndarray, "3 R"]
    down: Float[np.ndarray, "R S"]
    across: Float[np.ndarray, "R S"]


@cache
def places(size: int) -> Places:
    """The centres of a row of pixels, from 0 to 1."""
    return ((np.arange(size) + 0.5) / size).astype(np.float32)


def background(kind: str, rng: np.random.Generator, size: int) -> Float[np.ndarray, "3 H W"]:
    """A background of a kind, by the generator's dice."""
    dice = rng.random(48, dtype=np.float32)
    grey = _GREYS[0] + (_GREYS[1] - _GREYS[0]) * dice[0]
    base = grey + _TINT * (2 * dice[1:4] - 1)  # (3,)
    if kind == "plain":
        flat = np.empty((3, size, size), dtype=np.float32)
        flat[:] = base[:, None, None]
        return flat
    terms = _PATTERNS[kind](dice[4:], places(size))
    weighted = terms.colour[:, None, :] * terms.down.T  # (3, S, R)
    drawn = weighted @ terms.across  # (3, S, S)
    drawn += base[:, None, None]
    return drawn


def light(rng: np.random.Generator, size: int) -> Float[np.ndarray, "H W"]:
    """How bright the lamp is at each pixel: one side of the image gets a little more."""
    turn, strength, level = rng.random(3).tolist()
    x = places(size) - np.float32(0.5)
    slope_x = np.float32((0.08 + 0.12 * strength) * np.cos(2 * np.pi * turn))
    slope_y = np.float32((0.08 + 0.12 * strength) * np.sin(2 * np.pi * turn))
    return (np.float32(0.95 + 0.1 * level) + slope_x * x) + (slope_y * x)[:, None]


def _waves(dice: Random, x: Places) -> Terms:
    """Two plane waves: sin(ax + by + φ) = sin(ax + φ) cos(by) + cos(ax + φ) sin(by)."""
    turn, waves, phase = 2 * np.pi * dice[0:2], 2 + 7 * dice[2:4], 2 * np.pi * dice[4:6]
    a = 2 * np.pi * waves * np.cos(turn)
    b = 2 * np.pi * waves * np.sin(turn)
    across, down = a[:, None] * x + phase[:, None], b[:, None] * x  # (2, S)
    colour = 0.02 + 0.035 * dice[6:12].reshape(3, 2)
    return Terms(
        np.concatenate([colour, colour], axis=1),
        np.concatenate([np.cos(down), np.sin(down)]),
        np.concatenate([np.sin(across), np.cos(across)]),
    )


def _blobs(dice: Random, x: Places) -> Terms:
    """Six soft spots, lighter or darker, about as large as objects."""
    cx, cy, wide, high = dice[0:6], dice[6:12], 0.05 + 0.1 * dice[12:18], 0.05 + 0.1 * dice[18:24]
    shade = np.where(dice[24:30] < 0.5, -0.13, 0.13) + 0.08 * (dice[30:36] - 0.5)
    tint = 0.08 * (dice[24:42].reshape(3, 6) - 0.5)
    return Terms(
        (shade + tint).astype(np.float32),
        np.exp(-(((x - cy[:, None]) / high[:, None]) ** 2)),
        np.exp(-(((x - cx[:, None]) / wide[:, None]) ** 2)),
    )


def _tiles(dice: Random, x: Places) -> Terms:
    """A chequered floor: two square waves, their edges a little soft, multiplied."""
    tiles, phase = 1.5 + 3 * dice[0], dice[1:3]
    across = np.clip(6 * np.sin(2 * np.pi * (tiles * x + phase[0])), -1, 1)
    down = np.clip(6 * np.sin(2 * np.pi * (tiles * x + phase[1])), -1, 1)
    colour = (0.03 + 0.02 * dice[3:6])[:, None]
    return Terms(colour, down[None], across[None])


_PATTERNS: dict[str, Callable[[Random, Places], Terms]] = {
    "waves": _waves,
    "blobs": _blobs,
    "tiles": _tiles,
}
