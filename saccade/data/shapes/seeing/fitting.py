"""Which shape, where and how large: the drawing that is nearest to what is seen of a colour.

For shares s, weights w and a shape's drawing d the squared error falls, against no shape at all, by

    gain = Σ w s² − Σ w (s − d)² = Σ 2ws·d − Σ w·d²,

which is two correlations. They are computed for all places at half the side by Fourier transform,
and then around the best place for every kind at full size, to half a pixel.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from saccade.data.shapes.seeing.templates import (
    BLURS,
    COARSE,
    EACH,
    HALVES,
    WINDOW,
    Pose,
    coarse_bank,
    fine_bank,
    tilts,
)

_LEAST = 2.0  # a coarse gain, in pixels of the coarse image
_RIVAL = 0.5  # kinds whose coarse gain is less than this share of the best are not tried further
_NEAR = 3  # coarse pixels from the best place, for other kinds
_SHIFT = 1  # pixels around a coarse place
_WIDE = 2 * _SHIFT + 1
_PAD = WINDOW // 2 + _SHIFT
_AROUND, _SURE, _FEW = 14, 0.75, 8
_LUMA = np.array([0.3, 0.6, 0.1], dtype=np.float32)  # how bright a colour looks
_CONTRAST = 0.35  # between an object and the background around it; soft spots have less


class Fit(NamedTuple):
    """A shape in its place, and by how much it lowers the squared error."""

    pose: Pose
    gain: float


class Layer(NamedTuple):
    """What is seen of one colour: its share of each pixel, and what each pixel counts."""

    share: Float[np.ndarray, "H W"]
    weight: Float[np.ndarray, "H W"]


def rough_fits(layer: Layer) -> list[Fit]:
    """The best place for any shape at half the side, and each kind's best fit near it."""
    bank = coarse_bank()
    said = (2 * layer.share - 1) * layer.weight
    half = said.reshape(COARSE, 2, COARSE, 2).sum(axis=(1, 3))
    spectrum = np.fft.rfft2(half).astype(np.complex64)
    gains = np.fft.irfft2(bank.spectra * spectrum, s=(COARSE, COARSE))  # (T, 32, 32)
    gains += bank.barred
    y, x = divmod(int(gains.max(axis=0).argmax()), COARSE)
    top, left = max(0, y - _NEAR), max(0, x - _NEAR)
    near = gains[:, top : y + _NEAR + 1, left : x + _NEAR + 1]
    found: list[Fit] = []
    for rows in bank.kinds:
        own = near[rows]
        row, down, right = np.unravel_index(int(own.argmax()), own.shape)
        centre = {"x": 2.0 * (left + int(right)) + 1, "y": 2.0 * (top + int(down)) + 1}
        pose = bank.poses[rows.start + int(row)]._replace(**centre)
        found.append(Fit(pose, float(own[row, down, right])))
    best = max(fit.gain for fit in found)
    return [fit for fit in found if fit.gain >= max(_LEAST, _RIVAL * best)]


def best_fit(layer: Layer, rough: list[Fit]) -> Fit:
    """The best of all kinds at full size, each near its rough fit."""
    padded = np.stack(
        [
            np.pad(2 * layer.share * layer.weight, _PAD),
            np.pad(layer.weight, _PAD, constant_values=1),
        ]
    )
    return max((_refined(padded, fit.pose) for fit in rough), key=lambda fit: fit.gain)


def _refined(padded: Float[np.ndarray, "2 h w"], pose: Pose) -> Fit:
    """The best of all tilts, nearby sizes and places to half a pixel, sharp or blurred."""
    lowest = max(0, pose.size - EACH + 1)
    drawn = fine_bank(pose.kind)[lowest : pose.size + EACH]  # (L, R, 1024)
    y, x, reach = int(pose.y), int(pose.x), WINDOW + _WIDE - 1
    around = padded[:, y : y + reach, x : x + reach]
    views = np.lib.stride_tricks.sliding_window_view(around, (WINDOW, WINDOW), axis=(1, 2))
    said, counted = views.reshape(2, _WIDE**2, -1)
    flat = drawn.reshape(-1, WINDOW * WINDOW)
    gains = flat @ said.T - (flat * flat) @ counted.T  # (L R, shifts)
    sizes = (len(drawn), len(tilts(pose.kind)), len(HALVES), len(BLURS), _WIDE, _WIDE)
    best = int(gains.argmax())
    size, tilt, half, blur, down, right = (int(i) for i in np.unravel_index(best, sizes))
    return Fit(
        Pose(
            pose.kind,
            tilts(pose.kind)[tilt],
            lowest + size,
            x + right - _SHIFT + HALVES[half][1],
            y + down - _SHIFT + HALVES[half][0],
            BLURS[blur],
        ),
        float(gains.flat[best]),
    )


def contrasted(
    layer: Layer,
    image: Float[np.ndarray, "3 H W"],
    ground: Bool[np.ndarray, "H W"],
    pose: Pose,
) -> Layer | None:
    """The layer with shares as seen from the colours around a place; None without a contrast.

        share = (p − b)·(c − b) / |c − b|²,   c the object's mean colour, b the background's

    This follows smeared colours better than hues do, but shadows would look like dark paints: so
    it is for objects that are brighter than their background.
    """
    y, x = int(pose.y), int(pose.x)
    near = np.s_[max(0, y - _AROUND) : y + _AROUND, max(0, x - _AROUND) : x + _AROUND]
    sure, plain, pixels = layer.share[near] > _SURE, ground[near], image[:, *near]
    if min(np.count_nonzero(sure), np.count_nonzero(plain)) < _FEW:
        return layer
    behind = pixels[:, plain].mean(axis=1)
    way = pixels[:, sure].mean(axis=1) - behind
    if min(way.mean(), _LUMA @ way) <= 0:
        return layer
    if way @ way < _CONTRAST**2:
        return None
    share = np.tensordot(way / (way @ way), image - behind[:, None, None], axes=1)
    seen = ((layer.share > 0) | ground) & (layer.weight == 1)
    share = np.where(seen, np.minimum(np.maximum(share, 0), 1), layer.share)
    return Layer(share.astype(np.float32), layer.weight)


def without(layer: Layer, drawn: Float[np.ndarray, "H W"]) -> Layer:
    """What is left to explain; objects of one colour do not overlap, so nothing goes on there."""
    gone = drawn > 0.1
    return Layer(np.where(gone, 0, layer.share), np.where(gone, 1, layer.weight))
