"""Every kind at every tilt and size, drawn once by the outlines that images are drawn from."""

from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Complex64, Float, Float32

from saccade.data.shapes.compose import RADII, TILTS, UPRIGHT
from saccade.data.shapes.drawing.fields import field
from saccade.data.shapes.scenes import KINDS, Box, Thing

SIDE = 64  # images are read at this size
COARSE = SIDE // 2
WINDOW = 32  # no object is wider than this
EACH = 3  # the coarse search tries every third size
BLURS = (0.0, 1.2)  # in pixels: as drawn, and as smeared by a decoder or by compression
HALVES = ((0.0, 0.0), (0.0, 0.5), (0.5, 0.0), (0.5, 0.5))  # how far a centre is off, (y, x)
SCALES = tuple(
    float(scale) for scale in np.geomspace(0.98 * RADII["small"][0], 1.02 * RADII["main"][1], 19)
)
_SMALL = (RADII["small"][1] + RADII["big"][0]) / 2  # the scale between small and big
_PIXELS = np.arange(SIDE, dtype=np.float32) + 0.5


class Pose(NamedTuple):
    """A kind at a tilt, a size (a place in `SCALES`), a centre in pixels, and a blur."""

    kind: str
    tilt: int
    size: int
    x: float = 0.0
    y: float = 0.0
    blur: float = 0.0

    def drawn(self) -> Float[np.ndarray, "64 64"]:
        """The share of each pixel of an image that the shape covers."""
        scale = SCALES[self.size] * SIDE
        return blurred(cover(self, scale, _PIXELS - self.x, _PIXELS - self.y), self.blur)

    def thing(self, colour: str) -> Thing:
        """The object of a scene."""
        known, scale = field(self.kind, self.tilt), SCALES[self.size]
        box = Box(
            self.x / SIDE,
            self.y / SIDE,
            2 * scale * known.half_width,
            2 * scale * known.half_height,
        )
        return Thing(self.kind, colour, "small" if scale < _SMALL else "big", box, self.tilt)


class CoarseBank(NamedTuple):
    """All kinds at all tilts and every third size, ready for correlation by Fourier transform."""

    poses: tuple[Pose, ...]
    spectra: Complex64[np.ndarray, "T 32 17"]
    barred: Float32[np.ndarray, "T 32 32"]  # −∞ where the object would leave the image
    kinds: tuple[slice, ...]  # the rows of each of `KINDS`


def tilts(kind: str) -> tuple[int, ...]:
    """The tilts at which a kind looks different."""
    return (0,) if kind in UPRIGHT else TILTS


def cover(
    pose: Pose, scale: float, xs: Float[np.ndarray, " W"], ys: Float[np.ndarray, " H"]
) -> Float[np.ndarray, "H W"]:
    """The share of each pixel that a shape covers; scale and places in pixels, from its centre."""
    known = field(pose.kind, pose.tilt)
    across = (xs / (scale * known.half_width)).astype(np.float32)
    down = (ys / (scale * known.half_height)).astype(np.float32)
    distance = known.sample(across, down).min(axis=0) * np.float32(scale)
    return np.minimum(np.maximum(0.5 - distance, 0), 1)


def blurred(
    drawn: Float[np.ndarray, "*batch S S"], sigma: float
) -> Float[np.ndarray, "*batch S S"]:
    """After a Gaussian blur; dark outside."""
    if not sigma:
        return drawn
    kernel = _kernel(drawn.shape[-1], sigma)
    return kernel @ drawn @ kernel


@cache
def _kernel(side: int, sigma: float) -> Float32[np.ndarray, "S S"]:
    away = np.arange(side)[:, None] - np.arange(side)
    kernel = np.exp(-(away**2) / (2 * sigma**2))
    return (kernel / kernel[side // 2].sum()).astype(np.float32)


@cache
def coarse_bank() -> CoarseBank:
    """Shapes in an image of half the side, each centred on its first pixel."""
    at = (np.arange(COARSE) + COARSE // 2) % COARSE - COARSE // 2
    poses, spectra, barred = list[Pose](), list[np.ndarray](), list[np.ndarray]()
    kinds = list[slice]()
    for kind in KINDS:
        ways = [
            Pose(kind, tilt, size)
            for tilt in tilts(kind)[::2]
            for size in range(0, len(SCALES), EACH)
        ]
        kinds.append(slice(len(poses), len(poses) + len(ways)))
        poses += ways
    for pose in poses:
        scale = SCALES[pose.size] * COARSE
        spectra.append(np.conj(np.fft.rfft2(cover(pose, scale, at, at))))
        barred.append(_barred(pose, scale))
    return CoarseBank(
        tuple(poses), np.stack(spectra).astype(np.complex64), np.stack(barred), tuple(kinds)
    )


def _barred(pose: Pose, scale: float) -> Float32[np.ndarray, "32 32"]:
    """−∞ at the centres from where a shape would reach beyond the image by more than a pixel."""
    known, middle = field(pose.kind, pose.tilt), np.arange(COARSE) + 0.5
    near = np.minimum(middle, COARSE - middle) + 1  # to the nearest edge
    inside = (near >= scale * known.half_height)[:, None] & (near >= scale * known.half_width)
    return np.where(inside, 0, -np.inf).astype(np.float32)


@cache
def fine_bank(kind: str) -> Float32[np.ndarray, "L R 1024"]:
    """A kind in a window at all sizes; for each, all tilts, then `HALVES`, then `BLURS`."""
    at = np.arange(WINDOW) + 0.5 - WINDOW / 2
    sharp = np.stack(
        [
            cover(Pose(kind, tilt, 0), scale * SIDE, at - right, at - down)
            for scale in SCALES
            for tilt in tilts(kind)
            for down, right in HALVES
        ]
    )
    drawn = np.stack([blurred(sharp, sigma) for sigma in BLURS], axis=1)
    return drawn.reshape(len(SCALES), -1, WINDOW * WINDOW).astype(np.float32)
