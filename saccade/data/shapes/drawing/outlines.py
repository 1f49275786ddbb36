"""The outlines of all kinds, as polygons in a frame of their own: x to the right, y downwards.

A part is a set of closed loops, filled by the even-odd rule, so that a loop within a loop is a
hole. Simple kinds have one part in their own colour; figures, boats and kites have several.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Loop = Float[np.ndarray, "E 2"]
_ROUND = 56  # corners of a circle: at 512 pixels the largest misses it by a sixth of a pixel


class Part(NamedTuple):
    """One part: its loops, and its paint ("own" is the thing's colour, "second" the headgear's)."""

    loops: tuple[Loop, ...]
    paint: str = "own"


@cache
def outline(kind: str) -> tuple[Part, ...]:
    """The parts of a kind, from the farthest to the nearest."""
    if kind in _GLYPHS:
        return (Part(_GLYPHS[kind]()),)
    return _FIGURES[kind]()


def tilted(parts: tuple[Part, ...], degrees: int) -> tuple[Part, ...]:
    """The parts turned clockwise about the frame's origin."""
    turn = np.deg2rad(degrees)
    matrix = np.array([[np.cos(turn), np.sin(turn)], [-np.sin(turn), np.cos(turn)]])
    return tuple(Part(tuple(loop @ matrix for loop in part.loops), part.paint) for part in parts)


def _arc(
    radius: float,
    start: float = 0.0,
    end: float = 360.0,
    *,
    x: float = 0.0,
    y: float = 0.0,
    flat: float = 1.0,
) -> Loop:
    """Points of a circle (or an ellipse, `flat` times as high), angles clockwise from the right."""
    turn = np.deg2rad(np.linspace(start, end, _ROUND, endpoint=end - start < 360))
    return np.stack([x + radius * np.cos(turn), y + flat * radius * np.sin(turn)], axis=1)


def _polygon(*numbers: float) -> Loop:
    return np.array(numbers, dtype=float).reshape(-1, 2)


def _star() -> tuple[Loop, ...]:
    turn = np.deg2rad(np.arange(10) * 36 - 90)
    radius = np.where(np.arange(10) % 2, 0.44, 1.08)
    return (np.stack([radius * np.cos(turn), radius * np.sin(turn)], axis=1),)


def _cross() -> tuple[Loop, ...]:
    a, b = 0.32, 1.0
    corners = (-a, -b, a, -b, a, -a, b, -a, b, a, a, a, a, b, -a, b, -a, a, -b, a, -b, -a, -a, -a)
    return (_polygon(*corners),)


def _heart() -> tuple[Loop, ...]:
    t = np.linspace(0, 2 * np.pi, _ROUND, endpoint=False)
    x = np.sin(t) ** 3
    y = -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 16
    return (np.stack([x, y], axis=1),)


def _moon() -> tuple[Loop, ...]:
    """A disc less a disc to its right; the two circles meet at the horns."""
    inner, shift = 0.78, 0.5
    x = (1 - inner**2 + shift**2) / (2 * shift)
    y = (1 - x**2) ** 0.5
    outer_angle = float(np.rad2deg(np.arctan2(y, x)))
    inner_angle = float(np.rad2deg(np.arctan2(y, x - shift)))
    outer = _arc(1.0, outer_angle, 360 - outer_angle)
    bite = _arc(inner, inner_angle, 360 - inner_angle, x=shift)
    return (np.concatenate([outer, bite[::-1]]) + np.array([0.15, 0.0]),)


def _person(headgear: Part, *more: Part) -> tuple[Part, ...]:
    """A body that all figures share, and what it wears on its head."""
    feet = (_arc(0.17, x=-0.22, y=0.92, flat=0.5), _arc(0.17, x=0.22, y=0.92, flat=0.5))
    tunic = _polygon(-0.2, -0.22, 0.2, -0.22, 0.34, -0.05, 0.5, 0.88, -0.5, 0.88, -0.34, -0.05)
    belt = _polygon(-0.39, 0.25, 0.39, 0.25, 0.41, 0.36, -0.41, 0.36)
    head = _arc(0.24, y=-0.42)
    return (
        Part(feet, "dark"),
        Part((tunic,)),
        Part((belt,), "dark"),
        Part((head,), "skin"),
        headgear,
        *more,
    )


def _knight() -> tuple[Part, ...]:
    """A closed helmet with a slit for the eyes, and a plume. As tall and wide as the wizard."""
    dome = np.concatenate([_arc(0.29, 180.0, 360.0, y=-0.5), _polygon(0.27, -0.2, -0.27, -0.2)])
    plume = _polygon(0.05, -0.72, 0.09, -0.9, -0.02, -1.0, -0.22, -0.96, -0.33, -0.8, -0.15, -0.74)
    slit = _polygon(-0.2, -0.5, 0.2, -0.5, 0.2, -0.4, -0.2, -0.4)
    return _person(Part((plume,), "second"), Part((dome,), "second"), Part((slit,), "dark"))


def _wizard() -> tuple[Part, ...]:
    """A pointed hat with a brim."""
    cone = _polygon(-0.27, -0.52, 0.0, -1.0, 0.27, -0.52)
    brim = _arc(0.42, y=-0.5, flat=0.22)
    return _person(Part((cone,), "second"), Part((brim,), "second"))


def _boat() -> tuple[Part, ...]:
    mast = _polygon(-0.09, -1.0, 0.03, -1.0, 0.03, 0.5, -0.09, 0.5)
    sail = _polygon(0.1, -0.88, 0.85, 0.32, 0.1, 0.32)
    jib = _polygon(-0.17, -0.6, -0.17, 0.32, -0.75, 0.32)
    hull = _polygon(-1.0, 0.42, 1.0, 0.42, 0.66, 1.0, -0.66, 1.0)
    return Part((mast,), "wood"), Part((sail, jib), "cloth"), Part((hull,))


def _kite() -> tuple[Part, ...]:
    t = np.linspace(0, 1, 24)
    x, y = 0.16 * np.sin(9 * t), 0.3 + 0.7 * t
    tail = np.concatenate([np.stack([x - 0.05, y], axis=1), np.stack([x + 0.05, y], axis=1)[::-1]])
    sheet = _polygon(0.0, -1.0, 0.66, -0.4, 0.0, 0.45, -0.66, -0.4)
    spars = (
        _polygon(-0.035, -0.95, 0.035, -0.95, 0.035, 0.4, -0.035, 0.4),
        _polygon(-0.62, -0.435, 0.62, -0.435, 0.62, -0.365, -0.62, -0.365),
    )
    return Part((tail,), "wood"), Part((sheet,)), *(Part((spar,), "wood") for spar in spars)


_GLYPHS: dict[str, Callable[[], tuple[Loop, ...]]] = {
    "circle": lambda: (_arc(1.0),),
    "square": lambda: (_polygon(-0.88, -0.88, 0.88, -0.88, 0.88, 0.88, -0.88, 0.88),),
    "triangle": lambda: (_polygon(0.0, -0.95, 1.0, 0.8, -1.0, 0.8),),
    "star": _star,
    "cross": _cross,
    "ring": lambda: (_arc(1.0), _arc(0.56)),
    "heart": _heart,
    "moon": _moon,
}
_FIGURES = {"knight": _knight, "wizard": _wizard, "boat": _boat, "kite": _kite}
