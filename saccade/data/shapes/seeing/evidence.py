"""How much of each pixel is painted in each colour: light and shadow change a paint, not its hue.

A paint under any lamp lies on a ray from black, so a pixel's distance to a colour is that to a
piece of its ray. Backgrounds lie on the grey ray between black and white; where they end and
white or black begins depends on how bright this image's background is.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from saccade.data.shapes.drawing.render import PAINTS
from saccade.data.shapes.scenes import COLOURS

_WHITE, _BLACK, _GROUND = COLOURS.index("white"), COLOURS.index("black"), len(COLOURS)
_GREYS = (_WHITE, _BLACK, _GROUND)
_SHADED, _LIT = 0.5, 1.25  # of a paint's own brightness: in deep shadow, in full light
_GREY_TOLERANCE, _HUE_TOLERANCE = 0.06, 0.03  # off the ray: the tint of greys, the jitter of paints
_MUTED, _DIM, _BRIGHT = 0.15, 0.2, 0.75  # what is surely background: hardly a hue, no extreme
_USUAL, _ENOUGH = 0.5, 100  # a background's brightness, where too few such pixels say it
_GAP = 0.03
_UNSEEN = 0.1  # the weight of a pixel where another object may hide this one


class Evidence(NamedTuple):
    """For each of `COLOURS`, the share of a pixel that it paints, and how much that counts.

    Where the colour of another object is seen a shape may go on behind it, so there is no share,
    and its lack counts little.
    """

    image: Float[np.ndarray, "3 H W"]
    share: Float[np.ndarray, "8 H W"]
    weight: Float[np.ndarray, "8 H W"]
    ground: Bool[np.ndarray, "H W"]  # where the background is nearest


def _directions() -> tuple[Float[np.ndarray, "9 3"], Float[np.ndarray, "9 1"]]:
    """Each class's ray, as a direction and the length of its paint; greys share one."""
    paints = np.array([PAINTS[colour] for colour in COLOURS] + [(1.0, 1.0, 1.0)], dtype=np.float32)
    paints[list(_GREYS)] = 1.0
    length = np.linalg.norm(paints, axis=1, keepdims=True)
    return paints / length, length


_DIRECTION, _LENGTH = _directions()
_TOLERANCE = np.full((len(COLOURS) + 1, 1), _HUE_TOLERANCE, dtype=np.float32)
_TOLERANCE[list(_GREYS)] = _GREY_TOLERANCE


def evidence(image: Float[np.ndarray, "3 H W"]) -> Evidence:
    """What each pixel of an image (0 to 1) says.

    share(c) = d(the nearest other class) / (d(the nearest other class) + d(c))
    """
    pixels = image.reshape(3, -1)
    distance = _distances(pixels)  # (9, HW)
    nearest = distance.argmin(axis=0)
    first, second = np.partition(distance, 1, axis=0)[:2]
    every = np.arange(len(COLOURS))[:, None]
    own = nearest == every  # (8, HW)
    other = np.where(own, second, first)
    hidden = ~own & (nearest != _GROUND)
    share = np.where(hidden, np.float32(0), other / (other + distance[:-1] + np.float32(1e-6)))
    weight = np.where(hidden, np.float32(_UNSEEN), np.float32(1))
    shape = (len(COLOURS), *image.shape[1:])
    ground = (nearest == _GROUND).reshape(image.shape[1:])
    return Evidence(image, share.reshape(shape), weight.reshape(shape), ground)


def _distances(pixels: Float[np.ndarray, "3 P"]) -> Float[np.ndarray, "9 P"]:
    """From each pixel to the lit piece of each class's ray."""
    low, high = _pieces(pixels)
    reach = _DIRECTION @ pixels  # (9, P)
    off = np.sqrt(np.maximum((pixels * pixels).sum(axis=0) - reach * reach, 0))
    off = np.maximum(off - _TOLERANCE, 0)
    along = reach - np.minimum(np.maximum(reach, low), high)
    return np.sqrt(off * off + along * along)


def _pieces(
    pixels: Float[np.ndarray, "3 P"],
) -> tuple[Float[np.ndarray, "9 1"], Float[np.ndarray, "9 1"]]:
    """Where each class's piece of its ray begins and ends, given the background's brightness."""
    grey = pixels.mean(axis=0)
    plain = (pixels.max(axis=0) - pixels.min(axis=0) < _MUTED) & (grey > _DIM) & (grey < _BRIGHT)
    level = float(np.median(grey[plain])) if np.count_nonzero(plain) > _ENOUGH else _USUAL
    white, black = 0.3 + 0.75 * level, 0.07 + 0.2 * level
    low, high = np.full_like(_LENGTH, _SHADED), np.full_like(_LENGTH, _LIT)
    low[_BLACK], high[_BLACK] = 0, black - _GAP
    low[_GROUND], high[_GROUND] = black + _GAP, white - _GAP
    low[_WHITE] = white + _GAP
    return low * _LENGTH, high * _LENGTH
