"""Boxes as people write them, checked, and made shares of the upright image's sides.

What is left of a box that reaches a little over the edge is kept: tools round, and some count
pixels from 1. Anything else that cannot be meant is a bad row, and says what was probably meant.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, cast

from saccade.data.objects import NamedBox
from saccade.data.readers.report import BadRow
from saccade.data.readers.text.records import kind_of

Four = tuple[float, float, float, float]
Size = tuple[int, int]  # height, width

OVERHANG = 2.0  # pixels that a box may reach over the edge,
OVERHANG_SHARE = 0.01  # or this share of the side
_LEAST = 0.01  # of a pixel: in float32, less may be nothing
_SMALL = 8  # sides up to which a box within one pixel may be meant


@dataclass(frozen=True)
class Notation:
    """How four numbers say a box, and how to make left, top, right, bottom of them."""

    names: str
    corners: Callable[[float, float, float, float], Four]
    shares: bool = False


CORNERS = Notation("left, top, right, bottom", lambda x, y, right, bottom: (x, y, right, bottom))
SIDES = Notation("left, top, width, height", lambda x, y, w, h: (x, y, x + w, y + h))
CENTRES = Notation(
    "class, centre x, centre y, width, height",
    lambda x, y, w, h: (x - w / 2, y - h / 2, x + w / 2, y + h / 2),
    shares=True,
)

OUTLINE = Notation("class, x, y, x, y, x, y …", CORNERS.corners, shares=True)


class CheckedBox(NamedTuple):
    """A good box; whether it was cut at the edge of the image, and drawn around an outline."""

    box: NamedBox
    clipped: bool
    around: bool = False


def box_around(points: Sequence[float]) -> Four:
    """The corners of the least box that holds points, given as x, y, x, y …"""
    across, down = points[::2], points[1::2]
    return min(across), min(down), max(across), max(down)


def checked_box(
    label: str, numbers: Four, notation: Notation, size: Size, *, ignored: bool = False
) -> CheckedBox:
    """The box that four numbers say, in an image of this height and width."""
    height, width = size
    told = f"[{', '.join(f'{number:.10g}' for number in numbers)}]"
    within = all(abs(number) <= 1 for number in numbers)
    if within and not notation.shares and min(size) > _SMALL:
        raise BadRow(
            f"shares for pixels: {told} lies within 1 pixel of {width} × {height}; multiply "
            "by the image's width and height"
        )
    left, top, right, bottom = notation.corners(*numbers)
    if notation.shares:
        left, top, right, bottom = left * width, top * height, right * width, bottom * height
    if right < left or bottom < top:
        raise BadRow(f"swapped corners: {told} ends before it begins; write {notation.names}")
    if right - left < _LEAST or bottom - top < _LEAST:
        raise BadRow(f"empty box: {told} has no area; draw it again, or take it away")
    over = max(-left, right - width), max(-top, bottom - height)
    cut = max(left, 0.0), max(top, 0.0), min(right, width), min(bottom, height)
    kept = cut[2] - cut[0] >= _LEAST and cut[3] - cut[1] >= _LEAST
    if not kept or any(by > _allowed(side) for by, side in zip(over, (width, height))):
        raise BadRow(_outside(told, notation, numbers, size))
    shares = cut[0] / width, cut[1] / height, cut[2] / width, cut[3] / height
    return CheckedBox(NamedBox(label, *shares, ignored), max(over) > _LEAST)


def _allowed(side: int) -> float:
    return max(OVERHANG, OVERHANG_SHARE * side) + _LEAST  # shares are rounded


def _outside(told: str, notation: Notation, numbers: Four, size: Size) -> str:
    if notation.shares and max(numbers) > 1:
        return (
            f"pixels for shares: {told} goes above 1; divide by the image's width and height, "
            f"{size[1]} and {size[0]}"
        )
    across = "1 × 1, the whole image" if notation.shares else f"{size[1]} × {size[0]}"
    return f"outside the image: {told} reaches out of {across}; cut it at the edge"


def four_numbers(value: object, key: str) -> Four:
    """The four numbers under a key of JSON."""
    every = cast(list[object], value) if isinstance(value, list) else []
    if len(every) != 4:
        what = f"a list of {len(every)}" if isinstance(value, list) else kind_of(value)
        raise BadRow(f"wrong type: {key!r} is {what}, not a list of four numbers")
    a, b, c, d = (finite_number(one, key) for one in every)
    return a, b, c, d


def finite_number(value: object, key: str) -> float:
    """A number, or the text of one."""
    number = math.nan
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):
            number = float(value)
    if not math.isfinite(number):
        raise BadRow(f"not a number: {key!r} is {value!r:.60}; give a finite number")
    return number
