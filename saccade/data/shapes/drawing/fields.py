"""Signed distance fields: how far each point is from an outline, negative within.

Computed once per kind and tilt on a fixed grid and then read off at any place and size, so that
an image costs a few small array operations and edges are smooth at every resolution.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from jaxtyping import Bool, Float, Int

from saccade.data.shapes.drawing.outlines import Loop, Part, outline, tilted

REACH = 1.5  # the grid goes this far, in half boxes, so that shadows and soft edges find values
_GRID = 121
_PER_BOX = (_GRID - 1) / (2 * REACH)  # grid steps in half a box
_FIRST, _LAST = np.float32(0), np.float32(_GRID - 1.001)


@dataclass(frozen=True, eq=False)
class Field:
    """Distances of one kind at one tilt, in units of the outline's own frame.

    Places are given relative to the box of the outline: −1 and 1 are its edges.
    """

    parts: Float[np.ndarray, "P G G"]
    inside: Bool[np.ndarray, "G G"]
    paints: tuple[str, ...]
    half_width: float
    half_height: float
    area: float

    def sample(
        self, xs: Float[np.ndarray, " W"], ys: Float[np.ndarray, " H"]
    ) -> Float[np.ndarray, "P H W"]:
        """Distances at a grid of places, interpolated linearly between the four nearest."""
        before, beyond = _locate(np.concatenate([xs, ys]))  # one call: such small ones cost alike
        across, down = slice(len(xs)), slice(len(xs), None)
        row, column = before[down], before[across]
        rows = self.parts.take(row, axis=1)  # (P, H, G)
        rows += beyond[down, None] * (self.parts.take(row + 1, axis=1) - rows)
        found = rows.take(column, axis=2)  # (P, H, W)
        found += beyond[across] * (rows.take(column + 1, axis=2) - found)
        return found

    def within(
        self, xs: Float[np.ndarray, " W"], ys: Float[np.ndarray, " H"]
    ) -> Bool[np.ndarray, "H W"]:
        """Which places of a grid lie within any part, by the nearest known point."""
        column = ((xs + REACH) * _PER_BOX + 0.5).astype(np.intp)
        row = ((ys + REACH) * _PER_BOX + 0.5).astype(np.intp)
        return self.inside[row[:, None], column]


def _locate(
    at: Float[np.ndarray, " W"],
) -> tuple[Int[np.ndarray, " W"], Float[np.ndarray, " W"]]:
    """The grid point before each place, and how far on towards the next the place lies."""
    along = at * np.float32(_PER_BOX) + np.float32(REACH * _PER_BOX)
    along = np.minimum(np.maximum(along, _FIRST), _LAST)
    before = np.floor(along)
    return before.astype(np.intp), along - before


@cache
def field(kind: str, tilt: int) -> Field:
    """The field of a kind turned by `tilt` degrees."""
    parts = tilted(outline(kind), tilt)
    corners = np.concatenate([loop for part in parts for loop in part.loops])
    low, high = corners.min(axis=0), corners.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    steps = np.linspace(-REACH, REACH, _GRID)
    places = np.stack(np.meshgrid(steps, steps), axis=-1) * half + middle  # (G, G, 2)
    distances = np.stack([_distance(part, places) for part in parts]).astype(np.float32)
    inside = np.asarray((distances < 0).any(axis=0))
    area = float(inside.sum() * half[0] * half[1]) / _PER_BOX**2
    paints = tuple(part.paint for part in parts)
    return Field(distances, inside, paints, float(half[0]), float(half[1]), area)


def _distance(part: Part, places: Float[np.ndarray, "H W 2"]) -> Float[np.ndarray, "H W"]:
    """Distance to the nearest edge of any loop; the sign by how often a ray crosses the loops."""
    x, y = np.ascontiguousarray(places[..., 0]), np.ascontiguousarray(places[..., 1])
    nearest = np.full(x.shape, np.inf)
    odd = np.zeros(x.shape, dtype=bool)
    for (x0, y0), (x1, y1) in (edge for loop in part.loops for edge in _edges(loop)):
        dx, dy = x1 - x0, y1 - y0
        from_x, from_y = x - x0, y - y0
        share = np.clip((from_x * dx + from_y * dy) / (dx**2 + dy**2), 0, 1)
        np.minimum(nearest, (from_x - share * dx) ** 2 + (from_y - share * dy) ** 2, out=nearest)
        if dy:
            crossed = ((y0 <= y) != (y1 <= y)) & (from_x < from_y * (dx / dy))
            odd ^= crossed
    return np.where(odd, -1, 1) * np.sqrt(nearest)


def _edges(loop: Loop) -> list[tuple[list[float], list[float]]]:
    corners: list[list[float]] = loop.tolist()
    return [(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True) if a != b]
