"""A part of a drawing: how large it is, and what paints it at a place."""

from collections.abc import Callable
from typing import NamedTuple

from saccade.app.look.draw.canvas import Canvas

Paint = Callable[[Canvas, float, float], None]  # with its left and its top


class ChartBlock(NamedTuple):
    """One panel, with the room around it."""

    width: float
    height: float
    paint: Paint
