"""What a scene holds, and which statements about it the image settles beyond doubt."""

from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np

from saccade.data.shapes.drawing.fields import field

KINDS = ("circle", "square", "triangle", "star", "cross", "ring", "heart", "moon")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "white", "black")
SIZES = ("big", "small")
BACKGROUNDS = ("plain", "waves", "blobs", "tiles")
GROUPS = ("knight", "wizard")
CONTEXTS = ("boat", "kite")
NEUTRAL = "figure"
OPPOSITE = {
    "left of": "right of",
    "right of": "left of",
    "above": "below",
    "below": "above",
    "behind": "in front of",
    "in front of": "behind",
}
RELATIONS = tuple(OPPOSITE)
SIDES = ("left of", "right of", "above", "below")

# What makes a relation clear to any eye: a gap between the boxes, one direction that
# outweighs the other, and for "behind" a part of the smaller thing that truly overlaps.
_GAP = 0.02
_CONE = 0.6
CLEAR_OVERLAP = 0.12
_NEAR = 0.2
_STEPS = (np.arange(16) + 0.5) / 16


class Box(NamedTuple):
    """Centre, width and height, each as a share of the image's side; y grows downwards."""

    cx: float
    cy: float
    w: float
    h: float

    @property
    def xyxy(self) -> tuple[float, float, float, float]:
        """Left, top, right, bottom."""
        x, y = self.w / 2, self.h / 2
        return self.cx - x, self.cy - y, self.cx + x, self.cy + y


@dataclass(frozen=True)
class Thing:
    """One object; its box is that of the whole, hidden parts included."""

    kind: str
    colour: str
    size: str
    box: Box
    tilt: int = 0  # degrees, clockwise

    @property
    def scale(self) -> float:
        """The share of the image's side that one unit of the outline takes."""
        return self.box.w / (2 * field(self.kind, self.tilt).half_width)

    @property
    def area(self) -> float:
        """The share of the image that the outline encloses."""
        return field(self.kind, self.tilt).area * self.scale**2


@dataclass(frozen=True)
class Scene:
    """Objects from the farthest to the nearest: a later one covers an earlier one.

    No two objects share both colour and kind, so these two words say which is meant. `seed`
    decides what the scene leaves open: grain and light of the image, wording of the captions.
    """

    objects: tuple[Thing, ...]
    background: str
    seed: int
    name_all: bool = False  # captions name every object, from left to right

    @property
    def main(self) -> Thing:
        """The largest object, or in the biased world the figure."""
        people = [thing for thing in self.objects if thing.kind in GROUPS]
        return people[0] if people else max(self.objects, key=lambda thing: thing.scale)

    @property
    def label(self) -> int:
        """The class: the main object's place among `KINDS`, or among `GROUPS` for a figure."""
        kind = self.main.kind
        return GROUPS.index(kind) if kind in GROUPS else KINDS.index(kind)

    @property
    def group(self) -> str | None:
        """Knight or wizard; None outside the biased world."""
        return self.main.kind if self.main.kind in GROUPS else None

    @property
    def context(self) -> Thing | None:
        """What stands beside the figure; None outside the biased world."""
        return next((thing for thing in self.objects if thing.kind in CONTEXTS), None)


def relation(scene: Scene, first: int, second: int) -> str | None:
    """How the first object stands to the second, if no eye could doubt it; else None.

    Behind and in front of need no more than the overlap. A direction needs boxes that are apart
    along it, and centres that differ in it far more than across:

        left of, right of:   |Δx| ≥ (w₁ + w₂)/2 + 0.02,   |Δy| ≤ 0.6 |Δx|
    """
    a, b = scene.objects[first].box, scene.objects[second].box
    stands = standing(scene, first, second)
    dx, dy = abs(a.cx - b.cx), abs(a.cy - b.cy)
    if stands in ("left of", "right of"):
        clear = dx >= (a.w + b.w) / 2 + _GAP and dy <= _CONE * dx
    elif stands in ("above", "below"):
        clear = dy >= (a.h + b.h) / 2 + _GAP and dx <= _CONE * dy
    else:
        clear = True
    return stands if clear else None


def clear_relations(scene: Scene) -> list[tuple[int, str, int]]:
    """Every pair whose relation is clear, with it."""
    pairs = permutations(range(len(scene.objects)), 2)
    return [(a, found, b) for a, b in pairs if (found := relation(scene, a, b))]


def standing(scene: Scene, first: int, second: int) -> str:
    """How the first object stands to the second: the one relation that is true of the pair.

    Those that overlap stand before and behind; for others the longer way between their centres
    decides, so just one of the six words holds, whether it is easy to see or not.
    """
    a, b = scene.objects[first], scene.objects[second]
    if boxes_meet(a.box, b.box) and overlap(a, b) >= CLEAR_OVERLAP * min(a.area, b.area):
        return "in front of" if first > second else "behind"
    dx, dy = b.box.cx - a.box.cx, b.box.cy - a.box.cy
    if abs(dx) >= abs(dy):
        return "left of" if dx > 0 else "right of"
    return "above" if dy > 0 else "below"


def leans(thing: Thing, side: str, anchor: Thing) -> bool:
    """Whether any part of a thing is farther to a side than the anchor's centre."""
    x0, y0, x1, y1 = thing.box.xyxy
    reach = {"left of": anchor.box.cx - x0, "right of": x1 - anchor.box.cx}
    reach |= {"above": anchor.box.cy - y0, "below": y1 - anchor.box.cy}
    return reach[side] > 0


def is_beside(a: Box, b: Box) -> bool:
    """Whether two boxes stand side by side: a small gap between, and heights that overlap."""
    gap = abs(a.cx - b.cx) - (a.w + b.w) / 2
    return 0 < gap <= _NEAR and abs(a.cy - b.cy) < (a.h + b.h) / 2


def boxes_meet(a: Box, b: Box) -> bool:
    """Whether two boxes have a part in common."""
    return 2 * abs(a.cx - b.cx) < a.w + b.w and 2 * abs(a.cy - b.cy) < a.h + b.h


def box_overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    w = min(a.w, b.w, (a.w + b.w) / 2 - abs(a.cx - b.cx))
    h = min(a.h, b.h, (a.h + b.h) / 2 - abs(a.cy - b.cy))
    return max(w, 0.0) * max(h, 0.0)


def overlap(a: Thing, b: Thing) -> float:
    """The area that lies within both outlines, as a share of the image (by sampling)."""
    ax0, ay0, ax1, ay1 = a.box.xyxy
    bx0, by0, bx1, by1 = b.box.xyxy
    x0, y0, x1, y1 = max(ax0, bx0), max(ay0, by0), min(ax1, bx1), min(ay1, by1)
    if x0 >= x1 or y0 >= y1:
        return 0.0
    xs, ys = x0 + (x1 - x0) * _STEPS, y0 + (y1 - y0) * _STEPS
    inside_a, inside_b = (
        field(thing.kind, thing.tilt).within(
            (xs - thing.box.cx) * (2 / thing.box.w), (ys - thing.box.cy) * (2 / thing.box.h)
        )
        for thing in (a, b)
    )
    both = np.count_nonzero(inside_a & inside_b)
    return both / _STEPS.size**2 * (x1 - x0) * (y1 - y0)
