"""Scenes as images, and which pixels belong to what."""

from math import ceil, floor

import numpy as np
from jaxtyping import Bool, Float, UInt8

from saccade.data.shapes.drawing.backgrounds import background, light, places
from saccade.data.shapes.drawing.dice import generator
from saccade.data.shapes.drawing.fields import field
from saccade.data.shapes.scenes import GROUPS, Scene, Thing
from saccade.errors import ConfigError

PAINTS = {
    "red": (0.86, 0.13, 0.13),
    "orange": (0.97, 0.52, 0.08),
    "yellow": (0.98, 0.88, 0.15),
    "green": (0.13, 0.62, 0.22),
    "blue": (0.12, 0.32, 0.86),
    "purple": (0.55, 0.18, 0.68),
    "white": (0.97, 0.97, 0.97),
    "black": (0.05, 0.05, 0.06),
    "skin": (0.88, 0.69, 0.53),
    "dark": (0.22, 0.17, 0.15),
    "wood": (0.42, 0.27, 0.14),
    "cloth": (0.92, 0.89, 0.82),
}
_HEADGEAR = ((0.33, 0.36, 0.42), (0.24, 0.30, 0.45), (0.42, 0.25, 0.28), (0.25, 0.38, 0.32))
_PAINT = {
    name: np.array(paint, dtype=np.float32).reshape(3, 1, 1) for name, paint in PAINTS.items()
}
_SECOND = tuple(np.array(paint, dtype=np.float32).reshape(3, 1, 1) for paint in _HEADGEAR)
_JITTER = 0.07
_NOISE = 0.05
_SHADOW, _SHADOW_SHIFT = 0.38, 0.014
_RIM, _RIM_DARK = 0.3, 0.12  # edges of objects are darker, within this share of a unit


def render(scene: Scene, size: int = 64) -> UInt8[np.ndarray, "H W 3"]:
    """The image: background, objects from far to near with their shadows, light, grain."""
    return _image(scene, size, scene.objects)


def hidden(scene: Scene, size: int = 64) -> UInt8[np.ndarray, "H W 3"]:
    """The image with the figure painted out in the mean colour of the rest.

    What is painted out is where a figure of either group would be, and its shadow is not drawn
    at all: so nothing that is left, not even a silhouette, depends on the group.
    """
    if scene.group is None:
        raise ConfigError("the scene has no figure to hide; take one of a biased split")
    figure = scene.main
    image = _image(scene, size, tuple(t for t in scene.objects if t is not figure))
    gone = np.zeros((size, size), dtype=bool)
    for group in GROUPS:
        gone |= _inside(Thing(group, figure.colour, figure.size, figure.box), size)
    image[gone] = image[~gone].mean(axis=0).round().astype(np.uint8)
    return image


def masks(scene: Scene, size: int = 64) -> Bool[np.ndarray, "Q H W"]:
    """For each object, the pixels where it is what one sees."""
    seen = np.stack([_inside(thing, size) for thing in scene.objects])
    covered = np.zeros((size, size), dtype=bool)
    for index in reversed(range(len(seen))):
        whole = seen[index].copy()
        seen[index] &= ~covered
        covered |= whole
    return seen


def mask(scene: Scene, index: int, size: int = 64) -> Bool[np.ndarray, "H W"]:
    """The pixels where object number `index` is what one sees."""
    return masks(scene, size)[index]


def boxes(scene: Scene) -> Float[np.ndarray, "Q 4"]:
    """The boxes of the whole objects, (cx, cy, w, h)."""
    return np.array([thing.box for thing in scene.objects], dtype=np.float32)


def visible_boxes(scene: Scene, size: int = 64) -> Float[np.ndarray, "Q 4"]:
    """The boxes of what one sees of the objects, (cx, cy, w, h)."""
    found: list[tuple[float, float, float, float]] = []
    for seen in masks(scene, size):
        (xs,), (ys,) = np.nonzero(seen.any(axis=0)), np.nonzero(seen.any(axis=1))
        x0, x1, y0, y1 = xs[0], xs[-1] + 1, ys[0], ys[-1] + 1
        found.append(((x0 + x1) / 2, (y0 + y1) / 2, x1 - x0, y1 - y0))
    return np.array(found, dtype=np.float32) / size


