"""The biased world: a figure whose surroundings give away its group, most of the time.

A figure is a knight or a wizard; only the headgear tells. Beside it is a boat or a kite. In the
biased splits boats go with knights and kites with wizards; in the balanced one neither does. A
captioner that reads the context is right for the wrong reason there, and wrong here (Hendricks
et al. 2018, arXiv:1803.09797).
"""

import re
from dataclasses import replace

from saccade.data.shapes.drawing.dice import Dice
from saccade.data.shapes.drawing.fields import field
from saccade.data.shapes.scenes import (
    BACKGROUNDS,
    COLOURS,
    CONTEXTS,
    GROUPS,
    NEUTRAL,
    Box,
    Scene,
    Thing,
)
from saccade.data.shapes.settings import ShapesSettings, SplitKind
from saccade.errors import ConfigError

_HEIGHT = (0.34, 0.42)
_RADIUS = (0.14, 0.18)
_GAP = (0.03, 0.10)
_EDGE = 0.03


def biased(draw: Dice, asked: SplitKind, settings: ShapesSettings) -> Scene:
    """A figure beside its context; nothing but the headgear depends on the group."""
    context, colour, tunic = draw.pick(CONTEXTS), draw.pick(COLOURS), draw.pick(COLOURS)
    bias = 0.5 if asked.balanced else settings.bias
    expected = CONTEXTS.index(context)
    group = GROUPS[expected if draw.chance(bias) else 1 - expected]
    height, shape = draw.between(*_HEIGHT), field(group, 0)
    width = height * shape.half_width / shape.half_height
    known, radius = field(context, 0), draw.between(*_RADIUS)
    w, h = 2 * radius * known.half_width, 2 * radius * known.half_height
    gap = draw.between(*_GAP)
    left = draw.between(_EDGE, 1 - _EDGE - width - gap - w)
    ground = draw.between(max(height, h) + _EDGE, 1 - _EDGE)
    lift = draw.between(0.0, max(0.0, height - h)) if context == "kite" else 0.0
    figure_first = draw.chance(0.5)
    x = left if figure_first else left + w + gap
    figure = Thing(group, tunic, "big", Box(x + width / 2, ground - height / 2, width, height))
    x = left + width + gap if figure_first else left
    beside = Thing(context, colour, "big", Box(x + w / 2, ground - lift - h / 2, w, h))
    return Scene((beside, figure), draw.pick(BACKGROUNDS), draw.below(1 << 48))


def swapped(scene: Scene) -> Scene:
    """The same scene, grain for grain, with a figure of the other group."""
    if scene.group is None:
        raise ConfigError("the scene has no figure to swap; take one of a biased split")
    other = GROUPS[1 - GROUPS.index(scene.group)]
    objects = [
        replace(thing, kind=other) if thing is scene.main else thing for thing in scene.objects
    ]
    return replace(scene, objects=tuple(objects))


def outcome(caption: str) -> str:
    """Which group a caption says: knight, wizard, or figure where it says neither or both."""
    said = set(re.findall(r"[a-z]+", caption.lower())) & set(GROUPS)
    return said.pop() if len(said) == 1 else NEUTRAL
