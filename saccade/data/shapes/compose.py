"""Scenes by the dice: which objects, where they stand, what covers what.

A scene is thrown away and drawn again until every object can be seen well, every overlap is
either plain or absent, and its arrangement belongs to the split.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple
from zlib import crc32

from saccade.data.shapes.bias import biased
from saccade.data.shapes.drawing.dice import Dice
from saccade.data.shapes.drawing.fields import field
from saccade.data.shapes.scenes import (
    BACKGROUNDS,
    CLEAR_OVERLAP,
    COLOURS,
    GROUPS,
    KINDS,
    NEUTRAL,
    Box,
    Scene,
    Thing,
    box_overlap,
    boxes_meet,
    overlap,
)
from saccade.data.shapes.settings import ShapesSettings, SplitKind, split_kind
from saccade.errors import ConfigError

TILTS = (-16, -8, 0, 8, 16)
UPRIGHT = frozenset(("circle", "ring"))  # turning them would change nothing
RADII = {"main": (0.175, 0.205), "big": (0.125, 0.145), "small": (0.085, 0.1)}
_EDGE = 0.02
_MOST_COVERED = 0.28  # of an outline; what is seen stays above 60 % when cut into pixels
_APART = 0.06  # between centres where captions go from left to right
_TRIES = 60
_CELLS = 16
_DEFAULT = ShapesSettings()


def scene(split: str, index: int, settings: ShapesSettings = _DEFAULT) -> Scene:
    """Scene number `index` of a split: a function of (seed, split, index) and the settings.

    Train, valid and test differ in a hash of the arrangement (what stands in which of 16 × 16
    cells), so none is ever in two of them, whatever the seeds and sizes.
    """
    asked = split_kind(split)
    if index < 0:
        raise ConfigError(f"index={index} is negative; scenes are counted from 0")
    draw = Dice(settings.seed, crc32(split.encode()), index)
    while True:
        if asked.figures:
            found = biased(draw, asked, settings)
            if share(found.objects) == asked.share:
                return found
        else:
            things = _arrange(draw, asked, settings)
            if things:
                return Scene(things, draw.pick(BACKGROUNDS), draw.below(1 << 48), asked.many)


def is_held_out(colour: str, kind: str) -> bool:
    """Whether a colour and a kind meet in the compositional split alone.

    One in eight pairs, each colour and each kind once.
    """
    return (3 * COLOURS.index(colour) + 2) % len(KINDS) == KINDS.index(kind)


def share(things: Sequence[Thing]) -> str:
    """Train, valid or test. A figure's group does not count, so its twin is in the same share."""
    arrangement = sorted(
        f"{NEUTRAL if thing.kind in GROUPS else thing.kind} {thing.colour} {thing.size} "
        f"{int(thing.box.cx * _CELLS)} {int(thing.box.cy * _CELLS)}"
        for thing in things
    )
    bucket = crc32(", ".join(arrangement).encode()) % 10
    return "valid" if bucket == 8 else "test" if bucket == 9 else "train"


def _arrange(draw: Dice, asked: SplitKind, settings: ShapesSettings) -> tuple[Thing, ...]:
    """Objects from far to near, in an arrangement of the split; none if the dice fail."""
    fewest, most = (4, 5) if asked.many else (settings.fewest, settings.most)
    count = fewest + draw.below(most - fewest + 1)
    pairs = _pairs(draw, count, held_out=asked.held_out)
    standing = _Standing([], [])
    for order, (colour, kind) in enumerate(pairs):
        size = "big" if draw.chance(0.5) else "small"
        if order == 0 and count > 1:
            size = "big"  # the largest of all, which gives the scene its class
        radii = RADII["main" if order == 0 and size == "big" else size]
        wanted = asked.share if order == count - 1 else None
        make = _maker(draw, (colour, kind, size), radii)
        for _ in range(_TRIES):
            new = make()
            if wanted not in (None, share([*standing.things, new])):
                continue
            grown = standing.joined_by(new, front=draw.chance(0.5), apart=asked.many)
            if grown:
                standing = grown
                break
        else:
            return ()
    return tuple(standing.things)


def _pairs(draw: Dice, count: int, *, held_out: bool) -> list[tuple[str, str]]:
    """Different pairs of colour and kind; half of them share one with an earlier object.

    Sharing makes names earn their keep: "the circle" does not do where there are two.
    """
    chosen: list[tuple[str, str]] = []
    special = draw.below(count) if held_out else -1
    while len(chosen) < count:
        colour, kind = draw.pick(COLOURS), draw.pick(KINDS)
        dice = draw.random()
        if chosen and dice < 0.25:
            colour = draw.pick(chosen)[0]
        elif chosen and dice < 0.5:
            kind = draw.pick(chosen)[1]
        wanted = len(chosen) == special
        if is_held_out(colour, kind) == wanted and (colour, kind) not in chosen:
            chosen.append((colour, kind))
    return chosen


def _maker(
    draw: Dice, words: tuple[str, str, str], radii: tuple[float, float]
) -> Callable[[], Thing]:
    """One object that can be put in place after place."""
    colour, kind, size = words
    tilt = 0 if kind in UPRIGHT else draw.pick(TILTS)
    known = field(kind, tilt)
    radius = draw.between(*radii)
    w, h = 2 * radius * known.half_width, 2 * radius * known.half_height

    def make() -> Thing:
        x = draw.between(_EDGE + w / 2, 1 - _EDGE - w / 2)
        y = draw.between(_EDGE + h / 2, 1 - _EDGE - h / 2)
        return Thing(kind, colour, size, Box(x, y, w, h), tilt)

    return make


class _Standing(NamedTuple):
    """Objects from far to near, and at most how much of each one's area is covered."""

    things: list[Thing]
    covered: list[float]

    def joined_by(self, new: Thing, *, front: bool, apart: bool) -> "_Standing | None":
        """With one more before or behind all others, unless that would leave a doubt."""
        covered, hidden = list(self.covered), 0.0
        for index, thing in enumerate(self.things):
            if apart and abs(new.box.cx - thing.box.cx) < _APART:
                return None
            if not boxes_meet(thing.box, new.box):
                continue
            shared = _plain_overlap(thing, new)
            if shared is None:
                return None
            if front:
                covered[index] += shared
                if covered[index] > _MOST_COVERED * thing.area:
                    return None
            else:
                hidden += shared
        if hidden > _MOST_COVERED * new.area:
            return None
        if front:
            return _Standing([*self.things, new], [*covered, 0.0])
        return _Standing([new, *self.things], [hidden, *covered])


def _plain_overlap(a: Thing, b: Thing) -> float | None:
    """The area two share, or None if one could doubt that they do.

    Same colours would melt into one another, and a touch is neither before nor beside.
    """
    least = 1.25 * CLEAR_OVERLAP * min(a.area, b.area)
    if a.colour == b.colour or box_overlap(a.box, b.box) < least:
        return None
    shared = overlap(a, b)
    return shared if shared == 0 or shared >= least else None
