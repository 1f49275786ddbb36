"""Where the cells of a grid lie on an image.

Patches tile it, each seen from its middle. The cells of a CNN do not: a convolution that strides by
two looks around every other pixel, from the first on, so a cell that stands for 8 pixels looks
around the first of them. Who draws it as a square is off by nearly half a cell.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int


@dataclass(frozen=True)
class Lattice:
    """Middles of cells in rows and columns, evenly apart.

    `first` and `apart` say where the first lies and how far the next is, in cells of a grid that
    tiles the image: there they are ½ and 1. `sides` says how many such cells long the image is
    where that is not as many as there are.
    """

    height: int
    width: int
    first: float = 0.5
    apart: float = 1.0
    sides: tuple[float, float] | None = None

    @cached_property
    def down(self) -> Float[np.ndarray, " h"]:
        """The middle of each row, as a share of the image's height."""
        return self._middles(self.height, 0)

    @cached_property
    def across(self) -> Float[np.ndarray, " w"]:
        """The middle of each column, as a share of the image's width."""
        return self._middles(self.width, 1)

    def middle(self, cell: int) -> tuple[float, float]:
        """Of a cell, in reading order: as shares of height and width."""
        return float(self.down[cell // self.width]), float(self.across[cell % self.width])

    def box(self, cell: int) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of all that lies nearer to this cell than to another."""
        row, column = divmod(cell, self.width)
        (top, bottom), (left, right) = _around(self.down, row), _around(self.across, column)
        return left, top, right, bottom

    def _middles(self, count: int, side: int) -> Float[np.ndarray, " count"]:
        long = count if self.sides is None else self.sides[side]
        return np.minimum((self.first + self.apart * np.arange(count)) / long, 1.0)


def nearest(middles: Float[np.ndarray, " cells"], pixels: int) -> Int[np.ndarray, " pixels"]:
    """To which row (or column) of cells each row of pixels belongs."""
    borders, places = _borders(middles)[1:-1], (np.arange(pixels) + 0.5) / pixels
    return np.searchsorted(borders, places, side="right")


def _around(middles: Float[np.ndarray, " cells"], place: int) -> tuple[float, float]:
    borders = _borders(middles)
    return float(borders[place]), float(borders[place + 1])


def _borders(middles: Float[np.ndarray, " cells"]) -> Float[np.ndarray, " cells_and_one"]:
    """Halfway between middles, and the edges of the image."""
    return np.concatenate([[0.0], (middles[:-1] + middles[1:]) / 2, [1.0]])