def _image(scene: Scene, size: int, shown: tuple[Thing, ...]) -> UInt8[np.ndarray, "H W 3"]:
    rng = generator(scene.seed, 0)
    canvas = background(scene.background, rng, size)
    lamp = light(rng, size)
    grain = rng.random((3, size, size), dtype=np.float32)
    headgear = _SECOND[int(rng.random() * len(_SECOND))]
    # Thrown last, so that one object more or less changes nothing about the rest.
    jitter = _JITTER * (rng.random((len(scene.objects), 3, 1, 1), dtype=np.float32) - 0.5)
    for thing, shift in zip(scene.objects, jitter, strict=True):
        if thing in shown:
            _paint(canvas, thing, size, shift, headgear)
    canvas *= lamp
    canvas *= 255
    grain -= 0.5
    grain *= 255 * _NOISE
    canvas += grain
    np.minimum(np.maximum(canvas, 0, out=canvas), 255, out=canvas)
    return np.ascontiguousarray(canvas.astype(np.uint8).transpose(1, 2, 0))


def _paint(
    canvas: Float[np.ndarray, "3 H W"],
    thing: Thing,
    size: int,
    shift: Float[np.ndarray, "3 1 1"],
    headgear: Float[np.ndarray, "3 1 1"],
) -> None:
    """Lay one object over the canvas: its shadow, then its parts from far to near."""
    rows, columns, distances = _distances(thing, size)
    _shade(canvas, (rows, columns), distances.min(axis=0), size)
    window = canvas[:, rows, columns]
    rim = thing.scale * size * _RIM
    paints = {**_PAINT, "own": _PAINT[thing.colour], "second": headgear}
    for distance, paint in zip(distances, field(thing.kind, thing.tilt).paints, strict=True):
        colour = shift + paints[paint]
        height = np.minimum(np.maximum(distance * (-_RIM_DARK / rim), 0), _RIM_DARK)
        cover = np.minimum(np.maximum(0.5 - distance, 0), 1)
        window += cover * (colour * (height + (1 - _RIM_DARK)) - window)


def _shade(
    canvas: Float[np.ndarray, "3 H W"],
    window: tuple[slice, slice],
    distance: Float[np.ndarray, "h w"],
    size: int,
) -> None:
    """Darken what lies below and to the right of an object, softly."""
    step = max(1, round(_SHADOW_SHIFT * size))
    rows, columns = (slice(s.start + step, min(s.stop + step, size)) for s in window)
    part = distance[: rows.stop - rows.start, : columns.stop - columns.start]
    dark = part * (-_SHADOW / (1.5 * step)) + _SHADOW / 2
    canvas[:, rows, columns] *= 1 - np.minimum(np.maximum(dark, 0), _SHADOW)


def _inside(thing: Thing, size: int) -> Bool[np.ndarray, "H W"]:
    """The pixels whose centres lie within the outline."""
    whole = np.zeros((size, size), dtype=bool)
    rows, columns, distances = _distances(thing, size)
    whole[rows, columns] = (distances < 0).any(axis=0)
    return whole


def _distances(thing: Thing, size: int) -> tuple[slice, slice, Float[np.ndarray, "P h w"]]:
    """The window around a thing, and each pixel's distance to its parts, in pixels."""
    pad = 2 + ceil(2 * _SHADOW_SHIFT * size)
    x0, y0, x1, y1 = thing.box.xyxy
    columns = slice(max(0, floor(x0 * size) - pad), min(size, ceil(x1 * size) + pad))
    rows = slice(max(0, floor(y0 * size) - pad), min(size, ceil(y1 * size) + pad))
    at, box = places(size), thing.box
    xs = (at[columns] - box.cx) * np.float32(2 / box.w)
    ys = (at[rows] - box.cy) * np.float32(2 / box.h)
    found = field(thing.kind, thing.tilt).sample(xs, ys)
    found *= np.float32(thing.scale * size)
    return rows, columns, found
